package kv

import (
	"fmt"
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
		"Current":         {"Without a version the current one is read.", provider.Ref{Key: "a"}, `4 {"n":"4"}`},
		"Older":           {"Older versions can be read.", provider.Ref{Key: "a", Version: "3"}, `3 {"n":"3"}`},
		"DeletedVersion":  {"A deleted version is NotFound.", provider.Ref{Key: "a", Version: "1"}, "NotFound"},
		"Destroyed":       {"A destroyed version is NotFound.", provider.Ref{Key: "a", Version: "2"}, "NotFound"},
		"Never":           {"An unknown version is NotFound.", provider.Ref{Key: "a", Version: "9"}, "NotFound"},
		"Zero":            {"The version 0 is rejected, because Vault would read the current one.", provider.Ref{Key: "a", Version: "0"}, "Invalid"},
		"Word":            {"A version that is not a number is rejected.", provider.Ref{Key: "a", Version: "latest"}, "Invalid"},
		"Deleted":         {"A secret whose current version is deleted is NotFound.", provider.Ref{Key: "deleted"}, "NotFound"},
		"DestroyedSecret": {"A secret whose current version is destroyed is NotFound.", provider.Ref{Key: "destroyed"}, "NotFound"},
		"Absent":          {"An unknown secret is NotFound.", provider.Ref{Key: "absent"}, "NotFound"},
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
		t.Fatalf("Vault must list deleted secrets, too: %v, %v", found, err)
	}
	for v, err := range c.Find(t.Context(), provider.Query{}) {
		if err != nil || v.Key != "a" {
			t.Errorf("a find must omit deleted secrets: %q, %v", v.Key, err)
		}
	}
}

// A wrongly configured store must not look like an empty one, because NotFound deletes Secrets.
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
				t.Errorf("Get of a name with a special meaning: error %v, want Invalid", err)
			}
			for _, err := range c.Find(t.Context(), provider.Query{}) {
				if provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), tc.field) {
					t.Errorf("Find: error %v, want Invalid that names %s", err, tc.field)
				}
			}
		})
	}
}

