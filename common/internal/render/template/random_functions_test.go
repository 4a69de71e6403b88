package template

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	texttemplate "text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
)

// passing has, for each function that passes values on, an expression that yields the value %s again. The functions in
// describing yield no value of their arguments.
var passing = map[string]string{
	"append": `(last (append (list 1) %s))`, "mustAppend": `(last (mustAppend (list) %s))`, "push": `(last (push (list) %s))`, "mustPush": `(last (mustPush (list) %s))`,
	"prepend": `(first (prepend (list 1) %s))`, "mustPrepend": `(first (mustPrepend (list) %s))`, "list": `(first (list %s))`, "tuple": `(index (tuple 1 %s) 1)`,
	"chunk": `(first (first (chunk 1 (list %s))))`, "mustChunk": `(first (first (mustChunk 2 (list %s 1))))`, "concat": `(last (concat (list 1) (list %s)))`,
	"first": `(first (list %s 1))`, "mustFirst": `(mustFirst (list %s 1))`, "last": `(last (list 1 %s))`, "mustLast": `(mustLast (list 1 %s))`,
	"rest": `(first (rest (list 1 %s)))`, "mustRest": `(first (mustRest (list 1 %s)))`, "initial": `(last (initial (list %s 1)))`, "mustInitial": `(last (mustInitial (list %s 1)))`,
	"reverse": `(last (reverse (list %s 1)))`, "mustReverse": `(last (mustReverse (list %s 1)))`, "slice": `(first (slice (list 1 %s) 1))`, "mustSlice": `(first (mustSlice (list %s) 0 1))`,
	"uniq": `(first (uniq (list %s)))`, "mustUniq": `(first (mustUniq (list %s)))`, "without": `(first (without (list %s) "-"))`, "mustWithout": `(first (mustWithout (list %s) "-"))`,
	"dict": `(dict "k" %s).k`, "set": `(set (dict) "k" %s).k`, "unset": `(unset (dict "k" %s) "x").k`, "get": `(get (dict "k" %s) "k")`, "index": `(index (dict "k" %s) "k")`,
	"dig": `(dig "k" "none" (dict "k" %s))`, "pick": `(pick (dict "k" %s) "k").k`, "omit": `(omit (dict "k" %s) "x").k`, "pluck": `(first (pluck "k" (dict "k" %s)))`,
	"values": `(first (values (dict "k" %s)))`, "keys": `(first (values (dict (first (keys (dict "k" 1))) %s)))`, "merge": `(merge (dict) (dict "k" %s)).k`, "mustMerge": `(mustMerge (dict) (dict "k" %s)).k`,
	"mergeOverwrite": `(mergeOverwrite (dict "x" 1) (dict "k" %s)).k`, "mustMergeOverwrite": `(mustMergeOverwrite (dict "x" 1) (dict "k" %s)).k`,
	"deepCopy": `(deepCopy (dict "k" %s)).k`, "mustDeepCopy": `(mustDeepCopy (dict "k" (list %s))).k | first`, "ternary": `(ternary %s "-" true)`,
	"toJson": `(fromJson (toJson (dict "k" %s))).k`, "mustToJson": `(fromJson (mustToJson (dict "k" %s))).k`, "toPrettyJson": `(fromJson (toPrettyJson (dict "k" %s))).k`,
	"mustToPrettyJson": `(fromJson (mustToPrettyJson (list %s))) | first`, "toRawJson": `(mustFromJson (toRawJson (dict "k" %s))).k`, "mustToRawJson": `(fromJson (mustToRawJson (dict "k" %s))).k`,
	"toYaml": `(fromYaml (toYaml (dict "k" %s "z" 1))).k`,
}

// falsy are functions that yield another value for one that is empty.
var falsy = map[string]string{
	"default": `(default "" %s)`, "coalesce": `(coalesce %s "")`, "compact": `(first (compact (list %s)))`, "mustCompact": `(first (mustCompact (list %s)))`,
	"and": `(and %s %[1]s)`, "or": `(or %s %[1]s)`,
}

// describing are functions that only tell something about their arguments, or generate values.
const describing = "all any deepEqual empty has mustHas hasKey kindIs kindOf typeIs typeIsLike typeOf len not eq ne lt le gt ge " +
	"adler32sum b32enc b64enc bcrypt htpasswd decryptAES encryptAES derivePassword sha1sum sha256sum sha512sum substr trunc hello uuidv4 until untilStep seq " +
	"randAlpha randAlphaNum randAscii randBytes randNumeric buildCustomCert genCA genCAWithKey genPrivateKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey"

