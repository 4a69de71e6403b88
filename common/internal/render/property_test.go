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
	"{a}": "braces", "twice": 1, "twice": 2
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
		"String":          {"A string comes without quotes.", document, "user", want{Value: "ann"}},
		"EmptyString":     {"An empty string exists.", document, "empty", want{}},
		"Escapes":         {"A string is unescaped.", document, "quote", want{Value: "a\"b\\c\n"}},
		"Unicode":         {"A string is UTF-8.", document, "umlaut", want{Value: "äö😀"}},
		"UnicodeKey":      {"A key may be any text.", document, "schlüssel", want{Value: "ü"}},
		"Number":          {"A number is as it is written.", document, "port", want{Value: "5432"}},
		"Float":           {"A number is as it is written.", document, "float", want{Value: "1.50"}},
		"Exponent":        {"A number is as it is written.", document, "exp", want{Value: "1e5"}},
		"BigNumber":       {"A number loses no digit.", document, "big", want{Value: "12345678901234567890"}},
		"True":            {"A boolean is its JSON text.", document, "on", want{Value: "true"}},
		"False":           {"A boolean is its JSON text.", document, "off", want{Value: "false"}},
		"Null":            {"null exists, and is an empty value, as External Secrets Operator has it.", document, "nothing", want{}},
		"NullNested":      {"Also where it is named by a path.", `{"a":[null]}`, "a.0", want{}},
		"NullInside":      {"Inside a value it is JSON.", `{"a":[null]}`, "a", want{Value: "[null]"}},
		"Dotted":          {"A key that is spelled like the property wins over the path.", document, "db.password", want{Value: "dotted"}},
		"Nested":          {"Otherwise the property is a path.", document, "db.deep.er.est", want{Value: "1"}},
		"Object":          {"An object is its JSON text.", document, "db.deep", want{Value: `{"er": {"est": 1}}`}},
		"Array":           {"An array is its JSON text.", document, "list", want{Value: `[1, "two", {"three": 3}]`}},
		"Element":         {"An element is named by its index.", document, "list.1", want{Value: "two"}},
		"ElementOfObject": {"A path goes through arrays.", document, "list.2.three", want{Value: "3"}},
		"Count":           {"The length of an array is a number.", document, "db.hosts.#", want{Value: "2"}},
		"Query":           {"A query finds an element.", document, `users.#(n=="y").p`, want{Value: "2"}},
		"QueryAll":        {"A query finds all elements.", document, `users.#.n`, want{Value: `["x","y"]`}},
		"KeyLikeModifier": {"A key is no syntax.", document, "@this", want{Value: "at"}},
		"KeyWithPipe":     {"A key is no syntax.", document, "a|b", want{Value: "pipe"}},
		"KeyWithStar":     {"A key is no syntax.", document, "a*", want{Value: "star"}},
		"KeyHash":         {"A key is no syntax.", document, "#", want{Value: "hash"}},
		"KeyBackslash":    {"A key is no syntax.", document, `x\y`, want{Value: "backslash"}},
		"KeyBraces":       {"A key is no syntax, also where that syntax is not served.", document, "{a}", want{Value: "braces"}},
		"KeyBang":         {"A key is no syntax, also where that syntax is not served.", document, "!lit", want{Value: "bang"}},
		"KeyEscaped":      {"A key is compared by its text, not by its spelling.", document, "escaped", want{Value: "unescaped"}},
		"KeyTwice":        {"Of two equal keys the first counts.", document, "twice", want{Value: "1"}},
		"Modifier":        {"Modifiers that cannot grow are served.", `{"a":[1,2]}`, "a.@reverse", want{Value: "[2,1]"}},
		"ModifierChain":   {"Modifiers that cannot grow are served.", `{"a": 1}`, "@this|@ugly", want{Value: `{"a":1}`}},
		"FromString":      {"JSON inside a string can be read.", `{"a":"{\"b\":1}"}`, "a.@fromstr.b", want{Value: "1"}},
		"TopLevelArray":   {"The document may be an array.", `["x"]`, "0", want{Value: "x"}},

		"Missing":         {"A property that is not there is NotFound.", document, "password", want{Class: provider.NotFound}},
		"MissingNested":   {"A property that is not there is NotFound.", document, "db.user", want{Class: provider.NotFound}},
		"MissingElement":  {"An index beyond the end is NotFound.", document, "list.3", want{Class: provider.NotFound}},
		"ThroughScalar":   {"A scalar has no properties.", document, "user.name", want{Class: provider.NotFound}},
		"OfScalar":        {"A document that is a scalar has no properties.", `"text"`, "a", want{Class: provider.NotFound}},
		"UnknownModifier": {"An unknown modifier finds nothing.", document, "@boom", want{Class: provider.NotFound}},
		"NotJSON":         {"What is not JSON has no properties; a person must look.", "user=ann", "user", want{Class: provider.Invalid}},
		"Empty":           {"Nothing is not JSON.", "", "user", want{Class: provider.Invalid}},
		"TruncatedJSON":   {"Half a document is not JSON, whatever it begins with.", `{"user":"ann","pass`, "user", want{Class: provider.Invalid}},
		"TwoDocuments":    {"Two documents are not JSON.", `{"user":"ann"}{"user":"bob"}`, "user", want{Class: provider.Invalid}},
		"Endless":         {"What is nested without end is refused before it eats the stack.", strings.Repeat("[", 500000) + strings.Repeat("]", 500000), "0", want{Class: provider.Invalid}},
		"Escalation":      {"A path that doubles the value with every step is refused.", document, strings.Repeat("@tostr|", 40) + "@this", want{Class: provider.Invalid}},
		"Pretty":          {"Indentation of the user's choice is refused.", document, `@pretty:{"indent":"          "}`, want{Class: provider.Invalid}},
		"Group":           {"Every value once for every key is refused.", document, "db.@group", want{Class: provider.Invalid}},
		"Dig":             {"A search through all levels is refused.", document, "@dig:est", want{Class: provider.Invalid}},
		"Together":        {"A document put together from several paths is refused.", document, "[db,db]|[0,0,0]", want{Class: provider.Invalid}},
		"TogetherNested":  {"Also further down.", document, "db.{hosts,deep}", want{Class: provider.Invalid}},
		"TogetherInQuery": {"Also inside a query.", document, `users.#( [n,n]=="x")`, want{Class: provider.Invalid}},
		"TogetherInOld":   {"Also inside a query in the older syntax.", document, `users.#[[n,n]=="x"]`, want{Class: provider.Invalid}},
		"Literal":         {"A literal is not read from the secret.", document, `!"made up"`, want{Class: provider.Invalid}},
		"LiteralEach":     {"Nor once for each element.", document, `list.#.!"made up"`, want{Class: provider.Invalid}},
		"Operators":       {"Modifiers and queries are few.", `[[1]]`, strings.Repeat("@this|", 8) + "#", want{Class: provider.Invalid}},
		"OperatorsFull":   {"Eight are served.", `[[1]]`, strings.Repeat("@this|", 7) + "#", want{Value: "1"}},
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

