package template

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
)

func engine(t testing.TB) *Engine {
	t.Helper()
	e, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// values are the data of the templates in the tests.
var values = map[string]string{
	"user": "admin", "password": "p&ss<w>", "json": `{"a":{"b":[1,"x"]},"c":"d"}`, "yaml": "a:\n  b: [1, x]\nc: d\n",
	"lines": "one\ntwo", "hex": "68690a", "empty": "", "number": "42", "url": "https://u:p@host:8443/path?q=1#f",
}

// functionCases have a template for each function with a predictable result.
var functionCases = map[string]struct {
	text string
	want string
}{
	"abbrev": {`{{ abbrev 8 "hello world" }}`, "hello..."}, "abbrevboth": {`{{ abbrevboth 5 10 "1234 5678 9123" }}`, "...5678..."},
	"add": {`{{ add 1 "2" 3 }}`, "6"}, "add1": {`{{ add1 1 }}`, "2"}, "add1f": {`{{ add1f 1.5 }}`, "2.5"}, "addf": {`{{ addf 0.1 0.2 }}`, "0.3"},
	"adler32sum": {`{{ adler32sum "a" }}`, "6422626"}, "all": {`{{ all 1 "" }}`, "false"}, "any": {`{{ any 1 "" }}`, "true"},
	"and": {`{{ and 1 0 }}`, "0"}, "append": {`{{ append (list 1) 2 }}`, "[1 2]"}, "atoi": {`{{ atoi .number }}`, "42"},
	"b32dec": {`{{ b32dec "NBUQ====" }}`, "hi"}, "b32enc": {`{{ b32enc "hi" }}`, "NBUQ===="}, "b64dec": {`{{ b64dec "aGk=" }}`, "hi"}, "b64enc": {`{{ "hi" | b64enc }}`, "aGk="},
	"base": {`{{ base "a/b" }}`, "b"}, "biggest": {`{{ biggest 1 3 2 }}`, "3"}, "camelcase": {`{{ camelcase "http_server" }}`, "HttpServer"}, "cat": {`{{ cat "a" 1 }}`, "a 1"},
	"ceil": {`{{ ceil 1.2 }}`, "2"}, "chunk": {`{{ chunk 2 (list 1 2 3) }}`, "[[1 2] [3]]"}, "clean": {`{{ clean "a/../b" }}`, "b"}, "coalesce": {`{{ coalesce .empty "x" }}`, "x"},
	"compact": {`{{ compact (list 0 1 "") }}`, "[1]"}, "concat": {`{{ concat (list 1) (list 2) }}`, "[1 2]"}, "contains": {`{{ contains "b" "abc" }}`, "true"},
	"date": {`{{ date "2006" (toDate "2006-01-02" "2020-03-04") }}`, "2020"}, "dateInZone": {`{{ dateInZone "15:04" 0 "UTC" }}`, "00:00"}, "date_in_zone": {`{{ date_in_zone "15:04" 60 "UTC" }}`, "00:01"},
	"dateModify": {`{{ toDate "2006-01-02" "2020-03-04" | dateModify "24h" | date "02" }}`, "05"}, "date_modify": {`{{ toDate "2006-01-02" "2020-03-04" | date_modify "24h" | date "02" }}`, "05"},
	"mustDateModify": {`{{ toDate "2006-01-02" "2020-03-04" | mustDateModify "24h" | date "02" }}`, "05"}, "must_date_modify": {`{{ toDate "2006-01-02" "2020-03-04" | must_date_modify "24h" | date "02" }}`, "05"},
	"toDate": {`{{ (toDate "2006" "2020").Year }}`, "2020"}, "mustToDate": {`{{ (mustToDate "2006" "2020").Year }}`, "2020"}, "unixEpoch": {`{{ (toDate "2006-01-02 MST" "1970-01-02 UTC") | unixEpoch }}`, "86400"},
	"htmlDateInZone": {`{{ htmlDateInZone 0 "UTC" }}`, "1970-01-01"}, "htmlDate": {`{{ htmlDate (toDate "2006" "2020") }}`, "2020-01-01"},
	"duration": {`{{ duration "95" }}`, "1m35s"}, "durationRound": {`{{ durationRound "2h10m5s" }}`, "2h"},
	"decryptAES": {`{{ encryptAES "k" "text" | decryptAES "k" }}`, "text"}, "deepCopy": {`{{ deepCopy (dict "a" 1) }}`, "map[a:1]"}, "mustDeepCopy": {`{{ mustDeepCopy (dict "a" 1) }}`, "map[a:1]"},
	"deepEqual": {`{{ deepEqual (list 1) (list 1) }}`, "true"}, "default": {`{{ .empty | default "x" }}`, "x"}, "derivePassword": {`{{ derivePassword 1 "pin" "p" "u" "s" | len }}`, "4"},
	"dict": {`{{ (dict "a" 1).a }}`, "1"}, "dig": {`{{ dig "a" "b" "none" (fromJson .json) }}`, "[1 x]"}, "dir": {`{{ dir "a/b" }}`, "a"}, "div": {`{{ div 7 2 }}`, "3"}, "divf": {`{{ divf 7 2 }}`, "3.5"},
	"empty": {`{{ empty .empty }}`, "true"}, "eq": {`{{ eq .user "x" "admin" }}`, "true"}, "ext": {`{{ ext "a.b" }}`, ".b"}, "first": {`{{ first (list 1 2) }}`, "1"}, "mustFirst": {`{{ mustFirst (list 1 2) }}`, "1"},
	"float64": {`{{ float64 "1.5" }}`, "1.5"}, "floor": {`{{ floor 1.8 }}`, "1"}, "fromJson": {`{{ (fromJson .json).c }}`, "d"}, "mustFromJson": {`{{ (mustFromJson .json).c }}`, "d"},
	"fromYaml": {`{{ (fromYaml .yaml).a.b }}`, "[1 x]"}, "ge": {`{{ ge 2 2 }}`, "true"}, "get": {`{{ get (dict "a" 1) "a" }}`, "1"}, "gt": {`{{ gt 2 1 }}`, "true"},
	"has": {`{{ has 1 (list 1) }}`, "true"}, "mustHas": {`{{ mustHas 1 (list 1) }}`, "true"}, "hasKey": {`{{ hasKey (dict "a" 1) "b" }}`, "false"}, "hasPrefix": {`{{ hasPrefix "a" "ab" }}`, "true"}, "hasSuffix": {`{{ hasSuffix "b" "ab" }}`, "true"},
	"hello": {`{{ hello }}`, "Hello!"}, "hexdec": {`{{ hexdec .hex }}`, "hi\n"}, "html": {`{{ html .password }}`, "p&amp;ss&lt;w&gt;"}, "indent": {`{{ .lines | indent 2 }}`, "  one\n  two"},
	"index": {`{{ index . "user" }}`, "admin"}, "initial": {`{{ initial (list 1 2) }}`, "[1]"}, "mustInitial": {`{{ mustInitial (list 1 2) }}`, "[1]"}, "initials": {`{{ initials "First Try" }}`, "FT"}, "int": {`{{ int "7" }}`, "7"}, "int64": {`{{ int64 "7" }}`, "7"},
	"isAbs": {`{{ isAbs "/a" }}`, "true"}, "join": {`{{ join "-" (list "a" 1) }}`, "a-1"}, "js": {`{{ js "'" }}`, `\'`}, "kebabcase": {`{{ kebabcase "FirstName" }}`, "first-name"}, "keys": {`{{ keys (dict "a" 1) }}`, "[a]"},
	"kindIs": {`{{ kindIs "int" 1 }}`, "true"}, "kindOf": {`{{ kindOf "" }}`, "string"}, "last": {`{{ last (list 1 2) }}`, "2"}, "mustLast": {`{{ mustLast (list 1 2) }}`, "2"}, "le": {`{{ le 1 2 }}`, "true"}, "len": {`{{ len .user }}`, "5"},
	"list": {`{{ list 1 "a" }}`, "[1 a]"}, "lower": {`{{ lower "A" }}`, "a"}, "lt": {`{{ lt 1 2 }}`, "true"}, "max": {`{{ max 1 2 }}`, "2"}, "maxf": {`{{ maxf 1 2.5 }}`, "2.5"}, "min": {`{{ min 1 2 }}`, "1"}, "minf": {`{{ minf 1.5 2 }}`, "1.5"},
	"merge": {`{{ merge (dict "a" 1) (dict "a" 2 "b" 3) }}`, "map[a:1 b:3]"}, "mergeOverwrite": {`{{ mergeOverwrite (dict "a" 1) (dict "a" 2) }}`, "map[a:2]"}, "mustMerge": {`{{ mustMerge (dict) (dict "a" 2) }}`, "map[a:2]"}, "mustMergeOverwrite": {`{{ mustMergeOverwrite (dict) (dict "a" 2) }}`, "map[a:2]"},
	"mod": {`{{ mod 7 3 }}`, "1"}, "mul": {`{{ mul 2 3 }}`, "6"}, "mulf": {`{{ mulf 1.5 2 }}`, "3"}, "mustAppend": {`{{ mustAppend (list) 1 }}`, "[1]"}, "mustChunk": {`{{ mustChunk 1 (list 1) }}`, "[[1]]"}, "mustCompact": {`{{ mustCompact (list 0) }}`, "[]"},
	"mustPrepend": {`{{ mustPrepend (list 1) 0 }}`, "[0 1]"}, "mustPush": {`{{ mustPush (list) 1 }}`, "[1]"}, "mustRegexFind": {`{{ mustRegexFind "b+" "abb" }}`, "bb"}, "mustRegexFindAll": {`{{ mustRegexFindAll "b" "abb" -1 }}`, "[b b]"},
	"mustRegexMatch": {`{{ mustRegexMatch "^a" "abb" }}`, "true"}, "mustRegexReplaceAll": {`{{ mustRegexReplaceAll "(b)" "ab" "<$1>" }}`, "a<b>"}, "mustRegexReplaceAllLiteral": {`{{ mustRegexReplaceAllLiteral "b" "ab" "$1" }}`, "a$1"}, "mustRegexSplit": {`{{ mustRegexSplit "," "a,b" -1 }}`, "[a b]"},
	"mustRest": {`{{ mustRest (list 1 2) }}`, "[2]"}, "mustReverse": {`{{ mustReverse (list 1 2) }}`, "[2 1]"}, "mustSlice": {`{{ mustSlice (list 1 2 3) 1 }}`, "[2 3]"}, "mustToJson": {`{{ mustToJson (list 1) }}`, "[1]"}, "mustToPrettyJson": {`{{ mustToPrettyJson (list 1) }}`, "[\n  1\n]"}, "mustToRawJson": {`{{ mustToRawJson "<" }}`, `"<"`},
	"mustUniq": {`{{ mustUniq (list 1 1) }}`, "[1]"}, "mustWithout": {`{{ mustWithout (list 1 2) 1 }}`, "[2]"}, "ne": {`{{ ne 1 2 }}`, "true"}, "nindent": {`{{ "a" | nindent 1 }}`, "\n a"}, "nospace": {`{{ nospace "a b" }}`, "ab"}, "not": {`{{ not 0 }}`, "true"},
	"omit": {`{{ omit (dict "a" 1 "b" 2) "a" }}`, "map[b:2]"}, "or": {`{{ or 0 "x" }}`, "x"}, "osBase": {`{{ osBase "a/b" }}`, "b"}, "osClean": {`{{ osClean "a//b" }}`, "a/b"}, "osDir": {`{{ osDir "a/b" }}`, "a"}, "osExt": {`{{ osExt "a.b" }}`, ".b"}, "osIsAbs": {`{{ osIsAbs "a" }}`, "false"},
	"pick": {`{{ pick (dict "a" 1 "b" 2) "a" }}`, "map[a:1]"}, "pluck": {`{{ pluck "a" (dict "a" 1) (dict "a" 2) }}`, "[1 2]"}, "plural": {`{{ plural "one" "many" 2 }}`, "many"}, "prepend": {`{{ prepend (list 1) 0 }}`, "[0 1]"},
	"print": {`{{ print 1 2 "a" }}`, "1 2a"}, "printf": {`{{ printf "%s-%03d|%5.2f|%*d" .user 7 1.5 3 4 }}`, "admin-007| 1.50|  4"}, "println": {`{{ println 1 }}`, "1\n"}, "push": {`{{ push (list) 1 }}`, "[1]"},
	"quote": {`{{ quote "a\"" 1 }}`, `"a\"" "1"`}, "regexFind": {`{{ regexFind "[0-9]+" "a12b3" }}`, "12"}, "regexFindAll": {`{{ regexFindAll "[0-9]" "a12b3" 2 }}`, "[1 2]"}, "regexMatch": {`{{ regexMatch "(" "a" }}`, "false"},
	"regexQuoteMeta": {`{{ regexQuoteMeta "a.b" }}`, `a\.b`}, "regexReplaceAll": {`{{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }}`, "-W-xxW-"}, "regexReplaceAllLiteral": {`{{ regexReplaceAllLiteral "a(x*)b" "-ab-axxb-" "${1}" }}`, "-${1}-${1}-"}, "regexSplit": {`{{ regexSplit "z+" "pizzza" -1 }}`, "[pi a]"},
	"repeat": {`{{ repeat 3 "ab" }}`, "ababab"}, "replace": {`{{ replace "a" "b" "aa" }}`, "bb"}, "rest": {`{{ rest (list 1 2) }}`, "[2]"}, "reverse": {`{{ reverse (list 1 2) }}`, "[2 1]"}, "round": {`{{ round 1.256 2 }}`, "1.26"},
	"semver": {`{{ (semver "1.2.3").Minor }}`, "2"}, "semverCompare": {`{{ semverCompare "^1.2" "1.3.0" }}`, "true"}, "seq": {`{{ seq 1 2 5 }}`, "1 3 5"}, "set": {`{{ set (dict) "a" 1 }}`, "map[a:1]"}, "sha1sum": {`{{ sha1sum "a" | trunc 6 }}`, "86f7e4"}, "sha256sum": {`{{ sha256sum "a" | trunc 6 }}`, "ca9781"}, "sha512sum": {`{{ sha512sum "a" | trunc 6 }}`, "1f40fc"},
	"slice": {`{{ slice (list 1 2 3) 1 2 }}`, "[2]"}, "snakecase": {`{{ snakecase "FirstName" }}`, "first_name"}, "sortAlpha": {`{{ sortAlpha (list "b" "a") }}`, "[a b]"}, "split": {`{{ (split "," "a,b")._1 }}`, "b"}, "splitList": {`{{ splitList "," "a,b" }}`, "[a b]"}, "splitn": {`{{ splitn "," 2 "a,b,c" }}`, "map[_0:a _1:b,c]"},
	"squote": {`{{ squote "a" }}`, "'a'"}, "sub": {`{{ sub 3 2 }}`, "1"}, "subf": {`{{ subf 3 0.5 }}`, "2.5"}, "substr": {`{{ substr 1 3 "abcd" }}`, "bc"}, "swapcase": {`{{ swapcase "aB" }}`, "Ab"}, "ternary": {`{{ ternary "y" "n" true }}`, "y"}, "title": {`{{ title "ab cd" }}`, "Ab Cd"},
	"toDecimal": {`{{ toDecimal "0644" }}`, "420"}, "toJson": {`{{ toJson (dict "a" .user) }}`, `{"a":"admin"}`}, "toPrettyJson": {`{{ dict "a" 1 | toPrettyJson }}`, "{\n  \"a\": 1\n}"}, "toRawJson": {`{{ toRawJson .password }}`, `"p&ss<w>"`}, "toString": {`{{ toString 1 }}`, "1"}, "toStrings": {`{{ toStrings (list 1 2) }}`, "[1 2]"},
	"toYaml": {`{{ toYaml (dict "b" (list 1 "x") "a" "yes") }}`, "a: \"yes\"\nb:\n- 1\n- x"}, "trim": {`{{ trim " a " }}`, "a"}, "trimAll": {`{{ trimAll "$" "$a$" }}`, "a"}, "trimall": {`{{ trimall "$" "$a$" }}`, "a"}, "trimPrefix": {`{{ trimPrefix "a" "ab" }}`, "b"}, "trimSuffix": {`{{ trimSuffix "b" "ab" }}`, "a"}, "trunc": {`{{ trunc -2 "abc" }}`, "bc"},
	"tuple": {`{{ tuple 1 2 }}`, "[1 2]"}, "typeIs": {`{{ typeIs "int" 1 }}`, "true"}, "typeIsLike": {`{{ typeIsLike "int" 1 }}`, "true"}, "typeOf": {`{{ typeOf . }}`, "map[string]string"}, "uniq": {`{{ uniq (list 1 1 2) }}`, "[1 2]"}, "unset": {`{{ unset (dict "a" 1) "a" }}`, "map[]"}, "until": {`{{ until 3 }}`, "[0 1 2]"}, "untilStep": {`{{ untilStep 3 0 -1 }}`, "[3 2 1]"}, "untitle": {`{{ untitle "Ab" }}`, "ab"},
	"upper": {`{{ .user | upper }}`, "ADMIN"}, "urlJoin": {`{{ urlJoin (urlParse .url) }}`, "https://u:p@host:8443/path?q=1#f"}, "urlParse": {`{{ (urlParse .url).host }}`, "host:8443"}, "urlquery": {`{{ urlquery "a b" }}`, "a+b"}, "values": {`{{ values (dict "a" 1) }}`, "[1]"}, "without": {`{{ without (list 1 2) 1 }}`, "[2]"}, "wrap": {`{{ wrap 3 "ab cd" }}`, "ab\ncd"}, "wrapWith": {`{{ wrapWith 3 "|" "abcdef" }}`, "abc|def"},
}

func TestFunctions(t *testing.T) {
	e := engine(t)
	for name, c := range functionCases {
		t.Run(name, func(t *testing.T) {
			got, err := e.Execute("t", c.text, values, NewBudget())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("Execute(%q): -want, +got:\n%s", c.text, diff)
			}
		})
	}
}

