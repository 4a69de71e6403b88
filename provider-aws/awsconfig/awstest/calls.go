package awstest

import (
	"context"
	"fmt"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// Calls returns the harness of a store with a hundred secrets, each created by put.
func Calls[S awsconfig.Object](t testing.TB, o S, connect func(context.Context, S, provider.Credentials) (provider.Client, error), put func(srv *emulator.Server, key, value string)) operatortest.CallsHarness {
	t.Helper()
	srv := Start(t)
	h := operatortest.CallsHarness{
		Connect: func(context.Context) (provider.Client, error) { return Connect(t, o, connect, srv.URL()) },
		Calls:   srv.Counts,
	}
	for i := range 100 {
		h.Keys = append(h.Keys, fmt.Sprintf("/p/%03d", i))
		put(srv, h.Keys[i], fmt.Sprint(i))
	}
	return h
}
