package kv

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

func TestVersions(t *testing.T) {
	srv, secrets := vault(t, "1h")
	for _, v := range []string{`{"n":"1"}`, `{"n":"2"}`, `{"n":"3"}`, `{"n":"4"}`} {
		mustPut(t, srv, "a", v)
	}
	srv.Do(http.MethodPost, "secret/delete/a", M{"versions": []int{1}})
	srv.Do(http.MethodPut, "secret/destroy/a", M{"versions": []int{2}})
	mustPut(t, srv, "deleted", `{"n":"1"}`)
	srv.Do(http.MethodDelete, "secret/data/deleted", nil)
	mustPut(t, srv, "destroyed", `{"n":"1"}`)
	srv.Do(http.MethodPut, "secret/destroy/destroyed", M{"versions": []int{1}})
	c := connect(t, appRole(srv.URL), secrets)
	cases := map[string]struct {
		reason string
		ref    provider.Ref
		want   string
	}{
		"Current":         {"No version is the current one.", provider.Ref{Key: "a"}, `4 {"n":"4"}`},
		"Older":           {"Older versions can be read.", provider.Ref{Key: "a", Version: "3"}, `3 {"n":"3"}`},
		"DeletedVersion":  {"Deleted is gone.", provider.Ref{Key: "a", Version: "1"}, "NotFound"},
		"Destroyed":       {"Destroyed is gone.", provider.Ref{Key: "a", Version: "2"}, "NotFound"},
		"Never":           {"It never was.", provider.Ref{Key: "a", Version: "9"}, "NotFound"},
		"Zero":            {"Vault takes 0 for the current one, and a mistake for 0.", provider.Ref{Key: "a", Version: "0"}, "Invalid"},
		"Word":            {"Versions are numbers.", provider.Ref{Key: "a", Version: "latest"}, "Invalid"},
		"Deleted":         {"The current version is deleted.", provider.Ref{Key: "deleted"}, "NotFound"},
		"DestroyedSecret": {"The current version is destroyed.", provider.Ref{Key: "destroyed"}, "NotFound"},
		"Absent":          {"It never was.", provider.Ref{Key: "absent"}, "NotFound"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := c.Get(t.Context(), tc.ref)
			got := v.Version + " " + string(v.Data)
			if err != nil {
				got = string(provider.ClassOf(err))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	found, err := c.list(t.Context(), provider.Query{})
	if err != nil || len(found) != 3 {
		t.Fatalf("Vault lists what is deleted, too: %v, %v", found, err)
	}
	for v, err := range c.Find(t.Context(), provider.Query{}) {
		if err != nil || v.Key != "a" {
			t.Errorf("A find leaves out what is deleted: %q, %v", v.Key, err)
		}
	}
}

// A store that is set up wrongly must not look like an empty one: NotFound deletes Secrets.
func TestWrongMount(t *testing.T) {
	srv, secrets := vault(t, "1h")
	srv.Mount("old", "1")
	srv.Mount("team/kv", "2")
	srv.Policy("reader", `path "*" { capabilities = ["read", "list"] }`)
	cases := map[string]struct {
		path    string
		version v1alpha1.KVVersion
		field   string
	}{
		"NoMount":   {"nowhere", "", "spec.path"},
		"NoMountV1": {"nowhere", "v1", "spec.path"},
		"OldAsNew":  {"old", "v2", "spec.version"},
		"NewAsOld":  {"secret", "v1", "spec.version"},
		"Folder":    {"team/kv/shop", "", "spec.path"},
		"Half":      {"team", "", "spec.path"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := connect(t, appRole(srv.URL, func(s *v1alpha1.VaultKVSpec) { s.Path, s.Version = tc.path, tc.version }), secrets)
			_, err := c.Get(t.Context(), provider.Ref{Key: "a"})
			if provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), tc.field) {
				t.Errorf("Get: error %v, want Invalid that names %s", err, tc.field)
			}
			if _, err := c.Get(t.Context(), provider.Ref{Key: "config"}); provider.ClassOf(err) != provider.Invalid {
				t.Errorf("Get of a name that has a meaning: error %v, want Invalid", err)
			}
			for _, err := range c.Find(t.Context(), provider.Query{}) {
				if provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), tc.field) {
					t.Errorf("Find: error %v, want Invalid that names %s", err, tc.field)
				}
			}
		})
	}
}

