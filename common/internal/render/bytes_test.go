package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestBytes reads values that are not text, and values with null bytes.
func TestBytes(t *testing.T) {
	type spec = v1alpha1.ExternalSecretSpec
	const keystore = "\xfe\xed\x00"
	from := remote{
		"prod/shop/db": {Value: provider.Value{
			Key: "shop/db", Version: "1", Data: []byte(`{"password":"` + canary + `","port":"a\u0000b"}`), Binary: map[string][]byte{"keystore.jks": []byte(keystore)},
		}},
		"prod/shop/db#": {Value: provider.Value{Key: "shop/db", Version: "1", Metadata: map[string]string{"team": "shop"}, Binary: map[string][]byte{"team": []byte(keystore)}}},
		"prod?all":      {Found: []provider.Value{{Key: "db", Version: "1", Binary: map[string][]byte{"a": {0xff}}}}},
	}
	from["prod/named"] = provider.Answer{Value: provider.Value{Key: "named", Version: "1", Data: []byte(`{"host":"h"}`), Further: map[string]provider.Further{"web.host": {Data: []byte("h")}}}}
	from["prod/named#"] = provider.Answer{Value: provider.Value{Key: "named", Version: "1", Metadata: map[string]string{"web.host": "tag"}, Further: from["prod/named"].Value.Further}}
	from["prod/twice"] = provider.Answer{Value: provider.Value{Key: "twice", Version: "1", Data: []byte(`{"a":"1","b":"2"}`), Further: map[string]provider.Further{"port": {Refused: "two fields have this label; use a or b"}}}}
	from["prod?twice"] = provider.Answer{Found: []provider.Value{from["prod/twice"].Value}}
	of := func(key, property string, change ...func(*v1alpha1.RemoteRef)) func(*spec) {
		return func(s *spec) {
			s.Data = []v1alpha1.DataEntry{entry("k", key, property)}
			for _, f := range change {
				f(&s.Data[0].RemoteRef)
			}
		}
	}
	allOf := func(key string) func(*spec) {
		return func(s *spec) { s.Data, s.DataFrom = nil, []v1alpha1.DataFromEntry{extract(key)} }
	}
	one := func(property string, change ...func(*v1alpha1.RemoteRef)) func(*spec) {
		return of("shop/db", property, change...)
	}
	all := func(nulls string) func(*spec) {
		return func(s *spec) {
			e := extract("shop/db")
			e.Extract.NullBytePolicy = nulls
			s.Data, s.DataFrom = nil, []v1alpha1.DataFromEntry{e}
		}
	}
	written := func(literal, strategy string) func(*spec) {
		return func(s *spec) {
			one("password")(s)
			s.Target.Template = &v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{{Literal: &literal, ValuesDecodingStrategy: strategy}}}
		}
	}
	whole := map[string]string{"password": canary, "port": "a\x00b", "keystore.jks": keystore}
	cases := map[string]struct {
		reason string
		change func(*spec)
		want   map[string]string
		err    string
	}{
		"Property":   {"A property is read byte for byte.", one("keystore.jks"), map[string]string{"k": keystore}, ""},
		"Escaped":    {"It has the names of a member of JSON.", one(`keystore\.jks`), map[string]string{"k": keystore}, ""},
		"Text":       {"The other properties are read as before.", one("password"), map[string]string{"k": canary}, ""},
		"NoProperty": {"A property that does not exist is NotFound.", one("other"), nil, `NotFound: "shop/db" in FakeStore "prod": it has no property "other"`},
		"Whole":      {"JSON cannot contain it, and nothing is left out silently.", one(""), nil, `its property "keystore.jks" is not text, so the whole value cannot be written as JSON; set property, or use dataFrom.extract`},
		"Extract":    {"Extract has all properties.", all(""), whole, ""},
		"Metadata":   {"Metadata are not properties.", one("team", func(r *v1alpha1.RemoteRef) { r.MetadataPolicy = metadataFetch }), map[string]string{"k": "shop"}, ""},
		"Find": {"A found secret is JSON, too.", func(s *spec) {
			s.Data, s.DataFrom = nil, []v1alpha1.DataFromEntry{{Find: &v1alpha1.Find{Path: "all"}}}
		}, nil, `secret "db": its property "a" is not text, so the whole value cannot be written as JSON; exclude it from find by name, path or tags, and read it with dataFrom.extract or property`},

		"Further":       {"A further name of a property reads it.", of("named", "web.host"), map[string]string{"k": "h"}, ""},
		"FurtherWhole":  {"The whole value has each property once.", of("named", ""), map[string]string{"k": `{"host":"h"}`}, ""},
		"FurtherAll":    {"Extract has each property once.", allOf("named"), map[string]string{"host": "h"}, ""},
		"FurtherMeta":   {"Metadata are not properties.", of("named", "web.host", func(r *v1alpha1.RemoteRef) { r.MetadataPolicy = metadataFetch }), map[string]string{"k": "tag"}, ""},
		"Refused":       {"A property that cannot be read is not NotFound, which would remove the key.", of("twice", "port"), nil, `Invalid: "twice" in FakeStore "prod": its property "port" cannot be read: two fields have this label; use a or b`},
		"RefusedOthers": {"Other properties are read.", of("twice", "b"), map[string]string{"k": "2"}, ""},
		"RefusedWhole":  {"The whole value would lack the property.", of("twice", ""), nil, `its property "port" cannot be read`},
		"RefusedAll":    {"An extract would lack the property.", allOf("twice"), nil, `its property "port" cannot be read`},
		"RefusedFound": {"A found secret is a whole value.", func(s *spec) {
			s.Data, s.DataFrom = nil, []v1alpha1.DataFromEntry{{Find: &v1alpha1.Find{Path: "twice"}}}
		}, nil, `secret "twice": its property "port" cannot be read`},

		"NullIgnored": {"A null byte is a part of a value.", one("port", func(r *v1alpha1.RemoteRef) { r.NullBytePolicy = nullsIgnore }), map[string]string{"k": "a\x00b"}, ""},
		"NullFails":   {"With Fail it is an error.", one("port", func(r *v1alpha1.RemoteRef) { r.NullBytePolicy = nullsFail }), nil, "its value has a null byte, which nullBytePolicy: Fail rejects"},
		"NullOfMany":  {"The message names the key.", all(nullsFail), nil, `the remote key "port": its value has a null byte`},
		"NullLater":   {"The value counts after it was decoded.", one("password", func(r *v1alpha1.RemoteRef) { r.NullBytePolicy = nullsFail }), map[string]string{"k": canary}, ""},
		"NullUnknown": {"A policy of a later version is refused.", one("port", func(r *v1alpha1.RemoteRef) { r.NullBytePolicy = "Cut" }), nil, "nullBytePolicy: Cut is not supported"},

		"Decoded":    {"A template can write bytes.", written("a: {{ printf \"%s\" \"/wA=\" }}\nb: YQ==", decodeBase64), map[string]string{"a": "\xff\x00", "b": "a"}, ""},
		"Unknown":    {"A strategy of a later version is refused.", written("a: b", "Base32"), nil, "valuesDecodingStrategy: Base32 is not supported"},
		"NotDecoded": {"Without a strategy its output is written as it is.", written("b: YQ==", ""), map[string]string{"b": "YQ=="}, ""},
		"Undecoded":  {"An output in another format is an error.", written("a: \"{{ .k }}!\"", decodeBase64URL), nil, "the value is not Base64URL, as valuesDecodingStrategy requires"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			es := external(tc.change)
			p, err := NewPlan(es)
			var out Output
			if err == nil {
				out, err = Render(es, p, from.values, nil)
			}
			if err == nil && out.NotFound != nil {
				err = out.NotFound
			}
			if (tc.err == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), tc.err) && !strings.Contains(string(provider.ClassOf(err))+": "+err.Error(), tc.err) || strings.Contains(err.Error(), canary)) {
				t.Fatalf("%s\ngot %v, want %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, text(out.Data)); tc.err == "" && diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func text(data map[string][]byte) map[string]string {
	m := map[string]string{}
	for k, v := range data {
		m[k] = string(v)
	}
	return m
}
