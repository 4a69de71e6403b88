package client

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/emulator"
)

func TestCallsPerSync(t *testing.T) {
	begin := func(t testing.TB) operatortest.CallsHarness {
		srv := start(t)
		h := operatortest.CallsHarness{
			Connect: func(ctx context.Context) (provider.Client, error) {
				return Connect(ctx, storeOf(srv.URL()), credentials)
			},
			Calls: srv.Counts,
		}
		for i := range 100 {
			h.Keys = append(h.Keys, fmt.Sprintf("s-%03d", i))
			srv.Put(vaultName, h.Keys[i], map[string]string{"password": "x"}, nil)
		}
		return h
	}
	operatortest.CallsPerSync(t, "OnePasswordConnect", begin, operatortest.Calls{
		Login:   map[string]int{"ListVaults": 1, "ListItems": 1}, // The places of items are kept.
		One:     map[string]int{"GetItem": 1},
		Hundred: map[string]int{"GetItem": 100},
	})
}

func TestAPICalls(t *testing.T) {
	srv := start(t)
	srv.Add(vaultName, emulator.Item{Title: "db", Files: []emulator.File{{Name: "a", Content: []byte("x")}}})
	if _, err := fake.Link(t.Name(), client(t, srv)).Get(soon(t), provider.Ref{Key: "db"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"get-vaults 200": 1, "get-items 200": 1, "get-item 200": 1, "get-file 200": 1}
	if diff := cmp.Diff(want, conformance.APICalls(t, t.Name())); diff != "" {
		t.Errorf("requests: -want, +got:\n%s", diff)
	}
}
