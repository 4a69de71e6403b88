package kv

import (
	"net/http"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A value must be stored such that it reads the same, or be rejected before any call.
func TestWriteValues(t *testing.T) {
	srv, secrets := writable(t, "secret/*")
	c := connect(t, appRole(srv.URL), secrets)
	text := func(size int, unit string) string {
		head, tail := `{"a":"`, `"}`
		return head + strings.Repeat(unit, (size-len(head)-len(tail))/len(unit)) + tail
	}
	cases := map[string]struct {
		reason, value string
		want          string // empty: it is written
	}{
		"Object":        {"Members of any type are stored.", `{"s":"x","n":1.5,"b":true,"z":null,"l":[1,{"a":2}],"o":{"p":"q"}}`, ""},
		"Empty":         {"An empty object is stored.", `{}`, ""},
		"Spaces":        {"Other white space does not count as a change.", " {\n\t\"a\" : \"b\" }\r\n", ""},
		"Escapes":       {"Other escapes do not count as a change.", `{"\u0061":"<&>\u2028é\ud835\udd4f"}`, ""},
		"PlainNumbers":  {"Numbers that floating point can hold are stored.", `{"a":0,"b":-1.50,"c":100,"d":9007199254740992,"e":1e21,"f":0.1,"g":-0.0,"h":1E-7,"i":0.00100}`, ""},
		"LongInteger":   {"A number that would be read as 12345678901234567000 is rejected.", `{"a":[{"b":12345678901234567890}]}`, "has a number that KV v2 would round"},
		"OddInteger":    {"The first integer that would be rounded is rejected.", `{"a":9007199254740993}`, "has a number that KV v2 would round"},
		"LongFraction":  {"A number that would lose its last digits is rejected.", `{"a":0.12345678901234567890}`, "has a number that KV v2 would round"},
		"HugeNumber":    {"A number that would make the secret unreadable is rejected.", `{"a":1e400}`, "has a number that KV v2 would round"},
		"TinyNumber":    {"A number that would become 0 is rejected.", `{"a":1e-400}`, "has a number that KV v2 would round"},
		"Nothing":       {"An empty value is rejected.", "", "is not a JSON object"},
		"Bytes":         {"A value that is not text cannot be pushed at all, so it must be encoded.", "\xff\x00", "encode it with a template"},
		"Text":          {"Text that is not JSON is rejected.", "c4n4ry", "is not a JSON object"},
		"String":        {"A JSON string is rejected.", `"c4n4ry"`, "is not a JSON object"},
		"List":          {"A JSON list is rejected.", `["c4n4ry"]`, "is not a JSON object"},
		"Null":          {"JSON null is rejected.", `null`, "is not a JSON object"},
		"Two":           {"Two objects are rejected.", `{"a":"c4n4ry"} {}`, "is not a JSON object"},
		"CutOff":        {"Truncated JSON is rejected.", `{"a":"c4n4ry"`, "is not a JSON object"},
		"NotUTF8":       {"Invalid UTF-8 is rejected, because Vault would replace it.", "{\"a\":\"c4n4ry\xff\"}", "is not UTF-8 text"},
		"Largest":       {"A value at the limit is stored.", text(maxValue, "x"), ""},
		"TooLarge":      {"A value above the limit is rejected.", text(maxValue+1, "x"), "has 1044481 bytes, at most 1044480 are allowed"},
		"LargeInEscape": {"A value that Vault's escapes would make too large is rejected.", text(maxValue/4, "<"), "bytes as Vault encodes it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv.Reset()
			_, err := c.Create(t.Context(), shopDB, []byte(tc.value), mark)
			if tc.want != "" {
				_, updated := c.Update(t.Context(), shopDB, provider.Observed{Version: "1"}, []byte(tc.value))
				for _, err := range []error{err, updated} {
					if provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "c4n4ry") {
						t.Errorf("%s error %v, want Invalid: …%s", tc.reason, err, tc.want)
					}
				}
				if n := len(srv.Calls()); n > 0 {
					t.Errorf("%d calls, want none", n)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Do(http.MethodDelete, "secret/metadata/shop/db", nil)
			o := mustObserve(t, c, shopDB)
			w, err := c.Update(t.Context(), shopDB, o, []byte(tc.value))
			if err != nil || w.Version != "1" {
				t.Errorf("%s writing the same value again: version %q, error %v; want 1", tc.reason, w.Version, err)
			}
			// A value that was read from Vault can be written back, as when only one property changes.
			w, err = c.Update(t.Context(), shopDB, provider.Observed{Data: []byte(`{"x":1}`), Version: o.Version, ID: o.ID, Token: o.Token}, o.Data)
			if err != nil || w.Version != "2" {
				t.Errorf("%s writing back a value as read: version %q, error %v; want 2", tc.reason, w.Version, err)
			}
			if again := mustObserve(t, c, shopDB); string(again.Data) != string(o.Data) {
				t.Errorf("%s the value has changed after writing it back: %d bytes, were %d", tc.reason, len(again.Data), len(o.Data))
			}
		})
	}
}
