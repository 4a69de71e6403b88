package template

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A leaf is a value of a random document.
type leaf struct {
	path []string
	// raw is its JSON, text what a template must print; absent is true for null.
	raw, text string
	absent    bool
}

// An access is a way to a leaf: an expression over the document in .v.
type access func(l leaf) string

func quoted(path []string) string {
	var b strings.Builder
	for _, k := range path {
		b.WriteString(" " + strconv.Quote(k))
	}
	return b.String()
}

// accesses are the ways to a leaf.
var accesses = map[string]access{
	"field":    func(l leaf) string { return "(fromJson .v)." + strings.Join(l.path, ".") },
	"piped":    func(l leaf) string { return "(.v | mustFromJson)." + strings.Join(l.path, ".") },
	"index":    func(l leaf) string { return "(index (fromJson .v)" + quoted(l.path) + ")" },
	"dig":      func(l leaf) string { return "(dig" + quoted(l.path) + ` "none" (fromJson .v))` },
	"get":      func(l leaf) string { return getAll("(fromJson .v)", l.path) },
	"yaml":     func(l leaf) string { return "(fromYaml .v)." + strings.Join(l.path, ".") },
	"again":    func(l leaf) string { return "(fromJson (toJson (fromJson .v)))." + strings.Join(l.path, ".") },
	"pretty":   func(l leaf) string { return "(fromJson (toPrettyJson (fromJson .v)))." + strings.Join(l.path, ".") },
	"yamlJSON": func(l leaf) string { return "(fromYaml (toYaml (fromJson .v)))." + strings.Join(l.path, ".") },
	"copy":     func(l leaf) string { return "(deepCopy (fromJson .v))." + strings.Join(l.path, ".") },
	"merged":   func(l leaf) string { return "(merge (dict) (fromJson .v))." + strings.Join(l.path, ".") },
	"list":     func(l leaf) string { return "(first (list (fromJson .v)." + strings.Join(l.path, ".") + "))" },
	"values": func(l leaf) string {
		return `(index (pluck "x" (dict "x" (fromJson .v).` + strings.Join(l.path, ".") + ")) 0)"
	},
	"reverse": func(l leaf) string {
		return "(last (reverse (append (list) (fromJson .v)." + strings.Join(l.path, ".") + ")))"
	},
	"ternary": func(l leaf) string { return `(ternary (fromJson .v).` + strings.Join(l.path, ".") + ` "no" true)` },
}

func getAll(dict string, path []string) string {
	for _, k := range path {
		dict = fmt.Sprintf("(get %s %q)", dict, k)
	}
	return dict
}

// printers are ways to print a value, with what they must print for its text.
var printers = map[string]struct {
	format string
	want   func(text string) string
}{
	"plain":    {`{{ %s }}`, same},
	"variable": {`{{ $x := %s }}{{ $x }}`, same},
	"range":    {`{{ range list %s }}{{ . }}{{ end }}`, same},
	"print":    {`{{ print %s }}`, same},
	"printf":   {`{{ printf "%%v" %s }}`, same},
	"printfS":  {`{{ printf "%%s" %s }}`, same},
	"println":  {`{{ println %s }}`, func(s string) string { return s + "\n" }},
	"toString": {`{{ toString %s }}`, same},
	"join":     {`{{ join "," (list %s "x") }}`, func(s string) string { return s + ",x" }},
	"cat":      {`{{ cat "x" %s }}`, func(s string) string { return "x " + s }},
	"squote":   {`{{ squote %s }}`, func(s string) string { return "'" + s + "'" }},
	"quote":    {`{{ quote %s }}`, func(s string) string { return fmt.Sprintf("%q", s) }},
	"b64enc":   {`{{ toString %s | b64enc }}`, func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }},
	"upper":    {`{{ toString %s | upper | lower }}`, func(s string) string { return strings.ToLower(strings.ToUpper(s)) }},
	"replace":  {`{{ toString %s | replace "a" "b" }}`, func(s string) string { return strings.ReplaceAll(s, "a", "b") }},
	"indent":   {`{{ toString %s | indent 1 }}`, func(s string) string { return " " + strings.ReplaceAll(s, "\n", "\n ") }},
	"split":    {`{{ toString %s | splitList "," | join "," }}`, same},
	"and":      {`{{ and true %s }}`, same},
	"or":       {`{{ or "" %s }}`, same},
}

func same(s string) string { return s }

// randomNumbers are the forms of numbers in JSON.
var randomNumbers = []string{
	"0", "-0", "0.0", "-0.00", "0e5", "1", "-17", "12345678", "10000000", "9007199254740993", "9223372036854775808", "-9223372036854775809",
	"123456789012345678901234567890", "1.10", "0.1", "1e3", "1E+3", "1.5e-7", "1e400", "1e-400", "3.14159265358979323846", "100000000000000000000000", "1e21",
}

var randomStrings = []string{"", "a", "x,y", "ü", "😀", "\n", "\t", "\u2028", "<&>'\"", "\\", "{{ }}", "yes", "1.10", "null", "\u0000", "\ufeff", " ", "'", "0x1f", "%d", "#", "- a: b"}

