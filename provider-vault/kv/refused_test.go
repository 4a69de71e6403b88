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

// What a policy must allow is said by what is missing, and Vault's real policies decide.
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
		want    string // none: no error
	}{
		"All":               {"All that is named in the documentation.", nil, "create", ""},
		"PatchOnly":         {"A patch needs no more.", map[string]string{"metadata": `"read", "patch", "delete"`}, "create", ""},
		"NoPatch":           {"Older policies do not know patch.", map[string]string{"metadata": `"create", "read", "update", "delete"`}, "create", ""},
		"NoMark":            {"Nothing can mark it.", map[string]string{"metadata": `"read"`}, "create", `Denied: secret "shop/db": access denied; allow patch, or create and update, on "secret/metadata/shop/db" in a policy`},
		"NoCreate":          {"It may not be created.", map[string]string{"data": `"read", "update"`}, "create", `Denied: secret "shop/db": access denied; allow create and update on "secret/data/shop/db" in a policy`},
		"NoUpdate":          {"It may not be updated.", map[string]string{"data": `"read", "create"`}, "update", `Denied: secret "shop/db": access denied; allow create and update on "secret/data/shop/db" in a policy`},
		"NoRead":            {"It may not be read.", map[string]string{"data": `"create", "update"`}, "observe", `Denied: secret "shop/db": access denied; allow read on "secret/data/shop/db" in a policy`},
		"NoReadOfMetadata":  {"Nor may its metadata.", map[string]string{"metadata": `"create", "update", "patch", "delete"`}, "observe", `Denied: secret "shop/db": access denied; allow read on "secret/metadata/shop/db" in a policy`},
		"NoDelete":          {"It may not be deleted.", map[string]string{"metadata": `"create", "read", "update", "patch"`}, "delete", `Denied: secret "shop/db": access denied; allow delete on "secret/metadata/shop/db" in a policy`},
		"NoPatchOfSettings": {"Settings without patch leave the rest alone.", map[string]string{"metadata": `"create", "read", "update", "delete"`}, "settings", ""},
		"Settings":          {"So they do with it.", nil, "settings", ""},
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
	says := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body)) // The client reads all that it wants.
		}
	}
	cases := map[string]struct {
		reason       string
		method, path string
		answer       http.HandlerFunc
		want         provider.Class
	}{
		"Moved":       {"The version is another.", http.MethodPut, "data", says(400, `{"errors":["check-and-set parameter did not match the current version"]}`), provider.Conflict},
		"BadRequest":  {"Other mistakes are none of others.", http.MethodPut, "data", says(400, `{"errors":["c4n4ry"]}`), provider.Invalid},
		"TooLarge":    {"Vault or its storage takes less.", http.MethodPut, "data", says(413, `{"errors":["c4n4ry"]}`), provider.Invalid},
		"ProxyLarge":  {"So may a proxy.", http.MethodPut, "data", says(413, `<html>c4n4ry</html>`), provider.Invalid},
		"ManyMembers": {"Vault does not read the value.", http.MethodPut, "data", says(500, `{"errors":["c4n4ry: JSON object exceeds allowed entry count"]}`), provider.Invalid},
		"Twice":       {"Nor with a member twice.", http.MethodPut, "data", says(500, `{"errors":["duplicate key 'c4n4ry' in object"]}`), provider.Invalid},
		"Internal":    {"An error is none of ours.", http.MethodPut, "data", says(500, `{"errors":["c4n4ry"]}`), provider.Unavailable},
		"Sealed":      {"Nor is a seal.", http.MethodPut, "data", says(503, `{"errors":["Vault is sealed"]}`), provider.Unavailable},
		"Quota":       {"A quota says when.", http.MethodPut, "data", says(429, `{"errors":["c4n4ry"]}`), provider.Throttled},
		"ProxyDenied": {"A page of a proxy is no answer of Vault.", http.MethodPut, "data", says(403, `<html>c4n4ry</html>`), provider.Unavailable},
		"NoVersion":   {"An answer without the version proves nothing.", http.MethodPut, "data", says(200, `{"data":{}}`), provider.Unavailable},
		"Version":     {"Nor one with another version.", http.MethodPut, "data", says(200, `{"data":{"version":7,"created_time":"c4n4ry"}}`), provider.Unavailable},
		"NoMetadata":  {"Nor one without metadata.", http.MethodGet, "metadata", says(200, `{"data":null}`), provider.Unavailable},
		"HalfOfIt":    {"Nor half of it.", http.MethodGet, "metadata", says(200, `{"data":{"created_time":"x","current_version":1}}`), provider.Unavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := stands(srv)
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
			if diff := cmp.Diff(before, stands(srv)); diff != "" {
				t.Errorf("-before, +after:\n%s", diff)
			}
		})
	}
}
