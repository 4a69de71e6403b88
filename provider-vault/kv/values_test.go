package kv

import (
	"net/http"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A value is stored such that it reads the same, or refused before any call.
func TestWriteValues(t *testing.T) {
	srv, secrets := writable(t, "secret/*")
	c := connect(t, appRole(srv.URL), secrets)
	text := func(size int, unit string) string {
		head, tail := `{"a":"`, `"}`
		return head + strings.Repeat(unit, (size-len(head)-len(tail))/len(unit)) + tail
	}
	cases := map[string]struct {
		reason, value string
		want          string // none: it is written
	}{
		"Object":        {"All members of any kind.", `{"s":"x","n":1.5,"b":true,"z":null,"l":[1,{"a":2}],"o":{"p":"q"}}`, ""},
		"Empty":         {"KV v2 takes it.", `{}`, ""},
		"Spaces":        {"Spelling is Vault's own.", " {\n\t\"a\" : \"b\" }\r\n", ""},
		"Escapes":       {"So are escapes.", `{"\u0061":"<&>\u2028é\ud835\udd4f"}`, ""},
		"PlainNumbers":  {"These are the same as floating point.", `{"a":0,"b":-1.50,"c":100,"d":9007199254740992,"e":1e21,"f":0.1,"g":-0.0,"h":1E-7,"i":0.00100}`, ""},
		"LongInteger":   {"It would be read as 12345678901234567000.", `{"a":[{"b":12345678901234567890}]}`, "has a number that KV v2 would round"},
		"OddInteger":    {"It is the first that would be rounded.", `{"a":9007199254740993}`, "has a number that KV v2 would round"},
		"LongFraction":  {"It would lose its last digits.", `{"a":0.12345678901234567890}`, "has a number that KV v2 would round"},
		"HugeNumber":    {"Vault could not read the secret any more.", `{"a":1e400}`, "has a number that KV v2 would round"},
		"TinyNumber":    {"It would become 0.", `{"a":1e-400}`, "has a number that KV v2 would round"},
		"Nothing":       {"It is no JSON.", "", "is no JSON object"},
		"Text":          {"It is no JSON.", "c4n4ry", "is no JSON object"},
		"String":        {"It is no object.", `"c4n4ry"`, "is no JSON object"},
		"List":          {"It is no object.", `["c4n4ry"]`, "is no JSON object"},
		"Null":          {"It is no object.", `null`, "is no JSON object"},
		"Two":           {"They are not one.", `{"a":"c4n4ry"} {}`, "is no JSON object"},
		"CutOff":        {"It is no JSON.", `{"a":"c4n4ry"`, "is no JSON object"},
		"NotUTF8":       {"Vault would replace it.", "{\"a\":\"c4n4ry\xff\"}", "is no JSON object"},
		"Largest":       {"It is the limit.", text(maxValue, "x"), ""},
		"TooLarge":      {"It is above the limit.", text(maxValue+1, "x"), "has 1044481 bytes, and at most 1044480 are written"},
		"LargeInEscape": {"Vault spells < with six bytes.", text(maxValue/4, "<"), "bytes as Vault spells it"},
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
				t.Errorf("%s The same again: version %q, error %v; want 1", tc.reason, w.Version, err)
			}
			// What Vault gives can be written back, as is done where a property changes.
			w, err = c.Update(t.Context(), shopDB, provider.Observed{Data: []byte(`{"x":1}`), Version: o.Version, ID: o.ID, Token: o.Token}, o.Data)
			if err != nil || w.Version != "2" {
				t.Errorf("%s As Vault gives it: version %q, error %v; want 2", tc.reason, w.Version, err)
			}
			if again := mustObserve(t, c, shopDB); string(again.Data) != string(o.Data) {
				t.Errorf("%s Written back it has become another: %d bytes, were %d", tc.reason, len(again.Data), len(o.Data))
			}
		})
	}
}
