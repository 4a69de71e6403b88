package secretmanager

import (
	"context"
	"fmt"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/fetch/fetchtest"
	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

func TestCallsPerSync(t *testing.T) {
	start := func(t testing.TB) fetchtest.Harness {
		srv := start(t)
		h := fetchtest.Harness{
			Connect: func(ctx context.Context) (store.Client, error) { return storeOf(srv).connect(ctx) },
			Calls:   srv.CallCounts,
		}
		for i := range 100 {
			h.Keys = append(h.Keys, fmt.Sprintf("s-%03d", i))
			srv.Put(h.Keys[i], []byte("x"))
		}
		return h
	}
	fetchtest.CallsPerSync(t, "GCPSecretManager", start, fetchtest.Calls{
		Login:   map[string]int{emulator.MethodToken: 1},
		One:     map[string]int{"AccessSecretVersion": 1},
		Hundred: map[string]int{"AccessSecretVersion": 100},
	})
}
