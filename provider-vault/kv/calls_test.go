package kv

import (
	"context"
	"fmt"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

func TestCallsPerSync(t *testing.T) {
	srv, secrets := vault(t, "1h")
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprintf("s-%03d", i))
		mustPut(t, srv, keys[i], `{"n":"1"}`)
	}
	start := func(testing.TB) operatortest.CallsHarness {
		srv.Reset()
		connect := func(ctx context.Context) (provider.Client, error) { return Connect(ctx, appRole(srv.URL), secrets) }
		return operatortest.CallsHarness{Keys: keys, Connect: connect, Calls: func() map[string]int {
			calls := map[string]int{}
			for _, c := range srv.Calls() {
				switch {
				case vaulttest.IsLogin(c):
					calls["login"]++
				case vaulttest.IsRead(c):
					calls["read"]++
				case c.Path == "auth/token/revoke-self": // This call is from closing the store of the previous case.
				default:
					calls[c.Method+" "+c.Path]++
				}
			}
			return calls
		}}
	}
	operatortest.CallsPerSync(t, "VaultKV", start, operatortest.Calls{
		Login:   map[string]int{"login": 1},
		One:     map[string]int{"read": 1},
		Hundred: map[string]int{"read": 100},
	})
}
