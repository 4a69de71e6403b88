package kv

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
)

func TestAPICalls(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", `{"password":"v"}`)
	before := conformance.APICalls(t, "VaultKV")["login 200"]
	c, err := provider.KindOf(Connect).Connect(t.Context(), appRole(srv.URL), secrets)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := provider.Close(c); err != nil {
			t.Error(err)
		}
	}()
	for _, err := range provider.Find(t.Context(), t.Name(), c, provider.Query{Path: "shop/"}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := provider.Get(t.Context(), t.Name(), c, provider.Ref{Key: "absent"}); !provider.IsNotFound(err) {
		t.Fatal(err)
	}
	want := map[string]int{"secret.list 200": 1, "secret.read 200": 1, "secret.read 404": 1, "sys.read 200": 1}
	if diff := cmp.Diff(want, conformance.APICalls(t, t.Name())); diff != "" {
		t.Errorf("Each request is counted, and no label names a mount or a secret.\nrequests: -want, +got:\n%s", diff)
	}
	if n := conformance.APICalls(t, "VaultKV")["login 200"] - before; n != 1 {
		t.Errorf("a login must be counted for the Kind of the store: %d, want 1", n)
	}
}
