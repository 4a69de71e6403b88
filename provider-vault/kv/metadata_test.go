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
		want             string // none: Vault takes it, and has it then
	}{
		"Empty":         {"It need not say anything.", `{}`, ""},
		"All":           {"It may say all.", twoSettings[0], ""},
		"Clear":         {"Zero is the default of the engine.", `{"maxVersions":0,"deleteVersionAfter":"0s","casRequired":false}`, ""},
		"ManyKeys":      {"One of 64 is ours.", many(63), ""},
		"TooManyKeys":   {"One of 64 is ours.", many(64), "metadata.customMetadata: 64 keys"},
		"LongKey":       {"Vault's limit is 128.", custom(long[:128], "v"), ""},
		"TooLongKey":    {"Vault's limit is 128.", custom(long[:129], "v"), "metadata.customMetadata: key"},
		"NoKey":         {"Vault refuses it.", custom("", "v"), "metadata.customMetadata: key"},
		"LongValue":     {"Vault's limit is 512.", custom("k", long), ""},
		"TooLongValue":  {"Vault's limit is 512.", custom("k", long+"x"), `metadata.customMetadata: the value of "k"`},
		"NoValue":       {"Vault refuses it.", custom("k", ""), `metadata.customMetadata: the value of "k"`},
		"Unprintable":   {"Vault refuses it.", custom("k", "a\nb"), `metadata.customMetadata: the value of "k"`},
		"Unicode":       {"Letters of any language can be printed.", custom("żółć", "日本 𝕏"), ""},
		"Mark":          {"Nobody forges a mark.", custom(markKey, "x"), "metadata.customMetadata: keys such as"},
		"MarkInCapital": {"Nor one that looks like it.", custom("Direct-Secrets.io/x", "x"), "metadata.customMetadata: keys such as"},
		"Negative":      {"There is no such number.", `{"maxVersions":-1}`, "metadata.maxVersions: -1"},
		"Huge":          {"Vault would cut it.", `{"maxVersions":4294967296}`, "metadata.maxVersions: 4294967296"},
		"NotATime":      {"It cannot be read.", `{"deleteVersionAfter":"soon"}`, "metadata: deleteVersionAfter"},
		"NegativeTime":  {"Vault refuses it.", `{"deleteVersionAfter":"-1h"}`, "metadata: deleteVersionAfter"},
		"PartOfASecond": {"Vault drops it.", `{"deleteVersionAfter":"1500ms"}`, "metadata: deleteVersionAfter"},
		"Number":        {"It must be a string.", `{"customMetadata":{"k":1}}`, "metadata: cannot unmarshal number"},
		"Unknown":       {"It would be forgotten.", `{"tags":{"k":"v"}}`, `metadata: unknown field "tags"`},
		"Two":           {"The second would be forgotten.", `{} {}`, "metadata: is not one JSON object"},
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
		"Nothing":  {"What is not named does not drift.", `{}`, nil},
		"Same":     {"Nor what is as it should be, however it is spelled.", `{"customMetadata":{"team":"one"},"maxVersions":5,"casRequired":false,"deleteVersionAfter":"43200m"}`, nil},
		"All":      {"All that differs is named.", `{"customMetadata":{"team":"two"},"maxVersions":6,"casRequired":true,"deleteVersionAfter":"1h"}`, all},
		"Default":  {"Zero is a setting.", `{"maxVersions":0,"deleteVersionAfter":"0s"}`, []string{"maxVersions", "deleteVersionAfter"}},
		"Absent":   {"A key that is not there differs.", `{"customMetadata":{"cost":"low","owner":"them"}}`, []string{"customMetadata.cost"}},
		"JSONNull": {"null names nothing.", `{"customMetadata":null,"maxVersions":null}`, nil},
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
