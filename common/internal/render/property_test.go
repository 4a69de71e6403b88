package render

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// class returns the class of an error; empty for none.
func class(err error) provider.Class {
	if err == nil {
		return ""
	}
	return provider.ClassOf(err)
}

const document = `{
	"user": "ann", "empty": "", "port": 5432, "float": 1.50, "big": 12345678901234567890, "exp": 1e5,
	"on": true, "off": false, "nothing": null, "quote": "a\"b\\c\n", "umlaut": "\u00e4ö😀", "schlüssel": "ü",
	"db.password": "dotted", "db": {"password": "nested", "hosts": ["a", "b"], "deep": {"er": {"est": 1}}},
	"list": [1, "two", {"three": 3}], "users": [{"n": "x", "p": 1}, {"n": "y", "p": 2}],
	"@this": "at", "a|b": "pipe", "a*": "star", "#": "hash", "x\\y": "backslash", "esc\u0061ped": "unescaped", "!lit": "bang",
	"{a}": "braces"
}`

func TestProperty(t *testing.T) {
	type want struct {
		Value string
		Class provider.Class
	}
	cases := map[string]struct {
		reason   string
		data     string
		property string
		want     want
	}{
		"String":          {"A string is returned without quotes.", document, "user", want{Value: "ann"}},
		"EmptyString":     {"An empty string exists.", document, "empty", want{}},
		"Escapes":         {"Escapes in a string are resolved.", document, "quote", want{Value: "a\"b\\c\n"}},
		"Unicode":         {"A string is UTF-8.", document, "umlaut", want{Value: "äö😀"}},
		"UnicodeKey":      {"A key can be any text.", document, "schlüssel", want{Value: "ü"}},
		"HalfSurrogate":   {"Half of a surrogate pair is not text.", `{"a":"\ud800","b":"ok"}`, "a", want{Class: provider.Invalid}},
		"HalfNested":      {"Half of a surrogate pair is not text, at any depth.", `{"a":["\udc00x"]}`, "a.0", want{Class: provider.Invalid}},
		"HalfElsewhere":   {"Other members can be read.", `{"a":"\ud800","b":"ok"}`, "b", want{Value: "ok"}},
		"Number":          {"A number is returned as written.", document, "port", want{Value: "5432"}},
		"Float":           {"A number is returned as written.", document, "float", want{Value: "1.50"}},
		"Exponent":        {"A number is returned as written.", document, "exp", want{Value: "1e5"}},
		"BigNumber":       {"A number keeps all its digits.", document, "big", want{Value: "12345678901234567890"}},
		"True":            {"A boolean is its JSON text.", document, "on", want{Value: "true"}},
		"False":           {"A boolean is its JSON text.", document, "off", want{Value: "false"}},
		"Null":            {"null is an empty value, as in External Secrets Operator.", document, "nothing", want{}},
		"NullNested":      {"null at a path is an empty value.", `{"a":[null]}`, "a.0", want{}},
		"NullInside":      {"null inside a value stays JSON.", `{"a":[null]}`, "a", want{Value: "[null]"}},
		"Dotted":          {"A key equal to the property wins over the path.", document, "db.password", want{Value: "dotted"}},
		"Nested":          {"Without an equal key, the property is a path.", document, "db.deep.er.est", want{Value: "1"}},
		"Object":          {"An object is its JSON text.", document, "db.deep", want{Value: `{"er": {"est": 1}}`}},
		"Array":           {"An array is its JSON text.", document, "list", want{Value: `[1, "two", {"three": 3}]`}},
		"Element":         {"An element is addressed by its index.", document, "list.1", want{Value: "two"}},
		"ElementOfObject": {"A path can go through arrays.", document, "list.2.three", want{Value: "3"}},
		"Count":           {"The length of an array is a number.", document, "db.hosts.#", want{Value: "2"}},
		"Query":           {"A query finds an element.", document, `users.#(n=="y").p`, want{Value: "2"}},
		"QueryAll":        {"A query finds all elements.", document, `users.#.n`, want{Value: `["x","y"]`}},
		"KeyLikeModifier": {"A key that looks like a modifier is a key.", document, "@this", want{Value: "at"}},
		"KeyWithPipe":     {"A key with a pipe is a key.", document, "a|b", want{Value: "pipe"}},
		"KeyWithStar":     {"A key with a wildcard is a key.", document, "a*", want{Value: "star"}},
		"KeyHash":         {"A key that looks like a query is a key.", document, "#", want{Value: "hash"}},
		"KeyBackslash":    {"A key with a backslash is a key.", document, `x\y`, want{Value: "backslash"}},
		"KeyBraces":       {"A key with refused syntax is a key.", document, "{a}", want{Value: "braces"}},
		"KeyBang":         {"A key with refused syntax is a key.", document, "!lit", want{Value: "bang"}},
		"KeyEscaped":      {"Keys are compared after their escapes are resolved.", document, "escaped", want{Value: "unescaped"}},
		"Twice":           {"A member that occurs twice is refused.", `{"twice":1,"twice":2}`, "twice", want{Class: provider.Invalid}},
		"TwiceLiteral":    {"A member that occurs twice is refused, also if it could be a path.", `{"a.b":1,"a.b":2,"a":{"b":3}}`, "a.b", want{Class: provider.Invalid}},
		"TwiceSpelled":    {"Names are compared after their escapes are resolved.", `{"a":1,"\u0061":2}`, "a", want{Class: provider.Invalid}},
		"TwiceOnPath":     {"A member on the path that occurs twice is refused.", `{"a":{"b":1},"a":{"b":1}}`, "a.b", want{Class: provider.Invalid}},
		"TwiceNested":     {"A member at the end of the path that occurs twice is refused.", `{"a":[{"b":1,"b":2}]}`, "a.0.b", want{Class: provider.Invalid}},
		"TwiceQuery":      {"A query can find any member, so none can occur twice.", `{"a":[{"b":1,"b":2}]}`, "a.#.b", want{Class: provider.Invalid}},
		"TwiceWildcard":   {"A query can find any member, so none can occur twice.", `{"ab":1,"ab":2}`, "a*", want{Class: provider.Invalid}},
		"TwiceMany":       {"A query can find any member, also in a large object.", `{"a":{"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"9":9,"10":1,"11":1,"12":1,"13":1,"14":1,"15":1,"16":1,"17":1,"18":1,"17":2}}`, "@this.a.1", want{Class: provider.Invalid}},
		"TwiceElsewhere":  {"Other members do not matter.", `{"a":1,"b":2,"b":3,"c":{"d":4,"d":5}}`, "a", want{Value: "1"}},
		"TwiceInside":     {"A value is passed on as it is.", `{"c":{"d":4,"d":5}}`, "c", want{Value: `{"d":4,"d":5}`}},
		"EqualInOthers":   {"The same name can occur in several objects.", `{"a":[{"b":"x"},{"b":"y"}],"b":{"b":"a"}}`, "a.#.b", want{Value: `["x","y"]`}},
		"EmptyNames":      {"A name can be empty.", `{"a":{"":{"b":1}}}`, "a..b", want{Value: "1"}},
		"HashName":        {"A name in an object can start with a #.", `{"a":{"#b":1}}`, "a.#b", want{Value: "1"}},
		"AtName":          {"A name that is no modifier is a name.", `{"a":{"@id":1}}`, "a.@id", want{Value: "1"}},
		"BracketName":     {"A bracket inside a name is a part of it.", `{"a":{"b[[0]":1}}`, "a.b[[0]", want{Value: "1"}},
		"EscapedName":     {"An escaped character is part of a name.", `{"a":{"@this*|.":1}}`, `a.\@this\*\|\.`, want{Value: "1"}},
		"Modifier":        {"Modifiers that cannot grow the value are served.", `{"a":[1,2]}`, "a.@reverse", want{Value: "[2,1]"}},
		"ModifierChain":   {"Modifiers that cannot grow the value are served.", `{"a": 1}`, "@this|@ugly", want{Value: `{"a":1}`}},
		"FromString":      {"JSON inside a string can be read.", `{"a":"{\"b\":1}"}`, "a.@fromstr.b", want{Value: "1"}},
		"TopLevelArray":   {"The document can be an array.", `["x"]`, "0", want{Value: "x"}},

		"Missing":         {"A missing property is NotFound.", document, "password", want{Class: provider.NotFound}},
		"MissingNested":   {"A missing nested property is NotFound.", document, "db.user", want{Class: provider.NotFound}},
		"MissingElement":  {"An index beyond the end is NotFound.", document, "list.3", want{Class: provider.NotFound}},
		"ThroughScalar":   {"A property of a scalar is NotFound.", document, "user.name", want{Class: provider.NotFound}},
		"OfScalar":        {"A property of a document that is a scalar is NotFound.", `"text"`, "a", want{Class: provider.NotFound}},
		"UnknownModifier": {"An unknown modifier is NotFound.", document, "@boom", want{Class: provider.NotFound}},
		"NotJSON":         {"A property of a value that is not JSON is Invalid, which the user must fix.", "user=ann", "user", want{Class: provider.Invalid}},
		"Empty":           {"An empty value is not JSON.", "", "user", want{Class: provider.Invalid}},
		"TruncatedJSON":   {"A truncated document is not JSON.", `{"user":"ann","pass`, "user", want{Class: provider.Invalid}},
		"TwoDocuments":    {"Two documents are not JSON.", `{"user":"ann"}{"user":"bob"}`, "user", want{Class: provider.Invalid}},
		"Endless":         {"Endless nesting is refused before it exhausts the stack.", strings.Repeat("[", 500000) + strings.Repeat("]", 500000), "0", want{Class: provider.Invalid}},
		"Escalation":      {"A path whose value doubles with every step is refused.", document, strings.Repeat("@tostr|", 40) + "@this", want{Class: provider.Invalid}},
		"Pretty":          {"Indentation chosen by the user is refused.", document, `@pretty:{"indent":"          "}`, want{Class: provider.Invalid}},
		"Group":           {"A modifier that repeats every value for every key is refused.", document, "db.@group", want{Class: provider.Invalid}},
		"Dig":             {"A search through all levels is refused.", document, "@dig:est", want{Class: provider.Invalid}},
		"Together":        {"A document built from several paths is refused.", document, "[db,db]|[0,0,0]", want{Class: provider.Invalid}},
		"TogetherNested":  {"A document built from several paths below a key is refused.", document, "db.{hosts,deep}", want{Class: provider.Invalid}},
		"TogetherInQuery": {"A document built from several paths in a query is refused.", document, `users.#( [n,n]=="x")`, want{Class: provider.Invalid}},
		"TogetherInOld":   {"A document built from several paths in a query of the old syntax is refused.", document, `users.#[[n,n]=="x"]`, want{Class: provider.Invalid}},
		"Literal":         {"A literal is refused.", document, `!"made up"`, want{Class: provider.Invalid}},
		"LiteralEach":     {"A literal for each element is refused.", document, `list.#.!"made up"`, want{Class: provider.Invalid}},
		"Operators":       {"Nine modifiers and queries are refused.", `[[1]]`, strings.Repeat("@this|", 8) + "#", want{Class: provider.Invalid}},
		"OperatorsFull":   {"Eight modifiers and queries are served.", `[[1]]`, strings.Repeat("@this|", 7) + "#", want{Value: "1"}},
		"Contains":        {"Wildcards at both ends are served.", `{"a":[{"n":"xby"},{"n":"z"}]}`, `a.#(n%"*b*").n`, want{Value: "xby"}},
		"LongPath":        {"A path of more than 512 characters is refused.", document, strings.Repeat("a.", 257), want{Class: provider.Invalid}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := Property([]byte(tc.data), tc.property)
			if diff := cmp.Diff(tc.want, want{string(v), class(err)}); diff != "" {
				t.Errorf("\n%s\nProperty(%.60q): -want, +got:\n%s\nerror: %v", tc.reason, tc.property, diff, err)
			}
			if err != nil && len(err.Error()) > 400 {
				t.Errorf("\n%s\na message of %d bytes, want a short one", tc.reason, len(err.Error()))
			}
		})
	}
}