// textCalls has a call of each function on text, with the text %s. Their results are those of sprig for the same text.
var textCalls = map[string]string{
	"abbrev": `abbrev 8 %s`, "abbrevboth": `abbrevboth 2 9 %s`, "base": `base %s`, "camelcase": `camelcase %s`, "cat": `cat "a" %s`, "clean": `clean %s`, "contains": `contains "a" %s`,
	"dir": `dir %s`, "ext": `ext %s`, "hasPrefix": `hasPrefix "a" %s`, "hasSuffix": `hasSuffix "a" %s`, "html": `html %s`, "indent": `indent 2 %s`, "initials": `initials %s`,
	"isAbs": `isAbs %s`, "join": `join "," (list %s "a" %[1]s)`, "js": `js %s`, "kebabcase": `kebabcase %s`, "lower": `lower %s`, "nindent": `nindent 2 %s`, "nospace": `nospace %s`,
	"osBase": `osBase %s`, "osClean": `osClean %s`, "osDir": `osDir %s`, "osExt": `osExt %s`, "osIsAbs": `osIsAbs %s`, "plural": `plural %s "b" 1`, "quote": `quote %s`,
	"regexFind": `regexFind "[a-z]+" %s`, "mustRegexFind": `mustRegexFind "." %s`, "regexFindAll": `regexFindAll "." %s -1 | join "|"`, "mustRegexFindAll": `mustRegexFindAll "[^,]" %s 3 | join "|"`,
	"regexMatch": `regexMatch "^a" %s`, "mustRegexMatch": `mustRegexMatch "a$" %s`, "regexQuoteMeta": `regexQuoteMeta %s`, "regexReplaceAll": `regexReplaceAll "(a)" %s "<$1>"`,
	"mustRegexReplaceAll": `mustRegexReplaceAll "." %s "${0}x"`, "regexReplaceAllLiteral": `regexReplaceAllLiteral "a" %s "$1"`, "mustRegexReplaceAllLiteral": `mustRegexReplaceAllLiteral "\\n" %s "x"`,
	"regexSplit": `regexSplit "," %s -1 | join "|"`, "mustRegexSplit": `mustRegexSplit "a" %s 2 | join "|"`, "repeat": `repeat 2 %s`, "replace": `replace "a" "bb" %s`,
	"snakecase": `snakecase %s`, "sortAlpha": `sortAlpha (list "b" %s "a") | join "|"`, "split": `(split "," %s)._0`, "splitList": `splitList "," %s | join "|"`, "splitn": `(splitn "a" 2 %s)._0`,
	"squote": `squote %s`, "swapcase": `swapcase %s`, "title": `title %s`, "toStrings": `toStrings (list %s) | join "|"`, "trim": `trim %s`, "trimAll": `trimAll "a" %s`, "trimall": `trimall "," %s`,
	"trimPrefix": `trimPrefix "a" %s`, "trimSuffix": `trimSuffix "\n" %s`, "untitle": `untitle %s`, "upper": `upper %s`, "urlquery": `urlquery %s`,
	"wrap": `wrap 3 %s`, "wrapWith": `wrapWith 3 "|" %s`,
}

// refusing are functions on text of a form that a random text does not have, or whose result is random.
const refusing = "b32dec b64dec hexdec fail fromJson mustFromJson fromYaml semver semverCompare toDate mustToDate urlJoin urlParse shuffle"

// TestRandomFunctionsOnDocuments puts each leaf of random documents through a random function that passes values on, and one on
// text. The result is exact, or that of sprig for the exact text, or an error.
func TestRandomFunctionsOnDocuments(t *testing.T) {
	e := engine(t)
	excluded := map[string]bool{}
	for name := range strings.FieldsSeq(describing + " " + refusing) {
		excluded[name] = true
	}
	for name, f := range shared() {
		known := passing[name] != "" || falsy[name] != "" || textCalls[name] != "" || excluded[name]
		if (f.rule.class == passes || f.rule.class == textual) && !known {
			t.Errorf("no random text is put through %s", name)
		}
	}
	seed := time.Now().UnixNano()
	t.Logf("%d documents of seed %d", randomDocuments, seed)
	r := rand.New(rand.NewSource(seed))
	pass, text, empties := keysOf(passing), keysOf(textCalls), keysOf(falsy)
	for range randomDocuments {
		raw, leaves := randomDocument(r, 0, nil)
		for _, l := range leaves {
			value := accesses["field"](l)
			through(t, e, l, raw, fmt.Sprintf(passing[pass[r.Intn(len(pass))]], value), l.text)
			through(t, e, l, raw, fmt.Sprintf(falsy[empties[r.Intn(len(empties))]], value), l.text)
			call := textCalls[text[r.Intn(len(text))]]
			through(t, e, l, raw, fmt.Sprintf(call, "(toString "+value+")"), theirs(t, fmt.Sprintf(call, "(.x)"), l.text))
		}
	}
}

// through renders an expression, whose result must be want, or an error.
func through(t *testing.T, e *Engine, l leaf, raw, expression, want string) {
	t.Helper()
	out, err := e.Execute("t", "{{ "+expression+" }}", map[string]string{"v": raw}, NewBudget())
	d, number := parseDecimal(l.raw)
	zero := number && d.digits == "" || l.raw == "false" || l.raw == `""`
	switch {
	case err != nil && (l.absent || zero || strings.Contains(l.text, "\x00")):
	case err != nil:
		t.Fatalf("Execute(%q) over %s: %v", expression, raw, err)
	case zero && string(out) == "": // It is empty for default and others.
	case l.absent && string(out) != "":
		t.Fatalf("Execute(%q) over %s wrote %q for null", expression, raw, out)
	case !l.absent && string(out) != want:
		t.Fatalf("Execute(%q) over %s: -want, +got:\n%s", expression, raw, cmp.Diff(want, string(out)))
	}
}

// theirs returns the result of sprig for a text.
func theirs(t *testing.T, expression, text string) string {
	t.Helper()
	var out strings.Builder
	if err := texttemplate.Must(texttemplate.New("t").Funcs(sprig.TxtFuncMap()).Parse("{{ "+expression+" }}")).Execute(&out, map[string]string{"x": text}); err != nil {
		t.Fatalf("%s of sprig for %q: %v", expression, text, err)
	}
	return out.String()
}