// randomCases are functions with a different result each time, with a pattern of the result.
var randomCases = map[string]struct {
	text string
	want string
}{
	"ago":                      {`{{ ago now }}`, `^-?0s$`},
	"bcrypt":                   {`{{ bcrypt .password }}`, `^\$2a\$10\$`},
	"buildCustomCert":          {`{{ $c := genCA "x" 1 }}{{ (buildCustomCert (b64enc $c.Cert) (b64enc $c.Key)).Cert }}`, `BEGIN CERTIFICATE`},
	"encryptAES":               {`{{ encryptAES "k" "text" }}`, `^[A-Za-z0-9+/=]{44}$`},
	"genCA":                    {`{{ (genCA "x" 1).Key }}`, `BEGIN RSA PRIVATE KEY`},
	"genCAWithKey":             {`{{ (genCAWithKey "x" 1 (genPrivateKey "ecdsa")).Key }}`, `BEGIN EC PRIVATE KEY`},
	"genPrivateKey":            {`{{ genPrivateKey "ed25519" }}`, `BEGIN PRIVATE KEY`},
	"genSelfSignedCert":        {`{{ (genSelfSignedCert "x" (list "10.0.0.1") (list "a.b") 1).Cert }}`, `BEGIN CERTIFICATE`},
	"genSelfSignedCertWithKey": {`{{ (genSelfSignedCertWithKey "x" nil nil 1 (genPrivateKey "ecdsa")).Cert }}`, `BEGIN CERTIFICATE`},
	"genSignedCert":            {`{{ $ca := genCA "x" 1 }}{{ (genSignedCert "x" nil nil 1 $ca).Cert }}`, `BEGIN CERTIFICATE`},
	"genSignedCertWithKey":     {`{{ $ca := genCAWithKey "x" 1 (genPrivateKey "ecdsa") }}{{ (genSignedCertWithKey "x" nil nil 1 $ca (genPrivateKey "ecdsa")).Cert }}`, `BEGIN CERTIFICATE`},
	"htpasswd":                 {`{{ htpasswd .user .password }}`, `^admin:\$2a\$10\$`},
	"now":                      {`{{ now.UTC.Format "2006" }}`, `^\d{4}$`},
	"randAlpha":                {`{{ randAlpha 9 }}`, `^[A-Za-z]{9}$`},
	"randAlphaNum":             {`{{ randAlphaNum 9 }}`, `^[A-Za-z0-9]{9}$`},
	"randAscii":                {`{{ randAscii 9 }}`, `^[ -~]{9}$`},
	"randBytes":                {`{{ randBytes 9 }}`, `^[A-Za-z0-9+/]{12}$`},
	"randInt":                  {`{{ randInt 3 4 }}`, `^3$`},
	"randNumeric":              {`{{ randNumeric 9 }}`, `^\d{9}$`},
	"shuffle":                  {`{{ shuffle "aaa" }}`, `^aaa$`},
	"uuidv4":                   {`{{ uuidv4 }}`, `^[0-9a-f-]{36}$`},
}

