package kv

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

func TestConformanceV1(t *testing.T) {
	t.Parallel()
	conformance.Run(t, harnessV1(t))
}

func harnessV1(t *testing.T) conformance.Harness {
	srv, secrets := writable(t, "old/*")
	srv.Mount("old", "1")
	old := func(s *v1alpha1.VaultKVSpec) { s.Path, s.Version = "old", v1alpha1.KVv1 }
	const without = "KV v1 keeps neither versions nor metadata"
	return conformance.Harness{
		Kind: "VaultKV", Service: srv.Version() + ", KV version 1",
		Connect: func(ctx context.Context) (provider.Client, error) {
			return Connect(ctx, appRole(srv.URL, old), secrets)
		},
		ConnectDenied: func(ctx context.Context) (provider.Client, error) {
			return Connect(ctx, appRole(srv.URL, old, withSecretID("wrong")), secrets)
		},
		ConnectElsewhere: func(ctx context.Context) (provider.Client, error) { return Connect(ctx, appRole(srv.URL), secrets) },
		ConnectTo: func(ctx context.Context, url string) (provider.Client, error) {
			return Connect(ctx, appRole(url, old), secrets)
		},
		Server: srv.URL,
		Put: func(_ context.Context, key string, data []byte, _ map[string]string) error {
			return srv.Try(http.MethodPut, "old/"+escaped(key), json.RawMessage(data))
		},
		Delete: func(_ context.Context, key string) error {
			return srv.Try(http.MethodDelete, "old/"+escaped(key), nil)
		},
		Inject: func(f conformance.Fault) (func(), error) {
			return srv.Inject(func(c vaulttest.Call) bool {
				if f.Key != "" {
					return c.Path == "old/"+f.Key
				}
				return f.Failure != conformance.Denied || strings.HasPrefix(c.Path, "old")
			}, failures[f.Failure]), nil
		},
		JSONOnly: true,
		MaxWrite: maxValue,
		Without: map[string]string{
			"read/version": without, "read/missing-version": without, "read/metadata": without, "find/tags": without, "find/combined": without,
			"read/empty-json": "KV v1 takes no empty object", "write/metadata": without,
			"write/update": "every version has the same name, because a digest would reveal something about the value; see TestWriteV1",
		},
	}
}