// randomDocument returns a random object, its leaves, and its JSON.
func randomDocument(r *rand.Rand, depth int, path []string) (string, []leaf) {
	var members []string
	var leaves []leaf
	for _, k := range []string{"a", "bc", "d_e", "f"}[:1+r.Intn(4)] {
		at := append(append([]string{}, path...), k)
		l := leaf{path: at}
		switch n := r.Intn(10); {
		case n < 4:
			l.raw = randomNumbers[r.Intn(len(randomNumbers))]
			if r.Intn(2) == 0 {
				l.raw = strconv.FormatInt(r.Int63()>>uint(r.Intn(63)), 10) + []string{"", ".0", ".50", "e7", "E-3"}[r.Intn(5)]
			}
			l.text = l.raw
		case n < 7:
			for range r.Intn(4) {
				l.text += randomStrings[r.Intn(len(randomStrings))]
			}
			b, _ := json.Marshal(l.text)
			l.raw = string(b)
		case n == 7:
			l.raw, l.absent = "null", true
		case n == 8 && depth < 3:
			raw, inner := randomDocument(r, depth+1, at)
			members = append(members, fmt.Sprintf("%q:%s", k, raw))
			leaves = append(leaves, inner...)
			continue
		default:
			l.text = strconv.FormatBool(r.Intn(2) == 0)
			l.raw = l.text
		}
		members = append(members, fmt.Sprintf("%q:%s", k, l.raw))
		leaves = append(leaves, l)
	}
	return "{" + strings.Join(members, ",") + "}", leaves
}

// TestRandomDocuments reads each leaf of random documents in a random way and printers it in a random way. The result is
// exact, or null is an error.
func TestRandomDocuments(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("%d documents of seed %d", randomDocuments, seed)
	r := rand.New(rand.NewSource(seed))
	e := engine(t)
	ways, forms := keysOf(accesses), keysOf(printers)
	exact, refused := 0, 0
	for range randomDocuments {
		raw, leaves := randomDocument(r, 0, nil)
		for _, l := range leaves {
			way, form := ways[r.Intn(len(ways))], forms[r.Intn(len(forms))]
			text := fmt.Sprintf(printers[form].format, accesses[way](l))
			out, err := e.Execute("t", text, map[string]string{"v": raw}, NewBudget())
			switch {
			case l.absent && err == nil:
				t.Fatalf("%s, %s: Execute(%q) over %s wrote %q for null", way, form, text, raw, out)
			case l.absent, form == "printfS" && (l.raw == "true" || l.raw == "false"):
				refused++
			case err != nil:
				t.Fatalf("%s, %s: Execute(%q) over %s: %v", way, form, text, raw, err)
			default:
				exact++
				if diff := cmp.Diff(printers[form].want(l.text), string(out)); diff != "" {
					t.Fatalf("%s, %s: Execute(%q) over %s: -want, +got:\n%s", way, form, text, raw, diff)
				}
			}
		}
	}
	if exact < randomDocuments/2 || refused == 0 {
		t.Errorf("%d exact results and %d refusals: the documents are too small", exact, refused)
	}
}

// TestRandomBytes gives bytes that are not text to each function. The result contains them as they are, or is
// computed from their bytes alone, or is an error.
func TestRandomBytes(t *testing.T) {
	reads := map[string]bool{} // Functions whose result is computed from bytes.
	for name := range strings.FieldsSeq("b64enc b32enc sha1sum sha256sum sha512sum adler32sum trunc substr bcrypt htpasswd encryptAES derivePassword hello uuidv4 " +
		"typeOf kindOf typeIs typeIsLike kindIs empty len not eq ne lt le gt ge hasKey all any has mustHas deepEqual index hasPrefix") {
		reads[name] = true
	}
	e := engine(t)
	const raw = "\x00\xffa\xfe"
	for name := range functionCases {
		f := e.functions[name]
		if f == nil || reads[name] || f.rule.class == integers || f.rule.class == floats || f.rule.class == dates {
			continue
		}
		for _, text := range []string{`{{ %s .raw }}`, `{{ %s "a" .raw }}`, `{{ %s .raw "a" }}`, `{{ %s 2 .raw }}`, `{{ %s "a" "b" .raw }}`, `{{ %s (list .raw) }}`, `{{ %s (dict "a" .raw) "a" }}`} {
			out, err := e.Execute("t", fmt.Sprintf(text, name), map[string]string{"raw": raw}, NewBudget())
			if err == nil && strings.Contains(string(out), "\ufffd") || err == nil && len(out) > 0 && !strings.Contains(string(out), raw) && !harmlessResult(string(out)) {
				t.Errorf("%s: wrote %q", fmt.Sprintf(text, name), out)
			}
		}
	}
}

// harmlessResult reports whether an output has nothing of a value.
func harmlessResult(out string) bool {
	return out == "a" || out == "b" || out == "2" || out == "[a]" || out == "false" || out == "true" || out == "map[]" || out == "[]"
}

func keysOf[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}