func TestRandomFunctions(t *testing.T) {
	e := engine(t)
	for name, c := range randomCases {
		t.Run(name, func(t *testing.T) {
			got, err := e.Execute("t", c.text, values, NewBudget())
			if err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(c.want).Match(got) {
				t.Errorf("Execute(%q) = %q, want a match of %s", c.text, got, c.want)
			}
		})
	}
}

// TestEachFunctionIsTested fails for functions that are not in the tables above.
func TestEachFunctionIsTested(t *testing.T) {
	for name := range engine(t).known {
		if functionCases[name].text == "" && randomCases[name].text == "" && name != "fail" {
			t.Errorf("no test calls %q", name)
		}
	}
}

// TestSprigIsKnown fails when sprig adds or removes a function, so that a developer decides whether it is allowed.
func TestSprigIsKnown(t *testing.T) {
	allowed := rules()
	theirs := sprig.TxtFuncMap()
	var undecided, removed []string
	for name := range theirs {
		if _, ok := allowed[name]; !ok && !slices.Contains(refused, name) {
			undecided = append(undecided, name)
		}
	}
	ours := own()
	for name := range allowed {
		if theirs[name] == nil && ours[name] == nil {
			removed = append(removed, name)
		}
	}
	for _, name := range refused {
		if _, ok := allowed[name]; ok {
			t.Errorf("%q is refused and allowed", name)
		}
	}
	if diff := cmp.Diff([2][]string{}, [2][]string{undecided, removed}); diff != "" {
		t.Errorf("-want, +got (functions neither allowed nor refused, and functions that do not exist):\n%s", diff)
	}
}

