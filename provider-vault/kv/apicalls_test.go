package kv

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

func TestAPICalls(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", `{"password":"v"}`)
	before := conformance.APICalls(t, "VaultKV")
	c, err := fake.Connect(t.Context(), provider.KindOf(Connect), appRole(srv.URL), secrets)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, err := range c.Find(t.Context(), provider.Query{Path: "shop/"}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Get(t.Context(), provider.Ref{Key: "absent"}); !provider.IsNotFound(err) {
		t.Fatal(err)
	}
	want := map[string]int{"login 200": 1, "secret.list 200": 1, "secret.read 200": 1, "secret.read 404": 1, "sys.read 200": 1}
	got := conformance.APICalls(t, "VaultKV")
	for call, n := range before {
		if got[call] -= n; got[call] == 0 {
			delete(got, call)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Each request is counted, logins too, and no label names a mount or a secret.\nrequests: -want, +got:\n%s", diff)
	}
}
