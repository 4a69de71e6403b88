package secretmanager

import (
	"context"
	"fmt"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

func TestCallsPerSync(t *testing.T) {
	start := func(t testing.TB) operatortest.CallsHarness {
		srv := start(t)
		h := operatortest.CallsHarness{
			Connect: func(ctx context.Context) (provider.Client, error) { return storeOf(srv).connect(ctx) },
			Calls:   srv.Counts,
		}
		for i := range 100 {
			h.Keys = append(h.Keys, fmt.Sprintf("s-%03d", i))
			srv.Put(h.Keys[i], []byte("x"))
		}
		return h
	}
	operatortest.CallsPerSync(t, "GCPSecretManager", start, operatortest.Calls{
		Login:   map[string]int{emulator.MethodToken: 1},
		One:     map[string]int{"AccessSecretVersion": 1},
		Hundred: map[string]int{"AccessSecretVersion": 100},
	})
}