// TestPropertyWork looks for properties that would take seconds or gigabytes.
func TestPropertyWork(t *testing.T) {
	const size = 1 << 20
	ones := "[" + strings.Repeat("1,", size/2-1) + "1]"
	lists := "[" + strings.Repeat("[],", size/3-1) + "1]"
	text := `{"` + strings.Repeat("a", size-20) + `":["x"]}`
	cases := map[string]struct {
		reason   string
		data     string
		property string
		// want is what the error says.
		want string
	}{
		"Reverse":  {"Each modifier takes its time, and the memory of all elements.", ones, strings.Repeat("@reverse|", 55) + "#", "at most 8 modifiers"},
		"Few":      {"A few of them may be too many for a large secret.", ones, strings.Repeat("@reverse|", 7) + "#", "too much work over 1048577 bytes"},
		"Each":     {"Also for each element.", ones, "#.@this", "too much work"},
		"Queries":  {"So may queries be.", lists, "#.#.#.#.#", "too much work"},
		"Wildcard": {"Wildcards are tried for each other.", text, "*a*b*c*d*", "too much work"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			took, memory := cost(t, func() { _, err = Property([]byte(tc.data), tc.property) })
			if class(err) != provider.Invalid || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 400 {
				t.Errorf("\n%s\nProperty(): %v, want an error of class Invalid that says %q", tc.reason, err, tc.want)
			}
			if took > maxSpent/4 || memory > 8<<20 {
				t.Errorf("\n%s\nProperty() took %v of a processor and %d MiB, want at most %v and 8 MiB", tc.reason, took, memory>>20, maxSpent/4)
			}
		})
	}
}

// TestReadProperties reads secrets by as many entries as a spec may have.
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
		// want is what the error says; none means that all are there.
		want []string
	}{
		"Plain":     {"A thousand keys of one large secret are gone through once.", entries(1000, "one", "kN"), nil},
		"Paths":     {"A few paths through it are served.", entries(50, "one", "dN.e"), nil},
		"ManyPaths": {"A thousand are too many.", entries(1000, "one", "dN.e"), []string{`"one" in FakeStore "prod": spec.data[`, "].remoteRef.property: ", "too much work", "take fewer properties"}},
		"Queries":   {"So are a thousand small queries.", entries(1000, "small", "#(a==1)#.b"), []string{"].remoteRef.property: ", "too much work"}},
		"Secrets":   {"And a thousand large secrets.", entries(1000, "key-N", "k1"), []string{`"key-`, "].remoteRef.property: ", "too much work"}},
		"Extracts": {
			"Those that are extracted count, too.",
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
			if took, _ := cost(t, func() { out, err = Read(es, p, values) }); took > maxSpent {
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
		"Object":    {"Members come in their order, each as Property would yield it.", `{"b":"x","a":1,"c":null,"d":{"e":[1, 2]},"f":true}`, want{Members: []kv{{"b", "x"}, {"a", "1"}, {"c", ""}, {"d", `{"e":[1, 2]}`}, {"f", "true"}}}},
		"Escapes":   {"Keys and strings are unescaped.", `{"\u0061.b":"\"x\""}`, want{Members: []kv{{"a.b", `"x"`}}}},
		"Empty":     {"An empty object holds nothing.", ` {} `, want{}},
		"Twice":     {"A key that comes twice is told twice.", `{"a":1,"a":2}`, want{Members: []kv{{"a", "1"}, {"a", "2"}}}},
		"Array":     {"An array has no keys.", `[1]`, want{Class: provider.Invalid}},
		"String":    {"A string has no keys.", `"a"`, want{Class: provider.Invalid}},
		"Null":      {"null has no keys.", `null`, want{Class: provider.Invalid}},
		"NotJSON":   {"What is not JSON has no keys.", `a=b`, want{Class: provider.Invalid}},
		"Truncated": {"Half an object is not JSON: none of its keys count.", `{"a":1,"b":`, want{Class: provider.Invalid}},
		"Endless":   {"What is nested without end is refused before it eats the stack.", `{"a":` + strings.Repeat("[", 500000) + strings.Repeat("]", 500000) + "}", want{Class: provider.Invalid}},
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
				t.Errorf("Property(%q, %q): a value beside an error", data, property)
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
				t.Errorf("Extract(%q): %d members beside an error of class %s", data, len(members), class(err))
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
