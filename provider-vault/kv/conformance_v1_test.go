package kv

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/common/store/storetest"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

func TestConformanceV1(t *testing.T) {
	srv, secrets := vault(t, "1h")
	srv.Mount("old", "1")
	srv.Policy("reader", `path "old/*" { capabilities = ["read", "list"] }`)
	old := func(s *v1alpha1.VaultKVSpec) { s.Path, s.Version = "old", v1alpha1.KVv1 }
	const without = "KV v1 keeps neither versions nor metadata"
	storetest.Run(t, storetest.Harness{
		Connect: func(ctx context.Context) (store.Client, error) {
			return Connect(ctx, appRole(srv.URL, old), secrets)
		},
		ConnectDenied: func(ctx context.Context) (store.Client, error) {
			return Connect(ctx, appRole(srv.URL, old, withSecretID("wrong")), secrets)
		},
		Put: func(_ context.Context, key string, data []byte, _ map[string]string) error {
			return srv.Try(http.MethodPut, "old/"+key, json.RawMessage(data))
		},
		Delete: func(_ context.Context, key string) error {
			return srv.Try(http.MethodDelete, "old/"+key, nil)
		},
		Inject: func(f storetest.Fault) (func(), error) {
			return srv.Inject(func(c vaulttest.Call) bool {
				if f.Key != "" {
					return c.Path == "old/"+f.Key
				}
				return f.Failure != storetest.Denied || strings.HasPrefix(c.Path, "old")
			}, failures[f.Failure]), nil
		},
		JSONOnly: true,
		Without: map[string]string{
			"read/version": without, "read/missing-version": without, "read/metadata": without, "find/tags": without, "find/combined": without,
			"read/empty-json": "KV v1 takes no empty object",
		},
	})
}