func TestKV1(t *testing.T) {
	srv, secrets := vault(t, "1h")
	srv.Mount("old", "1")
	srv.Policy("reader", `path "old/*" { capabilities = ["read", "list"] }`)
	srv.Do(http.MethodPut, "old/shop/db", M{"password": "one"})
	srv.Do(http.MethodPut, "old/shop/deep/x", M{"n": 1})
	c := connect(t, appRole(srv.URL, func(s *v1alpha1.VaultKVSpec) { s.Path, s.Version = "old", v1alpha1.KVv1 }), secrets)
	if err := c.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := read1(t, c); got != db {
		t.Errorf("got %s, want %s", got, db)
	}
	if _, err := c.Get(t.Context(), provider.Ref{Key: "absent"}); !provider.IsNotFound(err) {
		t.Errorf("error %v, want NotFound", err)
	}
	if _, err := c.Get(t.Context(), provider.Ref{Key: "shop/db", Version: "1"}); provider.ClassOf(err) != provider.Invalid {
		t.Errorf("KV v1 has no versions: error %v, want Invalid", err)
	}
	var keys []string
	for v, err := range c.Find(t.Context(), provider.Query{Path: "shop"}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, v.Key)
	}
	if diff := cmp.Diff([]string{"shop/db", "shop/deep/x"}, keys); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	for _, err := range c.Find(t.Context(), provider.Query{Tags: map[string]string{"a": "b"}}) {
		if provider.ClassOf(err) != provider.Invalid {
			t.Errorf("KV v1 has no metadata: error %v, want Invalid", err)
		}
	}
}

// Whatever a key is, it leads to no other path than mount/key.
func TestKeys(t *testing.T) {
	srv, secrets := vault(t, "1h")
	srv.Mount("other", "2")
	srv.Policy("reader", `path "*" { capabilities = ["read", "list", "sudo"] }`)
	srv.Do(http.MethodPost, "other/data/a", M{"data": M{"leaked": "x"}})
	mustPut(t, srv, "a", `{"leaked":"x"}`)
	c := connect(t, appRole(srv.URL), secrets)
	cases := map[string]struct {
		reason, key, path string // no path: refused before any call
	}{
		"Up":           {"To another mount.", "../../other/data/a", ""},
		"UpEnd":        {"To the folder above.", "a/..", ""},
		"UpInside":     {"To the mount's configuration.", "x/../../config", ""},
		"Dots":         {"Vault takes no two dots.", "a..b", ""},
		"Dot":          {"A part that vanishes.", "./a", ""},
		"Leading":      {"A part that vanishes.", "/a", ""},
		"Trailing":     {"A read of a folder.", "a/", ""},
		"Empty":        {"A part that vanishes.", "b//a", ""},
		"Nothing":      {"The mount itself.", "", ""},
		"Newline":      {"Another header.", "a\r\nX-Vault-Token: x", ""},
		"Null":         {"The end of a C string.", "a\x00", ""},
		"NotUTF8":      {"No character.", "a\xff", ""},
		"Long":         {"Longer than any.", strings.Repeat("a", 4096), ""},
		"Query":        {"A question mark is a character.", "a?version=1", "secret/data/a?version=1"},
		"Fragment":     {"A hash is a character.", "a#b", "secret/data/a#b"},
		"EncodedSlash": {"A percent sign is a character.", "..%2fother", ""},
		"Encoded":      {"A percent sign is a character.", "%2e%2e%2f%2e%2e%2fother%2fdata%2fa", "secret/data/%2e%2e%2f%2e%2e%2fother%2fdata%2fa"},
		"Semicolon":    {"So is a semicolon.", "a;b=c", "secret/data/a;b=c"},
		"Backslash":    {"So is a backslash.", `b\a`, `secret/data/b\a`},
		"LookAlike":    {"Full-width dots and slashes are letters.", "．．／other", "secret/data/．．／other"},
		"DataPrefix":   {"data/ is a folder like any other.", "data/a", "secret/data/data/a"},
		"Space":        {"So is a space.", "b a", "secret/data/b a"},
		"Plus":         {"And a plus sign.", "a+b", "secret/data/a+b"},
	}
	reads(t, connectPut(t, srv, c), 1) // so that the login does not count below
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv.Reset()
			v, err := c.Get(t.Context(), provider.Ref{Key: tc.key})
			if err == nil {
				t.Fatalf("%s got %s", tc.reason, v.Data)
			}
			var paths []string
			for _, call := range srv.Calls() {
				if vaulttest.IsRead(call) {
					paths = append(paths, call.Path)
				}
			}
			want, class := []string(nil), provider.Invalid
			if tc.path != "" {
				want, class = []string{tc.path}, provider.NotFound
			}
			if diff := cmp.Diff(want, paths); diff != "" || provider.ClassOf(err) != class {
				t.Errorf("%s error %v, want %s; paths -want, +got:\n%s", tc.reason, err, class, diff)
			}
		})
	}
	for _, path := range []string{"../other", "a/../..", "//", "a//b", "x/./y"} {
		srv.Reset()
		for _, err := range c.Find(t.Context(), provider.Query{Path: path}) {
			if provider.ClassOf(err) != provider.Invalid {
				t.Errorf("find %q: error %v, want Invalid", path, err)
			}
		}
		if n := len(srv.Calls()); n > 0 {
			t.Errorf("find %q: %d calls, want none", path, n)
		}
	}
}