func TestRefusedFunctions(t *testing.T) {
	e := engine(t)
	for _, name := range append([]string{"call", hiddenTick, hiddenEnter, hiddenExit, hiddenMeasure, hiddenRange, hiddenMethod, hiddenNeed, hiddenTest, hiddenTested, hiddenLength, hiddenIndex, hiddenGet, "include", "tpl", "lookup"}, refused...) {
		_, err := e.Execute("t", "\n{{ "+name+` "HOME" }}`, nil, NewBudget())
		want := `t: line 2: function "` + name + `" not defined`
		if err == nil || err.Error() != want {
			t.Errorf("Execute with %s: %v, want %s", name, err, want)
		}
	}
}

// TestRegexpAgrees compares the searches with those of package regexp, which have no limits.
func TestRegexpAgrees(t *testing.T) {
	patterns := []string{"", "a", "a*", "a*?", "^a", "(?m)^a", "a$", `\b`, `\B`, `\Ba.*b|a`, `(a)(b)?`, "é|a", `\Qab`, `a|\QB.\\E|\Qb\E+|\\Qa`, "(?i)A+", `(?P<n>a)b`, "$", "^", "[^,]*"}
	inputs := []string{"", "a", "aab ab\naé,a", "bbb", "éé", "a\xffa", ",a,,b", "ab ab aab"}
	for _, p := range patterns {
		re := regexp.MustCompile(p)
		for _, text := range inputs {
			r := &run{budget: NewBudget()}
			for _, n := range []int{-1, 0, 1, 2} {
				found, err := regexFindAll(r, p, text, n)
				if diff := cmp.Diff(re.FindAllString(text, n), found); diff != "" || err != nil {
					t.Errorf("regexFindAll(%q, %q, %d): %v: -want, +got:\n%s", p, text, n, err, diff)
				}
				parts, err := regexSplit(r, p, text, n)
				if diff := cmp.Diff(re.Split(text, n), parts); diff != "" || err != nil {
					t.Errorf("regexSplit(%q, %q, %d): %v: -want, +got:\n%s", p, text, n, err, diff)
				}
			}
			replaced, err := regexReplaceAll(r, p, text, "<$1$n>")
			if diff := cmp.Diff(re.ReplaceAllString(text, "<$1$n>"), replaced); diff != "" || err != nil {
				t.Errorf("regexReplaceAll(%q, %q): %v: -want, +got:\n%s", p, text, err, diff)
			}
			replacer, err := NewReplacer(re, NewBudget())
			if err != nil {
				t.Fatal(err)
			}
			outside, err := replacer.Replace(text, "<$1$n>")
			if diff := cmp.Diff(re.ReplaceAllString(text, "<$1$n>"), outside); diff != "" || err != nil {
				t.Errorf("Replace(%q, %q): %v: -want, +got:\n%s", p, text, err, diff)
			}
			literal, err := regexReplaceAllLiteral(r, p, text, "<$1>")
			if diff := cmp.Diff(re.ReplaceAllLiteralString(text, "<$1>"), literal); diff != "" || err != nil {
				t.Errorf("regexReplaceAllLiteral(%q, %q): %v: -want, +got:\n%s", p, text, err, diff)
			}
		}
	}
}

