package kv

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestWritePolicies checks that errors name the missing capability. Real policies of Vault decide.
func TestWritePolicies(t *testing.T) {
	srv, secrets := vault(t, "1h")
	allow := func(instead map[string]string) {
		rules := ""
		for part, allowed := range map[string]string{
			"data":     `"create", "read", "update"`,
			"metadata": `"create", "read", "update", "patch", "delete"`,
		} {
			if other, ok := instead[part]; ok {
				allowed = other
			}
			rules += fmt.Sprintf("path \"secret/%s/*\" { capabilities = [%s] }\n", part, allowed)
		}
		srv.Policy("reader", rules)
	}
	c := connect(t, appRole(srv.URL), secrets)
	cases := map[string]struct {
		reason  string
		instead map[string]string
		action  string
		want    string // empty: no error
	}{
		"All":               {"The policy in the documentation is enough.", nil, "create", ""},
		"PatchOnly":         {"The capability patch is enough for metadata.", map[string]string{"metadata": `"read", "patch", "delete"`}, "create", ""},
		"NoPatch":           {"Policies without patch work, too.", map[string]string{"metadata": `"create", "read", "update", "delete"`}, "create", ""},
		"NoMark":            {"The error names the capabilities for the mark.", map[string]string{"metadata": `"read"`}, "create", `Denied: secret "shop/db": access denied; allow patch, or create and update, on "secret/metadata/shop/db" in a policy`},
		"NoCreate":          {"The error names the missing capability create.", map[string]string{"data": `"read", "update"`}, "create", `Denied: secret "shop/db": access denied; allow create and update on "secret/data/shop/db" in a policy`},
		"NoUpdate":          {"The error names the missing capability update.", map[string]string{"data": `"read", "create"`}, "update", `Denied: secret "shop/db": access denied; allow create and update on "secret/data/shop/db" in a policy`},
		"NoRead":            {"The error names the missing capability read for the value.", map[string]string{"data": `"create", "update"`}, "observe", `Denied: secret "shop/db": access denied; allow read on "secret/data/shop/db" in a policy`},
		"NoReadOfMetadata":  {"The error names the missing capability read for the metadata.", map[string]string{"metadata": `"create", "update", "patch", "delete"`}, "observe", `Denied: secret "shop/db": access denied; allow read on "secret/metadata/shop/db" in a policy`},
		"NoDelete":          {"The error names the missing capability delete.", map[string]string{"metadata": `"create", "read", "update", "patch"`}, "delete", `Denied: secret "shop/db": access denied; allow delete on "secret/metadata/shop/db" in a policy`},
		"NoPatchOfSettings": {"A change of settings without patch keeps the other settings.", map[string]string{"metadata": `"create", "read", "update", "delete"`}, "settings", ""},
		"Settings":          {"A change of settings with patch keeps the other settings.", nil, "settings", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			allow(nil)
			defer srv.Do(http.MethodDelete, "secret/metadata/shop/db", nil)
			target := provider.Target{Key: "shop/db", Metadata: []byte(`{"customMetadata":{"team":"shop"},"maxVersions":4}`)}
			var seen provider.Observed
			if tc.action != "create" {
				mustCreate(t, c)
				srv.Do(http.MethodPost, "secret/metadata/shop/db", M{"custom_metadata": M{markKey: mark, "owner": "them", "team": "old"}, "cas_required": true})
				seen = mustObserve(t, c, target)
			}
			allow(tc.instead)
			err := map[string]func() error{
				"observe":  func() error { _, err := c.Observe(t.Context(), shopDB); return err },
				"create":   func() error { _, err := c.Create(t.Context(), target, []byte(db), mark); return err },
				"update":   func() error { _, err := c.Update(t.Context(), target, seen, []byte(`{"b":"2"}`)); return err },
				"settings": func() error { _, err := c.Update(t.Context(), target, seen, nil); return err },
				"delete":   func() error { return c.Delete(t.Context(), shopDB, seen) },
			}[tc.action]()
			got := ""
			if err != nil {
				got = fmt.Sprintf("%s: %s", provider.ClassOf(err), err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			custom := map[string]M{
				"create":   {markKey: mark, "team": "shop"},
				"settings": {markKey: mark, "team": "shop", "owner": "them"},
			}[tc.action]
			if err != nil || custom == nil {
				return
			}
			m := srv.Do(http.MethodGet, "secret/metadata/shop/db", nil)
			want := M{"custom_metadata": custom, "max_versions": 4.0, "cas_required": tc.action == "settings", "current_version": 1.0}
			for k := range m {
				if _, ok := want[k]; !ok {
					delete(m, k)
				}
			}
			if diff := cmp.Diff(want, m); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWriteAnswers(t *testing.T) {
	srv, secrets := writable(t, "secret/*")
	c := connect(t, appRole(srv.URL), secrets)
	seen := mustCreate(t, c)
	respondWith := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body)) // The client checks the answer.
		}
	}
	cases := map[string]struct {
		reason       string
		method, path string
		answer       http.HandlerFunc
		want         provider.Class
	}{
		"Moved":       {"A changed version is a Conflict.", http.MethodPut, "data", respondWith(400, `{"errors":["check-and-set parameter did not match the current version"]}`), provider.Conflict},
		"BadRequest":  {"Another rejected request is Invalid, not a Conflict.", http.MethodPut, "data", respondWith(400, `{"errors":["c4n4ry"]}`), provider.Invalid},
		"TooLarge":    {"A value that is too large for Vault is Invalid.", http.MethodPut, "data", respondWith(413, `{"errors":["c4n4ry"]}`), provider.Invalid},
		"ProxyLarge":  {"A value that is too large for a proxy is Invalid.", http.MethodPut, "data", respondWith(413, `<html>c4n4ry</html>`), provider.Invalid},
		"ManyMembers": {"A value with too many members is Invalid.", http.MethodPut, "data", respondWith(500, `{"errors":["c4n4ry: JSON object exceeds allowed entry count"]}`), provider.Invalid},
		"Twice":       {"A value with a duplicate member is Invalid.", http.MethodPut, "data", respondWith(500, `{"errors":["duplicate key 'c4n4ry' in object"]}`), provider.Invalid},
		"Internal":    {"An internal error of Vault is Unavailable.", http.MethodPut, "data", respondWith(500, `{"errors":["c4n4ry"]}`), provider.Unavailable},
		"Sealed":      {"A sealed Vault is Unavailable.", http.MethodPut, "data", respondWith(503, `{"errors":["Vault is sealed"]}`), provider.Unavailable},
		"Quota":       {"The error of a quota is Throttled.", http.MethodPut, "data", respondWith(429, `{"errors":["c4n4ry"]}`), provider.Throttled},
		"ProxyDenied": {"A proxy's page is Unavailable, not Denied.", http.MethodPut, "data", respondWith(403, `<html>c4n4ry</html>`), provider.Unavailable},
		"NoVersion":   {"An answer without the version is Unavailable.", http.MethodPut, "data", respondWith(200, `{"data":{}}`), provider.Unavailable},
		"Version":     {"An answer with another version is Unavailable.", http.MethodPut, "data", respondWith(200, `{"data":{"version":7,"created_time":"c4n4ry"}}`), provider.Unavailable},
		"NoMetadata":  {"An answer without metadata is Unavailable.", http.MethodGet, "metadata", respondWith(200, `{"data":null}`), provider.Unavailable},
		"HalfOfIt":    {"An answer with incomplete metadata is Unavailable.", http.MethodGet, "metadata", respondWith(200, `{"data":{"created_time":"x","current_version":1}}`), provider.Unavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := storedState(srv)
			defer srv.Inject(first(1, tc.method, "secret/"+tc.path+"/shop/db"), tc.answer)()
			var err error
			if tc.method == http.MethodGet {
				_, err = c.Observe(t.Context(), shopDB)
			} else {
				_, err = c.Update(t.Context(), shopDB, seen, []byte(`{"c4n4ry":"2"}`))
			}
			if err == nil || provider.ClassOf(err) != tc.want || strings.Contains(err.Error(), "c4n4ry") || strings.Contains(provider.Safe(err).Error(), "c4n4ry") {
				t.Errorf("%s error %v (%s), want %s", tc.reason, err, provider.ClassOf(err), tc.want)
			}
			if tc.want == provider.Throttled && provider.RetryAfter(err) != 7*time.Second {
				t.Errorf("retry after %s, want 7s", provider.RetryAfter(err))
			}
			if diff := cmp.Diff(before, storedState(srv)); diff != "" {
				t.Errorf("-before, +after:\n%s", diff)
			}
		})
	}
}
