package kv

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestSettings(t *testing.T) {
	srv, secrets := writable(t, "secret/*")
	c := connect(t, appRole(srv.URL), secrets)
	many := func(n int) string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint("k", i)] = "v"
		}
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return `{"customMetadata":` + string(raw) + `}`
	}
	custom := func(key, value string) string { return fmt.Sprintf(`{"customMetadata":{%q:%q}}`, key, value) }
	long := strings.Repeat("x", 512)
	cases := map[string]struct {
		reason, metadata string
		want             string // empty: Vault accepts and stores it
	}{
		"Empty":         {"Empty metadata is valid.", `{}`, ""},
		"All":           {"All settings together are valid.", twoSettings[0], ""},
		"Clear":         {"Zero is accepted, and means the engine's default.", `{"maxVersions":0,"deleteVersionAfter":"0s","casRequired":false}`, ""},
		"ManyKeys":      {"63 keys are accepted.", many(63), ""},
		"TooManyKeys":   {"64 keys are rejected, because the mark needs one of Vault's 64.", many(64), "metadata.customMetadata: has 64 keys"},
		"LongKey":       {"A key of 128 bytes is accepted.", custom(long[:128], "v"), ""},
		"TooLongKey":    {"A key of more than 128 bytes is rejected.", custom(long[:129], "v"), `metadata.customMetadata: "xxx`},
		"NoKey":         {"An empty key is rejected.", custom("", "v"), `metadata.customMetadata: "" must`},
		"LongValue":     {"A value of 512 bytes is accepted.", custom("k", long), ""},
		"TooLongValue":  {"A value of more than 512 bytes is rejected.", custom("k", long+"x"), `metadata.customMetadata: "k" must have a value`},
		"NoValue":       {"An empty value is rejected.", custom("k", ""), `metadata.customMetadata: "k" must have a value`},
		"Unprintable":   {"A value with a line break is rejected.", custom("k", "a\nb"), `metadata.customMetadata: "k" must have a value`},
		"Unicode":       {"Letters of any language are accepted.", custom("żółć", "日本 𝕏"), ""},
		"Mark":          {"The key of the mark is rejected.", custom(markKey, "x"), `metadata.customMetadata: "direct-secrets.io/created-by" is reserved`},
		"MarkInCapital": {"A key with the mark's prefix in other case is rejected.", custom("Direct-Secrets.io/x", "x"), `metadata.customMetadata: "Direct-Secrets.io/x" is reserved`},
		"Negative":      {"A negative number is rejected.", `{"maxVersions":-1}`, "metadata.maxVersions: -1"},
		"Huge":          {"A number that is too large is rejected, because Vault would truncate it.", `{"maxVersions":4294967296}`, "metadata.maxVersions: 4294967296"},
		"NotATime":      {"An invalid duration is rejected.", `{"deleteVersionAfter":"soon"}`, "metadata: deleteVersionAfter"},
		"NegativeTime":  {"A negative duration is rejected.", `{"deleteVersionAfter":"-1h"}`, "metadata: deleteVersionAfter"},
		"PartOfASecond": {"A fraction of a second is rejected, because Vault drops it.", `{"deleteVersionAfter":"1500ms"}`, "metadata: deleteVersionAfter"},
		"Number":        {"A value that is not a string is rejected.", `{"customMetadata":{"k":1}}`, "metadata.customMetadata: is a number, and must be a text"},
		"Unknown":       {"An unknown field is rejected.", `{"tags":{"k":"v"}}`, `metadata: unknown field "tags"`},
		"Two":           {"A second object is rejected.", `{} {}`, "metadata: is not one JSON object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv.Reset()
			target := provider.Target{Key: "shop/db", Metadata: []byte(tc.metadata)}
			if tc.want != "" {
				_, observed := c.Observe(t.Context(), target)
				_, created := c.Create(t.Context(), target, []byte(db), mark)
				_, updated := c.Update(t.Context(), target, provider.Observed{}, []byte(db))
				for _, err := range []error{observed, created, updated} {
					if provider.ClassOf(err) != provider.Invalid || !strings.HasPrefix(err.Error(), tc.want) {
						t.Errorf("%s error %v, want Invalid: %s…", tc.reason, err, tc.want)
					}
				}
				if n := len(srv.Calls()); n > 0 {
					t.Errorf("%d calls, want none", n)
				}
				return
			}
			defer srv.Do(http.MethodDelete, "secret/metadata/shop/db", nil)
			if _, err := c.Create(t.Context(), target, []byte(db), mark); err != nil {
				t.Fatal(err)
			}
			if o := mustObserve(t, c, target); len(o.Drift) > 0 || o.Mark != mark {
				t.Errorf("%s drift %q, mark %q", tc.reason, o.Drift, o.Mark)
			}
		})
	}
}

func TestDrift(t *testing.T) {
	srv, secrets := writable(t, "secret/*")
	c := connect(t, appRole(srv.URL), secrets)
	mustPut(t, srv, "shop/db", db)
	srv.Do(http.MethodPost, "secret/metadata/shop/db", M{"custom_metadata": M{"team": "one", "owner": "them"}, "max_versions": 5, "delete_version_after": "720h"})
	all := []string{"customMetadata.team", "maxVersions", "casRequired", "deleteVersionAfter"}
	cases := map[string]struct {
		reason, metadata string
		want             []string
	}{
		"Nothing":  {"Settings that the target does not set do not drift.", `{}`, nil},
		"Same":     {"Equal settings do not drift, however they are spelled.", `{"customMetadata":{"team":"one"},"maxVersions":5,"casRequired":false,"deleteVersionAfter":"43200m"}`, nil},
		"All":      {"Each setting that differs is named.", `{"customMetadata":{"team":"two"},"maxVersions":6,"casRequired":true,"deleteVersionAfter":"1h"}`, all},
		"Default":  {"Zero is compared like any other value.", `{"maxVersions":0,"deleteVersionAfter":"0s"}`, []string{"maxVersions", "deleteVersionAfter"}},
		"Absent":   {"A missing key differs.", `{"customMetadata":{"cost":"low","owner":"them"}}`, []string{"customMetadata.cost"}},
		"JSONNull": {"null does not set anything.", `{"customMetadata":null,"maxVersions":null}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := mustObserve(t, c, provider.Target{Key: "shop/db", Metadata: []byte(tc.metadata)})
			if diff := cmp.Diff(tc.want, o.Drift); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