// TestPropertyWork reads properties that would take seconds or gigabytes without limits.
func TestPropertyWork(t *testing.T) {
	const size = 1 << 20
	ones := "[" + strings.Repeat("1,", size/2-1) + "1]"
	lists := "[" + strings.Repeat("[],", size/3-1) + "1]"
	text := `{"` + strings.Repeat("a", size-20) + `":["x"]}`
	cases := map[string]struct {
		reason   string
		data     string
		property string
		// want is a part of the error.
		want string
	}{
		"Reverse":  {"Each modifier takes time, and the memory of all elements.", ones, strings.Repeat("@reverse|", 55) + "#", "at most 8 modifiers"},
		"Few":      {"A few modifiers can be too many for a large secret.", ones, strings.Repeat("@reverse|", 7) + "#", "too much work for a secret of 1048577 bytes"},
		"Each":     {"A modifier for each element takes too much work.", ones, "#.@this", "too much work"},
		"Queries":  {"Nested queries take too much work.", lists, "#.#.#.#.#", "too much work"},
		"Wildcard": {"Wildcards multiply the work.", text, "*a*b*c*d*", "too much work"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			took, memory := cost(t, maxSpent/4, func() { _, err = Property([]byte(tc.data), tc.property) })
			if class(err) != provider.Invalid || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 400 {
				t.Errorf("\n%s\nProperty(): %v, want an error of class Invalid with %q", tc.reason, err, tc.want)
			}
			if took > maxSpent/4 || memory > 8<<20 {
				t.Errorf("\n%s\nProperty() took %v of a processor and %d MiB, want at most %v and 8 MiB", tc.reason, took, memory>>20, maxSpent/4)
			}
		})
	}
}