// TestRegexpClasses searches with expressions that the parser, or the printer of an expression, takes long for.
func TestRegexpClasses(t *testing.T) {
	wide := "(?i)[Ā-\u7fff]"
	cases := map[string]struct{ reason, expr, want string }{
		"Classes": {"As in other fields, an expression with many Unicode classes is refused, without its text, which can be secret.", strings.Repeat(`\pL`, 9), "the regular expression has 9 Unicode classes such as \\pL, at most 8 are allowed; use fewer"},
		"Ranges":  {"So is one with wide ranges that ignore case.", wide + "[Ā-\u7fff]", "the regular expression ignores case, and its ranges have 65024 characters, at most 32768 are allowed; use smaller ranges, or remove the flag i"},
		"Budget":  {"A loop cannot compile them a thousand times.", wide, "the templates of this Secret do too much work; make them simpler, or their loops shorter"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &run{budget: NewBudget()}
			var err error
			for i := 0; i < 1000 && err == nil; i++ {
				_, err = regexFindAll(r, tc.expr, "ab", -1)
			}
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s\nregexFindAll(%q): %v, want %s", tc.reason, tc.expr, err, tc.want)
			}
		})
	}
	start := time.Now()
	found, err := regexFindAll(&run{budget: NewBudget()}, "a|"+strings.Repeat("[^٠]", 800), "aa", -1)
	if diff := cmp.Diff([]string{"a", "a"}, found); diff != "" || err != nil || time.Since(start) > 500*time.Millisecond {
		t.Errorf("an expression that has 800 classes is found after %s, %v: -want, +got:\n%s", time.Since(start), err, diff)
	}
}