func connectPut(t *testing.T, srv *vaulttest.Server, c *Client) *Client {
	mustPut(t, srv, "shop/db", db)
	return c
}

func TestAnswers(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	c := connect(t, appRole(srv.URL), secrets)
	reads(t, c, 1)
	answer := func(status int, header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if name, value, ok := strings.Cut(header, ": "); ok {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body)) // The client reads all that it wants.
		}
	}
	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   provider.Class
	}{
		"Sealed":       {"A sealed Vault proves nothing.", answer(503, "", `{"errors":["Vault is sealed"]}`), provider.Unavailable},
		"Standby":      {"Nor does a standby.", answer(473, "", `{}`), provider.Unavailable},
		"Recovery":     {"Nor does another.", answer(472, "", `{}`), provider.Unavailable},
		"Internal":     {"An error is none of ours.", answer(500, "", `{"errors":["canary-value"]}`), provider.Unavailable},
		"Quota":        {"A quota says when.", answer(429, "Retry-After: 7", `{"errors":["request path: rate limit quota exceeded"]}`), provider.Throttled},
		"BadRequest":   {"A mistake of the spec.", answer(400, "", `{"errors":["canary-value"]}`), provider.Invalid},
		"Teapot":       {"What nobody knows proves nothing.", answer(418, "", `canary-value`), provider.Unavailable},
		"Proxy404":     {"A page of a proxy is no answer of Vault.", answer(404, "", `<html>canary-value</html>`), provider.Unavailable},
		"Proxy403":     {"Nor is this one.", answer(403, "", `<html>canary-value</html>`), provider.Unavailable},
		"Redirect":     {"The token is for this server only.", answer(307, "Location: http://127.0.0.1:1/", ``), provider.Unavailable},
		"Empty":        {"An answer without a value proves nothing.", answer(200, "", ``), provider.Unavailable},
		"NotJSON":      {"Nor one that is damaged.", answer(200, "", `{"data":{"data":{"canary-value":`), provider.Unavailable},
		"NullData":     {"Nor one whose value is null.", answer(200, "", `{"data":{"data":null,"metadata":{"version":1}}}`), provider.Unavailable},
		"List":         {"Nor one whose value is no object.", answer(200, "", `{"data":{"data":["canary-value"],"metadata":{"version":1}}}`), provider.Unavailable},
		"WrongMeta":    {"Nor one whose version is no number.", answer(200, "", `{"data":{"data":{},"metadata":{"version":"canary-value"}}}`), provider.Unavailable},
		"EmptyNotJSON": {"404 without a word is not NotFound.", answer(404, "", ``), provider.Unavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			defer srv.Inject(vaulttest.IsRead, tc.answer)()
			_, err := c.Get(t.Context(), provider.Ref{Key: "shop/db"})
			if provider.ClassOf(err) != tc.want || strings.Contains(err.Error(), "canary") || strings.Contains(provider.Safe(err).Error(), "canary") {
				t.Errorf("%s error %v (%s), want %s", tc.reason, err, provider.ClassOf(err), tc.want)
			}
			if tc.want == provider.Throttled && provider.RetryAfter(err).Seconds() != 7 {
				t.Errorf("retry after %s, want 7s", provider.RetryAfter(err))
			}
		})
	}
}