// TestReadProperties reads secrets with as many entries as a spec can have.
func TestReadProperties(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `"k%d":"%d","d%d":{"e":"%s"},`, i, i, i, strings.Repeat("x", 1000))
	}
	large := "{" + b.String() + `"last":1}`
	entries := func(n int, key, property string) func(*v1alpha1.ExternalSecretSpec) {
		return func(s *v1alpha1.ExternalSecretSpec) {
			s.Data = nil
			for i := range n {
				number := strings.NewReplacer("N", strconv.Itoa(i))
				s.Data = append(s.Data, entry(fmt.Sprintf("e%d", i), number.Replace(key), number.Replace(property)))
			}
		}
	}
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.ExternalSecretSpec)
		// want are parts of the error; none means that all values are read.
		want []string
	}{
		"Plain":     {"The keys of one large secret are found in one scan.", entries(1000, "one", "kN"), nil},
		"Paths":     {"A few paths in a large secret are served.", entries(50, "one", "dN.e"), nil},
		"ManyPaths": {"A thousand paths in a large secret are too many.", entries(1000, "one", "dN.e"), []string{`"one" in FakeStore "prod": spec.data[`, "].remoteRef.property: ", "too much work", "use fewer properties"}},
		"Queries":   {"A thousand small queries are too many.", entries(1000, "small", "#(a==1)#.b"), []string{"].remoteRef.property: ", "too much work"}},
		"Secrets":   {"A thousand large secrets are too many.", entries(1000, "key-N", "k1"), []string{`"key-`, "].remoteRef.property: ", "too much work"}},
		"Extracts": {
			"Extracted secrets count, too.",
			func(s *v1alpha1.ExternalSecretSpec) {
				s.DataFrom = slices.Repeat([]v1alpha1.DataFromEntry{extract("one")}, 100)
			},
			[]string{`"one" in FakeStore "prod": spec.dataFrom[`, "].extract: ", "too much work"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			es := external(tc.change)
			values := func(s Source) provider.Answer {
				if s.Ref.Key == "small" {
					return value("["+strings.Repeat(`{"a":1},`, 8000)+"1]", "")
				}
				return provider.Answer{Value: provider.Value{Data: []byte(large)}}
			}
			p, err := NewPlan(es)
			if err != nil {
				t.Fatal(err)
			}
			var out Output
			if took, _ := cost(t, maxSpent, func() { out, err = Read(es, p, values) }); took > maxSpent {
				t.Errorf("\n%s\nRead() took %v of a processor, want at most %v", tc.reason, took, maxSpent)
			}
			if len(tc.want) > 0 {
				wantError(t, tc.reason, err, provider.Invalid, append([]string{`"`}, tc.want...)...)
				return
			}
			if err != nil || len(out.Data) != len(es.Spec.Data) {
				t.Fatalf("\n%s\nRead(): %d keys of %d: %v", tc.reason, len(out.Data), len(es.Spec.Data), err)
			}
		})
	}
}

