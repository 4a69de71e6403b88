package kv

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

const (
	mark  = "0b9c9f0e-6a0c-4b7e-9d43-8f5f6f6a7b10"
	other = "7d4d5f5c-2f57-4ad4-8a4e-15b3a9a1c2d3"
)

var shopDB = provider.Target{Key: "shop/db"}

// writable is vault with a role that can write below a path.
func writable(t testing.TB, path string) (*vaulttest.Server, creds) {
	t.Helper()
	srv, secrets := vault(t, "1h")
	srv.Policy("reader", `path "`+path+`" { capabilities = ["create", "read", "update", "patch", "delete", "list"] }`)
	return srv, secrets
}

// twoSettings are two sets of settings that differ in every field.
var twoSettings = []string{
	`{"customMetadata":{"team":"one"},"maxVersions":5,"casRequired":true,"deleteVersionAfter":"720h"}`,
	`{"customMetadata":{"team":"two"},"maxVersions":6,"casRequired":false,"deleteVersionAfter":"90m"}`,
}

// first selects the first n calls with a method and a path.
func first(n int64, method, path string) func(vaulttest.Call) bool {
	var seen atomic.Int64
	return func(c vaulttest.Call) bool { return c.Method == method && c.Path == path && seen.Add(1) <= n }
}

func mustObserve(t testing.TB, c *Client, target provider.Target) provider.Observed {
	t.Helper()
	o, err := c.Observe(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func mustCreate(t testing.TB, c *Client) provider.Observed {
	t.Helper()
	if _, err := c.Create(t.Context(), shopDB, []byte(db), mark); err != nil {
		t.Fatal(err)
	}
	return mustObserve(t, c, shopDB)
}

// storedState returns the version, value and mark of shop/db at Vault.
func storedState(srv *vaulttest.Server) string {
	if srv.Try(http.MethodGet, "secret/metadata/shop/db", nil) != nil {
		return "none"
	}
	m := srv.Do(http.MethodGet, "secret/metadata/shop/db", nil)
	value := []byte("none")
	if srv.Try(http.MethodGet, "secret/data/shop/db", nil) == nil {
		value, _ = json.Marshal(srv.Do(http.MethodGet, "secret/data/shop/db", nil)["data"]) // It was decoded from JSON.
	}
	custom, _ := m["custom_metadata"].(M)
	return fmt.Sprint(m["current_version"], " ", string(value), " ", custom)
}

func TestObserveStates(t *testing.T) {
	srv, secrets := writable(t, "secret/*")
	c := connect(t, appRole(srv.URL), secrets)
	two := func() {
		mustPut(t, srv, "shop/db", `{"n":"1"}`)
		mustPut(t, srv, "shop/db", `{"n":"2"}`)
	}
	cases := map[string]struct {
		reason  string
		prepare func()
		version string // empty: no value
	}{
		"Current":      {"The current version is read.", two, "2"},
		"Deleted":      {"With a deleted current version there is no value, and no older one is used.", func() { two(); srv.Do(http.MethodDelete, "secret/data/shop/db", nil) }, ""},
		"Destroyed":    {"With a destroyed current version there is no value.", func() { two(); srv.Do(http.MethodPut, "secret/destroy/shop/db", M{"versions": []int{2}}) }, ""},
		"AllDeleted":   {"A secret exists even if all versions are deleted.", func() { two(); srv.Do(http.MethodPost, "secret/delete/shop/db", M{"versions": []int{1, 2}}) }, ""},
		"Settings":     {"A secret exists even without a version.", func() { srv.Do(http.MethodPost, "secret/metadata/shop/db", M{"max_versions": 3}) }, ""},
		"DeletedLater": {"A version with a deletion time in the future still exists.", func() { srv.Do(http.MethodPost, "secret/metadata/shop/db", M{"delete_version_after": "1h"}); two() }, "2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.prepare()
			defer srv.Do(http.MethodDelete, "secret/metadata/shop/db", nil)
			o := mustObserve(t, c, shopDB)
			if o.Version != tc.version || (o.Data == nil) != (tc.version == "") || o.ID == "" || o.Mark != "" {
				t.Errorf("%s got %+v", tc.reason, o)
			}
			w, err := c.Update(t.Context(), shopDB, o, []byte(db))
			if err != nil {
				t.Fatalf("the observed secret must accept an update: %v", err)
			}
			now := mustObserve(t, c, shopDB)
			if now.Version != w.Version || now.ID != w.ID || now.ID != o.ID || string(now.Data) != db {
				t.Errorf("Update returns %+v, and Observe then %+v", w, now)
			}
		})
	}
}

// TestObserveMeanwhile checks that the observed metadata and value are of one secret, although two calls read
// them.
func TestObserveMeanwhile(t *testing.T) {
	srv, secrets := writable(t, "secret/*")
	c := connect(t, appRole(srv.URL), secrets)
	pass := forward(t, srv)
	deleteSecret := func() { srv.Do(http.MethodDelete, "secret/metadata/shop/db", nil) }
	remade := func() { deleteSecret(); mustPut(t, srv, "shop/db", `{"theirs":"1"}`) }
	cases := map[string]struct {
		reason    string
		meanwhile func()
		times     int64
		want      provider.Class // empty: no error
		value     string
	}{
		"Written": {"The version that the metadata names is read.", func() { mustPut(t, srv, "shop/db", `{"theirs":"1"}`) }, 1, "", db},
		"Deleted": {"A value that is deleted meanwhile is no value.", func() { srv.Do(http.MethodDelete, "secret/data/shop/db", nil) }, 1, "", ""},
		"Remade":  {"A secret that is created again meanwhile is read completely.", remade, 1, "", `{"theirs":"1"}`},
		"Gone":    {"A secret that is deleted meanwhile is NotFound.", deleteSecret, 1, provider.NotFound, ""},
		"Always":  {"A secret that changes all the time is Unavailable.", remade, 100, provider.Unavailable, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mustCreate(t, c)
			defer deleteSecret()
			defer srv.Inject(first(tc.times, http.MethodGet, "secret/data/shop/db"), func(w http.ResponseWriter, r *http.Request) {
				tc.meanwhile()
				pass.ServeHTTP(w, r)
			})()
			o, err := c.Observe(t.Context(), shopDB)
			if (err == nil) != (tc.want == "") || err != nil && provider.ClassOf(err) != tc.want || string(o.Data) != tc.value {
				t.Errorf("%s got %+v, error %v; want %s, %q", tc.reason, o, err, tc.value, tc.want)
			}
			if ours := o.Mark == mark; err == nil && ours == (name == "Remade") {
				t.Errorf("%s mark %q on %s", tc.reason, o.Mark, o.Data)
			}
		})
	}
}