// TestIndex looks up keys that might be missing. If the value is only tested, a missing key is not an error.
func TestIndex(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"There":       {"An existing key is found at every place.", `{{ index . "my-key" }}{{ "my-key" | index $ }}{{ $k := "my-key" }}{{ index $ $k | upper }}`, "xxX"},
		"If":          {"A condition can test a missing key.", `{{ if index . "nope" }}a{{ else if index . "my-key" }}b{{ end }}`, "b"},
		"With":        {"A with can test a missing key.", `{{ with index . "nope" }}a{{ else }}b{{ end }}`, "b"},
		"Compared":    {"A comparison in a condition can test a missing key.", `{{ if eq (index . "nope") "a" }}a{{ else }}b{{ end }}`, "b"},
		"Default":     {"default can test a missing key.", `{{ index . "nope" | default "b" }}{{ default "c" (index . "nope") }}`, "bc"},
		"Coalesce":    {"coalesce, and, or can test a missing key.", `{{ coalesce (index . "nope") (index . "my-key") }}{{ or (index . "nope") "b" }}{{ and (index . "nope") "c" }}`, "xb"},
		"Empty":       {"empty and not can test a missing key.", `{{ empty (index . "nope") }}{{ not (index . "nope") }}`, "truetrue"},
		"Dict":        {"index works on dicts.", `{{ $d := dict "a" 1 }}{{ index $d "a" }}{{ index $d "b" | default 2 }}`, "12"},
		"List":        {"index works on lists.", `{{ $l := list 1 2 }}{{ index $l 1 }}{{ index (list (dict "a" 3)) 0 "a" }}`, "23"},
		"Several":     {"Only the first key is looked up in the data.", `{{ $d := dict "a" (dict "b" 1) }}{{ index $d "a" "b" }}`, "1"},
		"Once":        {"The expression for the key is evaluated only once.", `{{ $d := dict }}{{ index $ (ternary "my-key" "nope" (set $d (print (len $d)) 1 | len | eq 1)) }}{{ len $d }}`, "x1"},
		"InCondition": {"The body of a condition is not a test.", `{{ if true }}{{ index . "my-key" }}{{ end }}`, "x"},
	}
	e := engine(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := e.Execute("t", tc.text, map[string]string{"my-key": "x"}, NewBudget())
			if err != nil {
				t.Fatalf("\n%s\nExecute(): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("\n%s\nExecute(%q): -want, +got:\n%s", tc.reason, tc.text, diff)
			}
		})
	}
}