func TestExtract(t *testing.T) {
	type kv struct{ Key, Value string }
	type want struct {
		Members []kv
		Class   provider.Class
	}
	cases := map[string]struct {
		reason string
		data   string
		want   want
	}{
		"Object":    {"Members keep their order, with the values that Property returns.", `{"b":"x","a":1,"c":null,"d":{"e":[1, 2]},"f":true}`, want{Members: []kv{{"b", "x"}, {"a", "1"}, {"c", ""}, {"d", `{"e":[1, 2]}`}, {"f", "true"}}}},
		"Escapes":   {"Escapes in keys and strings are resolved.", `{"\u0061.b":"\"x\""}`, want{Members: []kv{{"a.b", `"x"`}}}},
		"Empty":     {"An empty object has no members.", ` {} `, want{}},
		"Twice":     {"A key that occurs twice is refused.", `{"a":1,"a":2}`, want{Class: provider.Invalid}},
		"Array":     {"An array has no keys.", `[1]`, want{Class: provider.Invalid}},
		"String":    {"A string has no keys.", `"a"`, want{Class: provider.Invalid}},
		"Null":      {"null has no keys.", `null`, want{Class: provider.Invalid}},
		"NotJSON":   {"A value that is not JSON has no keys.", `a=b`, want{Class: provider.Invalid}},
		"Truncated": {"A truncated object is not JSON, and none of its keys count.", `{"a":1,"b":`, want{Class: provider.Invalid}},
		"Endless":   {"Endless nesting is refused before it exhausts the stack.", `{"a":` + strings.Repeat("[", 500000) + strings.Repeat("]", 500000) + "}", want{Class: provider.Invalid}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			members, err := Extract([]byte(tc.data))
			got := want{Class: class(err)}
			for _, m := range members {
				got.Members = append(got.Members, kv{m.Key, string(m.Value)})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nExtract(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNotJSON checks that the message names an encoding that is not JSON.
func TestNotJSON(t *testing.T) {
	const utf8 = "store JSON as UTF-8 without a byte order mark"
	cases := map[string]struct{ reason, data, property, extract string }{
		"Text": {"Text is just not JSON.", "user=ann", `its value is not JSON, so it has no property "a"; remove the property, or store JSON`, "its value is not JSON; store JSON, because extract needs a JSON object"},
		"Mark": {
			"Editors of Windows write a byte order mark.", "\xef\xbb\xbf{\"a\":1}", `its value is not JSON, because it begins with a byte order mark, so it has no property "a"; remove the property, or ` + utf8,
			"its value is not JSON, because it begins with a byte order mark; " + utf8 + ", because extract needs a JSON object",
		},
		"UTF-16": {
			"So do shells of Windows write UTF-16.", "\xff\xfe{\x00}\x00", `its value is not JSON, because it is UTF-16 text, so it has no property "a"; remove the property, or ` + utf8,
			"its value is not JSON, because it is UTF-16 text; " + utf8 + ", because extract needs a JSON object",
		},
		"Unmarked": {
			"UTF-16 can have no mark.", "{\x00}\x00", `its value is not JSON, because it is UTF-16 text, so it has no property "a"; remove the property, or ` + utf8,
			"its value is not JSON, because it is UTF-16 text; " + utf8 + ", because extract needs a JSON object",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Property([]byte(tc.data), "a")
			if diff := cmp.Diff(tc.property, provider.Safe(err).Message); diff != "" {
				t.Errorf("\n%s\nProperty(): -want, +got:\n%s", tc.reason, diff)
			}
			_, err = Extract([]byte(tc.data))
			if diff := cmp.Diff(tc.extract, provider.Safe(err).Message); diff != "" {
				t.Errorf("\n%s\nExtract(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func FuzzProperty(f *testing.F) {
	for _, p := range []string{
		"user", "db.password", "list.#", "users.#(n==\"x\")#.p", "..#", "..0.user", "@this|@ugly", "@keys|0", "a.@flatten:{\"deep\":true}",
		"#(#(#", "@", "\\", "a\\", "#.#.#", "*.*?", "!", "@fromstr", "#[n=\"x\"]", "|||", "users.#(n%\"*\").p", "users|@join:{\"preserve\":true}", "#.@values|#.@values",
	} {
		f.Add([]byte(document), p)
		f.Add([]byte(`["a",[1,{"b":null}],"\ud800"]`), p)
	}
	f.Fuzz(func(t *testing.T, data []byte, property string) {
		v, err := Property(data, property)
		switch class(err) {
		case "":
			if limit := 64 * (len(data) + len(property) + 16); len(v) > limit {
				t.Errorf("Property(%q, %q): %d bytes, want at most %d", data, property, len(v), limit)
			}
		case provider.Invalid, provider.NotFound:
			if v != nil {
				t.Errorf("Property(%q, %q): a value with an error", data, property)
			}
		default:
			t.Errorf("Property(%q, %q): class %s", data, property, class(err))
		}
	})
}

func FuzzExtract(f *testing.F) {
	for _, d := range []string{document, `{}`, `[]`, `{"a":{"a":1}}`, `{"\ud800":"\udc00"}`, `{"a":1,"a":"2"}`, "{\"\xff\":\"\xff\"}", `{"":0}`} {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		members, err := Extract(data)
		if err != nil {
			if members != nil || class(err) != provider.Invalid {
				t.Errorf("Extract(%q): %d members with an error of class %s", data, len(members), class(err))
			}
			return
		}
		seen := map[string]bool{}
		for _, m := range members {
			if seen[m.Key] {
				continue
			}
			seen[m.Key] = true
			v, err := Property(data, m.Key)
			if err != nil || !bytes.Equal(v, m.Value) {
				t.Errorf("Extract(%q) has %q: %q, and Property yields %q, %v", data, m.Key, m.Value, v, err)
			}
		}
	})
}