// TestMeanwhile checks that a write is rejected, and changes nothing, if the secret has changed since it was
// read.
func TestMeanwhile(t *testing.T) {
	srv, secrets := writable(t, "secret/*")
	c := connect(t, appRole(srv.URL), secrets)
	remake := func() {
		srv.Do(http.MethodDelete, "secret/metadata/shop/db", nil)
		mustPut(t, srv, "shop/db", `{"theirs":"1"}`)
	}
	signed := func(as string) func() {
		return func() { srv.Do(http.MethodPost, "secret/metadata/shop/db", M{"custom_metadata": M{markKey: as}}) }
	}
	cases := map[string]struct {
		reason        string
		meanwhile     func()
		update, erase provider.Class // empty: no error
	}{
		"Nothing":   {"An unchanged secret is written.", func() {}, "", ""},
		"Written":   {"A secret with a new value is not written.", func() { mustPut(t, srv, "shop/db", `{"theirs":"1"}`) }, provider.Conflict, provider.Conflict},
		"Remade":    {"A new secret with the same versions is not written.", remake, provider.Conflict, provider.Conflict},
		"Deleted":   {"A secret with a deleted value is not written, because its deletion can be undone.", func() { srv.Do(http.MethodDelete, "secret/data/shop/db", nil) }, provider.Conflict, provider.Conflict},
		"Destroyed": {"A secret with a destroyed value is not written.", func() { srv.Do(http.MethodPut, "secret/destroy/shop/db", M{"versions": []int{1}}) }, provider.Conflict, provider.Conflict},
		"Gone":      {"A deleted secret is not created again, and need not be deleted.", func() { srv.Do(http.MethodDelete, "secret/metadata/shop/db", nil) }, provider.Conflict, ""},
		"Unmarked":  {"A secret with an unknown mark is updated, but not deleted.", signed("unknown"), "", provider.Conflict},
		"Claimed":   {"A secret with the mark of another object is updated, but not deleted.", signed(other), "", provider.Conflict},
	}
	for name, tc := range cases {
		for _, action := range []string{"update", "metadata", "delete"} {
			t.Run(name+"/"+action, func(t *testing.T) {
				seen := mustCreate(t, c)
				tc.meanwhile()
				defer srv.Do(http.MethodDelete, "secret/metadata/shop/db", nil)
				before, want := storedState(srv), tc.update
				var err error
				switch action {
				case "update":
					_, err = fake.Writer(c).Update(t.Context(), shopDB, seen, []byte(`{"ours":"2"}`))
				case "metadata":
					seen.Drift = []string{"maxVersions"}
					_, err = fake.Writer(c).Update(t.Context(), provider.Target{Key: shopDB.Key, Metadata: []byte(`{"maxVersions":3}`)}, seen, nil)
				case "delete":
					want = tc.erase
					err = fake.Writer(c).Delete(t.Context(), shopDB, seen)
				}
				if (err == nil) != (want == "") || err != nil && provider.ClassOf(err) != want {
					t.Errorf("%s error %v, want %q", tc.reason, err, want)
				}
				if diff := cmp.Diff(before, storedState(srv)); err != nil && diff != "" {
					t.Errorf("%s it was refused, and changed all the same: -before, +after:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// The paths of one engine version would write to another place with the other version.
func TestWriteToWrongMount(t *testing.T) {
	srv, secrets := writable(t, "*")
	srv.Mount("old", "1")
	config := srv.Do(http.MethodGet, "secret/config", nil)
	for name, change := range map[string]func(*v1alpha1.VaultKVSpec){
		"NewAsOld": func(s *v1alpha1.VaultKVSpec) { s.Version = v1alpha1.KVv1 },
		"OldAsNew": func(s *v1alpha1.VaultKVSpec) { s.Path = "old" },
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, appRole(srv.URL, change), secrets)
			target, seen := provider.Target{Key: "config"}, provider.Observed{Data: []byte(`{}`), ID: "1", Token: "1"}
			_, created := c.Create(t.Context(), target, []byte(`{"max_versions":3}`), mark)
			_, updated := c.Update(t.Context(), target, seen, []byte(`{"max_versions":3}`))
			for _, err := range []error{created, updated, c.Delete(t.Context(), target, seen)} {
				if provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), "spec.version") {
					t.Errorf("error %v, want Invalid that names spec.version", err)
				}
			}
		})
	}
	if diff := cmp.Diff(config, srv.Do(http.MethodGet, "secret/config", nil)); diff != "" {
		t.Errorf("the configuration of the engine: -before, +after:\n%s", diff)
	}
	if srv.Try(http.MethodGet, "old/data/config", nil) == nil {
		t.Error("a path of KV v2 is a secret of KV v1")
	}
}

// TestWriteV1 checks what KV v1 does not have, and that it stores numbers as they are.
func TestWriteV1(t *testing.T) {
	srv, secrets := writable(t, "old/*")
	srv.Mount("old", "1")
	c := connect(t, appRole(srv.URL, func(s *v1alpha1.VaultKVSpec) { s.Path, s.Version = "old", v1alpha1.KVv1 }), secrets)
	if diff := cmp.Diff(provider.Features{}, c.Features()); diff != "" {
		t.Errorf("KV v1 must not report features: %s", diff)
	}
	const long = `{"b":12345678901234567890}`
	if _, err := c.Update(t.Context(), shopDB, mustCreate(t, c), []byte(long)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(long, string(mustObserve(t, c, shopDB).Data)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	wants := func(err error, class provider.Class, part string) {
		t.Helper()
		if provider.ClassOf(err) != class || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want %s: …%s", err, class, part)
		}
	}
	_, err := c.Get(t.Context(), provider.Ref{Key: shopDB.Key, Version: "1"})
	wants(err, provider.Invalid, "KV v1 has no versions")
	for _, key := range []string{shopDB.Key, "absent"} {
		_, err = c.Get(t.Context(), provider.Ref{Key: key, Metadata: true})
		wants(err, provider.Invalid, "remove metadataPolicy")
	}
	_, err = findAll(t.Context(), c, provider.Query{Tags: map[string]string{"a": "b"}})
	wants(err, provider.Invalid, "find: KV v1 has no custom metadata")
	_, err = c.Create(t.Context(), shopDB, []byte(`{}`), mark)
	wants(err, provider.Invalid, "which KV v1 does not allow")
	srv.Policy("reader", `path "old/*" { capabilities = ["read"] }`)
	_, err = c.Create(t.Context(), shopDB, []byte(db), mark)
	wants(err, provider.Denied, `allow create and update on "old/shop/db"`)
}