func TestAddedFunctions(t *testing.T) {
	e, err := New(map[string]Function{
		"pemCertificate": {Call: func(s string) (string, error) { return strings.ToUpper(s), nil }, Steps: 10},
		"joined":         {Call: func(s ...string) string { return strings.Join(s, "+") }},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Execute("t", `{{ .user | pemCertificate }} {{ joined "a" .user }}`, values, NewBudget())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("ADMIN a+admin", string(got)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	for reason, f := range map[string]map[string]Function{
		"a builtin function is taken":  {"and": {Call: strings.ToUpper}},
		"sprig's are taken":            {"upper": {Call: strings.ToUpper}},
		"not a function":               {"x": {Call: 1}},
		"no function at all":           {"x": {}},
		"no result":                    {"x": {Call: func() {}}},
		"the second must be an error":  {"x": {Call: func() (string, string) { return "", "" }}},
		"a name that is no identifier": {"a-b": {Call: strings.ToUpper}},
	} {
		if _, err := New(f); err == nil {
			t.Errorf("New: %s: no error", reason)
		}
	}
}

// TestResultTypes fails when a function returns a new type: templates can read the fields of every value, so a
// developer must check the type.
func TestResultTypes(t *testing.T) {
	known := map[string]bool{
		"string": true, "bool": true, "int": true, "int64": true, "float64": true, "interface {}": true, "[]int": true, "[]string": true,
		"[]interface {}": true, "[][]interface {}": true, "map[string]string": true, "map[string]interface {}": true,
		"time.Time": true, "*semver.Version": true, "sprig.certificate": true,
	}
	for name, f := range shared() {
		if result := f.typ.Out(0); !known[result.String()] {
			t.Errorf("function %q returns a %s", name, result)
		}
	}
}

// TestClassesArePublished compares the classes of functions with the reference of templates.
func TestClassesArePublished(t *testing.T) {
	const tree = "../../../../"
	if _, err := os.Stat(tree + "charts"); errors.Is(err, fs.ErrNotExist) {
		return // The module is tested alone, so there are no pages.
	}
	page, err := os.ReadFile(tree + "docs/reference/templates.md")
	if err != nil {
		t.Fatal(err)
	}
	classes := map[string]class{"that pass values on": passes, "that read bytes": passes, "that print": prints, "on text": textual, "on integers": integers, "on decimals": floats, "on times": dates, "Comparisons": passes, "Conversions": prints}
	published := map[string]class{}
	for _, m := range regexp.MustCompile("(?m)^(?:Functions )?(that [a-z ]+? (?:on|bytes)|that print|on [a-z]+|Comparisons|Conversions)\\b.*:\n\n```text\n([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		for name := range strings.FieldsSeq(m[2]) {
			published[name] = classes[m[1]]
		}
	}
	generates := regexp.MustCompile(`^(rand|gen|until|seq$|buildCustomCert$|must_date_modify$|now$|hello$|uuidv4$)`)
	for name, f := range shared() {
		base := strings.TrimPrefix(name, "must")
		known, ok := published[name]
		if !ok && base != name {
			known, ok = published[strings.ToLower(base[:1])+base[1:]]
		}
		if !ok && !generates.MatchString(name) || ok && known != f.rule.class {
			t.Errorf("the page has %q: %t, with class %d; its class is %d", name, ok, known, f.rule.class)
		}
	}
}