// TestKeys checks that every key is read at the path mount/key, or rejected.
func TestKeys(t *testing.T) {
	srv, secrets := vault(t, "1h")
	srv.Mount("other", "2")
	srv.Policy("reader", `path "*" { capabilities = ["read", "list", "sudo"] }`)
	srv.Do(http.MethodPost, "other/data/a", M{"data": M{"leaked": "x"}})
	mustPut(t, srv, "a", `{"leaked":"x"}`)
	c := connect(t, appRole(srv.URL), secrets)
	cases := map[string]struct {
		reason, key, path string // no path: rejected before any call
	}{
		"Up":           {"A key that leads to another mount is rejected.", "../../other/data/a", ""},
		"UpEnd":        {"A key that leads to its parent folder is rejected.", "a/..", ""},
		"UpInside":     {"A key that leads to the mount's configuration is rejected.", "x/../../config", ""},
		"Dots":         {"Two dots inside a name are part of the key.", "a..b", "secret/data/a..b"},
		"DotsFirst":    {"Two dots before a name are part of the key.", "..a", "secret/data/..a"},
		"DotsLast":     {"Two dots after a name are part of the key.", "x/a../b", "secret/data/x/a../b"},
		"Dot":          {"A key with ./ is rejected, because the part would vanish.", "./a", ""},
		"Leading":      {"A key with a leading slash is rejected, because it would vanish.", "/a", ""},
		"Trailing":     {"A key that ends in a slash is rejected, because it names a folder.", "a/", ""},
		"Empty":        {"A key with two slashes is rejected, because one would vanish.", "b//a", ""},
		"Nothing":      {"An empty key is rejected, because it names the mount.", "", ""},
		"Newline":      {"A key with a line break is rejected, because it could add a header.", "a\r\nX-Vault-Token: x", ""},
		"Null":         {"A key with a zero byte is rejected.", "a\x00", ""},
		"NotUTF8":      {"Invalid UTF-8 is rejected.", "a\xff", ""},
		"Long":         {"A key that is too long is rejected.", strings.Repeat("a", 4096), ""},
		"Query":        {"A question mark is part of the key.", "a?version=1", "secret/data/a?version=1"},
		"Fragment":     {"A hash is part of the key.", "a#b", "secret/data/a#b"},
		"EncodedSlash": {"An encoded slash is part of the key.", "..%2fother", "secret/data/..%2fother"},
		"Encoded":      {"A percent sign is part of the key.", "%2e%2e%2f%2e%2e%2fother%2fdata%2fa", "secret/data/%2e%2e%2f%2e%2e%2fother%2fdata%2fa"},
		"Semicolon":    {"A semicolon is part of the key.", "a;b=c", "secret/data/a;b=c"},
		"Backslash":    {"A backslash is part of the key.", `b\a`, `secret/data/b\a`},
		"LookAlike":    {"Full-width dots and slashes are part of the key.", "．．／other", "secret/data/．．／other"},
		"DataPrefix":   {"data/ is a folder in the key.", "data/a", "secret/data/data/a"},
		"Space":        {"A space is part of the key.", "b a", "secret/data/b a"},
		"Plus":         {"A plus sign is part of the key.", "a+b", "secret/data/a+b"},
	}
	reads(t, connectPut(t, srv, c), 1) // so that the login is not counted below
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
			_, _ = w.Write([]byte(body)) // The client checks the answer.
		}
	}
	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   provider.Class
	}{
		"Sealed":       {"A sealed Vault is Unavailable.", answer(503, "", `{"errors":["Vault is sealed"]}`), provider.Unavailable},
		"Standby":      {"A standby is Unavailable.", answer(473, "", `{}`), provider.Unavailable},
		"Recovery":     {"Another kind of standby is Unavailable.", answer(472, "", `{}`), provider.Unavailable},
		"Internal":     {"An internal error of Vault is Unavailable.", answer(500, "", `{"errors":["canary-value"]}`), provider.Unavailable},
		"Quota":        {"The wait that a quota asks for is passed on.", answer(429, "Retry-After: 7", `{"errors":["request path: rate limit quota exceeded"]}`), provider.Throttled},
		"BadRequest":   {"A rejected request is Invalid.", answer(400, "", `{"errors":["canary-value"]}`), provider.Invalid},
		"Teapot":       {"An unknown status is Unavailable.", answer(418, "", `canary-value`), provider.Unavailable},
		"Proxy404":     {"A proxy's page with status 404 is Unavailable, not NotFound.", answer(404, "", `<html>canary-value</html>`), provider.Unavailable},
		"Proxy403":     {"A proxy's page with status 403 is Unavailable, not Denied.", answer(403, "", `<html>canary-value</html>`), provider.Unavailable},
		"Redirect":     {"A redirect is not followed, because the token is for this server only.", answer(307, "Location: http://127.0.0.1:1/", ``), provider.Unavailable},
		"Empty":        {"An answer without a value is Unavailable.", answer(200, "", ``), provider.Unavailable},
		"NotJSON":      {"A damaged answer is Unavailable.", answer(200, "", `{"data":{"data":{"canary-value":`), provider.Unavailable},
		"NullData":     {"A null value is Unavailable.", answer(200, "", `{"data":{"data":null,"metadata":{"version":1}}}`), provider.Unavailable},
		"List":         {"A value that is not an object is Unavailable.", answer(200, "", `{"data":{"data":["canary-value"],"metadata":{"version":1}}}`), provider.Unavailable},
		"WrongMeta":    {"A version that is not a number is Unavailable.", answer(200, "", `{"data":{"data":{},"metadata":{"version":"canary-value"}}}`), provider.Unavailable},
		"EmptyNotJSON": {"A 404 without a body is not NotFound.", answer(404, "", ``), provider.Unavailable},
	}
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusPermanentRedirect} {
		tc := cases["Redirect"]
		tc.answer = answer(status, "Location: http://127.0.0.1:1/", "")
		cases[fmt.Sprint("Redirect", status)] = tc
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			defer srv.Inject(vaulttest.IsRead, tc.answer)()
			_, err := c.Get(t.Context(), provider.Ref{Key: "shop/db"})
			if provider.ClassOf(err) != tc.want || strings.Contains(err.Error(), "canary") || strings.Contains(provider.Safe(err).Error(), "canary") {
				t.Errorf("%s error %v (%s), want %s", tc.reason, err, provider.ClassOf(err), tc.want)
			}
			if strings.HasPrefix(name, "Redirect") && !strings.Contains(err.Error(), "set spec.server") {
				t.Errorf("%s error %v, want one that says to set spec.server", tc.reason, err)
			}
			if tc.want == provider.Throttled && provider.RetryAfter(err).Seconds() != 7 {
				t.Errorf("retry after %s, want 7s", provider.RetryAfter(err))
			}
		})
	}
}
