package keyvault

import (
	"context"
	"fmt"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

func TestCallsPerSync(t *testing.T) {
	start := func(t testing.TB) operatortest.CallsHarness {
		srv := start(t)
		h := operatortest.CallsHarness{
			Connect: func(ctx context.Context) (provider.Client, error) { return storeOf(srv).connect(ctx) },
			Calls:   func() map[string]int { return srv.Counts() },
		}
		for i := range 100 {
			h.Keys = append(h.Keys, fmt.Sprintf("s-%03d", i))
			put(t, srv, h.Keys[i], "x")
		}
		return h
	}
	operatortest.CallsPerSync(t, "AzureKeyVault", start, operatortest.Calls{
		Login:   map[string]int{emulator.CallChallenge: 1, emulator.CallDiscovery: 1, emulator.CallToken: 1},
		One:     map[string]int{emulator.CallGet: 1},
		Hundred: map[string]int{emulator.CallGet: 100},
	})
}
