package kv

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, harness(t))
}

func harness(t *testing.T) conformance.Harness {
	srv, secrets := writable(t, "secret/*")
	return conformance.Harness{
		Kind: "VaultKV", Service: srv.Version() + ", KV version 2",
		Connect: func(ctx context.Context) (provider.Client, error) { return Connect(ctx, appRole(srv.URL), secrets) },
		ConnectDenied: func(ctx context.Context) (provider.Client, error) {
			return Connect(ctx, appRole(srv.URL, withSecretID("wrong")), secrets)
		},
		ConnectElsewhere: func(ctx context.Context) (provider.Client, error) {
			return Connect(ctx, appRole(srv.URL, func(s *v1alpha1.VaultKVSpec) { s.Path = "other" }), secrets)
		},
		ConnectTo: func(ctx context.Context, url string) (provider.Client, error) {
			return Connect(ctx, appRole(url), secrets)
		},
		Server: srv.URL,
		Put: func(_ context.Context, key string, data []byte, tags map[string]string) error {
			return put(srv, key, string(data), tags)
		},
		Delete: func(_ context.Context, key string) error {
			return srv.Try(http.MethodDelete, "secret/metadata/"+escaped(key), nil)
		},
		Inject:   func(f conformance.Fault) (func(), error) { return inject(srv, f), nil },
		JSONOnly: true,
		MaxWrite: maxValue,
		Metadata: twoSettings,
		Without:  map[string]string{"read/json": "KV v2 itself reads numbers as floating point: 1.50 becomes 1.5, and large ones are rounded"},
	}
}

var failures = map[conformance.Failure]http.HandlerFunc{
	conformance.Denied:      vaulttest.Refuse(http.StatusForbidden),
	conformance.Throttled:   vaulttest.Refuse(http.StatusTooManyRequests),
	conformance.Unavailable: vaulttest.Refuse(http.StatusInternalServerError),
	conformance.Hang:        vaulttest.Hang,
	conformance.Dropped:     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"data":null}`)) },
}

// inject makes every call fail, or every read of one secret. Token lookups always work, because every valid
// token can look itself up.
func inject(srv *vaulttest.Server, f conformance.Fault) func() {
	own := []string{"auth/token/lookup-self", "sys/internal/ui/mounts/secret"}
	return srv.Inject(func(c vaulttest.Call) bool {
		if f.Key != "" {
			return c.Path == "secret/data/"+f.Key
		}
		return f.Failure != conformance.Denied || !slices.Contains(own, c.Path) && !strings.HasSuffix(c.Path, "/login")
	}, failures[f.Failure])
}
