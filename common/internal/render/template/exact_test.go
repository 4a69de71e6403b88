package template

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exactValues are the data of TestExact.
var exactValues = map[string]string{
	"v":    `{"id":12345678,"big":9007199254740993,"p":1.10,"zero":0.0,"null":null,"list":[1.50,null],"text":"x","many":12345678901234567890123,"tiny":1e-400,"exp":1E+3,"in":{"n":1.10}}`,
	"yaml": "port: 10000000\nmode: 0644\nhex: 0x1F\nbig: 9007199254740993\np: 1.10\nnull: ~\non: yes\n1e3: .5\nbin: !!binary AP/+\n",
	"raw":  "\x00\xff\xfe", "half": `{"a":"\ud800"}`, "twice": `{"a":1,"b":{"c":1,"c":2}}`, "twiceYAML": "a: 1\na: 2\n", "docs": "a: 1\n---\na: 2\n", "oneDoc": "---\na: 1\n---\n",
	"merge": "base: &b {x: 1, y: 2}\nown:\n  <<: *b\n  y: 3\n", "nul": "a\x00b", "seven": "7", "word": "seven",
}

// TestExact holds each way of access, of printing and each class of functions to the value of the document.
func TestExact(t *testing.T) {
	const notText = "a value is not text, so it would be changed; use b64enc"
	null := func(name string) string {
		return `t: line 1, column 4: "` + name + `" is missing or null; use default, or test it with if`
	}
	cases := map[string]struct {
		text string
		// want is the output, or the error.
		want string
	}{
		"Field":           {`{{ (.v | fromJson).id }} {{ (fromJson .v).big }} {{ (mustFromJson .v).p }}`, "12345678 9007199254740993 1.10"},
		"FieldDeep":       {`{{ $d := .v | fromJson }}{{ $d.in.n }} {{ $d.many }} {{ $d.tiny }} {{ $d.exp }}`, "1.10 12345678901234567890123 1e-400 1E+3"},
		"Index":           {`{{ index (.v | fromJson) "id" }} {{ index (fromJson .v) "list" 0 }} {{ index (fromJson .v) "in" "n" }}`, "12345678 1.50 1.10"},
		"Get":             {`{{ get (fromJson .v) "p" }} {{ dig "in" "n" "none" (fromJson .v) }} {{ dig "in" "none" "none" (fromJson .v) }}`, "1.10 1.10 none"},
		"Range":           {`{{ range $k, $v := (fromJson .v).in }}{{ $k }}={{ $v }}{{ end }} {{ first (fromJson .v).list }} {{ range (fromJson .v).list }}{{ . }}{{ break }}{{ end }}`, "n=1.10 1.50 1.50"},
		"With":            {`{{ with (fromJson .v).in }}{{ .n }}{{ end }}{{ with $x := (fromJson .v).id }}{{ $x }}{{ end }}`, "1.1012345678"},
		"Print":           {`{{ $d := fromJson .v }}{{ print $d.id }} {{ printf "%v %s %5.2f %d %x %.0f %e" $d.p $d.big $d.p $d.id $d.id $d.big $d.exp }} {{ toString $d.p }} {{ quote $d.id }} {{ squote $d.p }} {{ cat $d.p "x" }} {{ html $d.p }} {{ println $d.exp | trim }}`, `12345678 1.10 9007199254740993  1.10 12345678 bc614e 9007199254740993 1.000000e+03 1.10 "12345678" '1.10' 1.10 x 1.10 1E+3`},
		"PrintDict":       {`{{ (fromJson .v).in }} {{ printf "%v" (fromJson .v).in }} {{ join "," (list (fromJson .v).p 2) }} {{ toStrings (fromJson .v).p }}`, "map[n:1.10] map[n:1.10] 1.10,2 [1.10]"},
		"JSON":            {`{{ .v | fromJson | toJson }}`, `{"big":9007199254740993,"exp":1E+3,"id":12345678,"in":{"n":1.10},"list":[1.50,null],"many":12345678901234567890123,"null":null,"p":1.10,"text":"x","tiny":1e-400,"zero":0.0}`},
		"PrettyJSON":      {`{{ (fromJson .v).in | toPrettyJson }}{{ (fromJson .v).in | toRawJson }}`, "{\n  \"n\": 1.10\n}{\"n\":1.10}"},
		"YAML":            {`{{ (fromJson .v) | toYaml }}`, "big: 9007199254740993\nexp: 1E+3\nid: 12345678\nin:\n  \"n\": 1.10\nlist:\n- 1.50\n- null\nmany: 12345678901234567890123\n\"null\": null\np: 1.10\ntext: x\ntiny: 1e-400\nzero: 0.0"},
		"YAMLTab":         {`{{ dict "a" "\tx\ny" "b" (fromJson .v).zero | toYaml }}`, "a: \"\\tx\\ny\"\nb: 0.0"},
		"YAMLLineEnd":     {`{{ dict "a" "x\n" | toYaml }}|{{ dict "a" "x\n" "b" 1 | toYaml }}`, "a: \"x\\n\"|a: |\n  x\nb: 1"},
		"Copies":          {`{{ $d := deepCopy (fromJson .v) }}{{ $d.p }} {{ (merge (dict "a" 1) (fromJson .v)).zero }} {{ (omit (fromJson .v) "id").p }} {{ concat (list (fromJson .v).p) (list 1) }} {{ (fromJson .v).list | first | list | toJson }}`, "1.10 0.0 1.10 [1.10 1] [1.50]"},
		"FromYAML":        {`{{ $d := fromYaml .yaml }}{{ $d.port }} {{ $d.mode }} {{ $d.hex }} {{ $d.big }} {{ $d.p }} {{ $d.on }} {{ index $d "1e3" }} {{ $d.bin | b64enc }}`, "10000000 0644 0x1F 9007199254740993 1.10 true .5 AP/+"},
		"YAMLMerge":       {`{{ (fromYaml .merge).own | toJson }} {{ (fromYaml .oneDoc).a }}`, `{"x":1,"y":3} 1`},
		"YAMLInJSON":      {`{{ omit (fromYaml .yaml) "bin" | toJson }}`, `t: line 1, column 34: function "toJson": the value cannot be written as JSON`},
		"Compute":         {`{{ $d := fromJson .v }}{{ add $d.id 1 }} {{ add $d.big 1 }} {{ int64 $d.big }} {{ round $d.p 1 }} {{ floor $d.p }} {{ mulf $d.p 2 }} {{ max $d.id 5 }} {{ int (fromYaml .yaml).mode }} {{ atoi .seven }} {{ int $d.exp }}`, "12345679 9007199254740994 9007199254740993 1.1 1 2.2 12345678 420 7 1000"},
		"Compare":         {`{{ $d := fromJson .v }}{{ gt $d.id 5.0 }} {{ eq $d.id 12345678 }} {{ eq $d.big 9007199254740992 }} {{ lt $d.tiny 1 }} {{ eq $d.p 1.1 }} {{ ne $d.p $d.id }} {{ has 1.5 $d.list }} {{ without $d.list 1.5 nil }} {{ uniq (list $d.p 1.1) }} `, "true true false true true true true [] [1.10] "},
		"CompareMore":     {`{{ $d := fromJson .v }}{{ le $d.zero 0 }} {{ eq $d.exp 1000 }} {{ deepEqual $d.in (dict "n" 1.1) }} {{ ge $d.many $d.big }}`, "true true true true"},
		"Kinds":           {`{{ $d := fromJson .v }}{{ kindOf $d.id }} {{ kindIs "float64" $d.p }} {{ typeOf $d.id }} {{ typeIs "float64" $d.id }} {{ typeIsLike "float64" $d.id }}`, "float64 true float64 true true"},
		"Zero":            {`{{ $d := fromJson .v }}{{ if $d.zero }}a{{ else }}b{{ end }}{{ with $d.zero }}a{{ else }}b{{ end }}{{ if $x := $d.zero }}a{{ else }}{{ $x }}{{ end }}{{ if not $d.zero }}c{{ end }}`, "bb0.0c"},
		"ZeroFallback":    {`{{ $d := fromJson .v }}{{ $d.zero | default "x" }} {{ coalesce $d.zero $d.p }} {{ empty $d.zero }} {{ any $d.zero }} {{ all $d.p $d.zero }} {{ compact (list $d.zero $d.p) }}`, "x 1.10 true false false [1.10]"},
		"ZeroAndOr":       {`{{ $d := fromJson .v }}{{ and $d.zero "x" }} {{ or $d.zero $d.zero }} {{ or $d.zero $d.p | quote }} {{ $d.zero | or "" }} {{ and "x" $d.p }}`, `0.0 0.0 "1.10" 0.0 1.10`},
		"NullHandled":     {`{{ $d := fromJson .v }}{{ $d.null | default "x" }}{{ if $d.null }}a{{ else }}b{{ end }}{{ with $d.null }}a{{ else }}b{{ end }}`, "xbb"},
		"NullAsked":       {`{{ $d := fromJson .v }}{{ coalesce $d.null "c" }}{{ empty $d.null }}{{ hasKey $d "null" }}{{ index $d "none" | default "d" }}{{ get $d "none" | default "e" }}{{ ternary "f" "g" (eq $d.null nil) }}`, "ctruetruedef"},
		"NullInJSON":      {`{{ dict "a" (fromJson .v).null | toJson }}{{ list (fromJson .v).null | toYaml }}`, `{"a":null}- null`},
		"NullField":       {`{{ (.v | fromJson).null }}`, null("null")},
		"NullVariable":    {`{{ $x := (.v | fromJson).null }}{{ $x }}`, `t: line 1, column 36: "$x" is missing or null; use default, or test it with if`},
		"NullIndex":       {`{{ index (.v | fromJson) "null" }}`, null("null")},
		"NullGet":         {`{{ get (.v | fromJson) "null" }}`, null("null")},
		"NullElement":     {`{{ range (fromJson .v).list }}{{ . }}{{ end }}`, `t: line 1, column 34: a value is missing or null; use default, or test it with if`},
		"NullInList":      {`{{ join "," (fromJson .v).list }}`, `t: line 1, column 4: function "join": a value is missing or null; use default, or test it with if`},
		"NullInPrint":     {`{{ (fromJson .v).list }}`, `t: line 1, column 4: a value is missing or null; use default, or test it with if`},
		"NullArgument":    {`{{ quote (fromJson .v).null }}`, `t: line 1, column 23: "null" is missing or null; use default, or test it with if`},
		"NullText":        {`{{ (fromJson .v).null | upper }}`, `t: line 1, column 25: "null" is missing or null; use default, or test it with if`},
		"NullCompute":     {`{{ add 1 (fromJson .v).null }}`, `t: line 1, column 23: "null" is missing or null; use default, or test it with if`},
		"NullPrintf":      {`{{ printf "%v" (fromJson .v).null }}`, `t: line 1, column 29: "null" is missing or null; use default, or test it with if`},
		"NullFallback":    {`{{ coalesce (fromJson .v).null }}`, `t: line 1, column 4: a value is missing or null; use default, or test it with if`},
		"MissingIndex":    {`{{ index (fromJson .v) "typo" }}`, `t: line 1, column 4: there is no key "typo"`},
		"MissingField":    {`{{ (fromJson .v).typo }}`, `t: line 1, column 14: there is no key "typo"`},
		"MissingGet":      {`{{ get (fromJson .v) "typo" | upper }}`, `t: line 1, column 4: there is no key "typo"`},
		"MissingComputed": {`{{ index (fromJson .v) (fromJson .v).text }}`, `t: line 1, column 4: there is no such key`},
		"BytesJSON":       {`{{ .raw | toJson }}`, `t: line 1, column 11: function "toJson": ` + notText},
		"BytesYAML":       {`{{ dict "a" (list .raw) | toYaml }}`, `t: line 1, column 27: function "toYaml": ` + notText},
		"BytesUpper":      {`{{ .raw | upper }}`, `t: line 1, column 11: function "upper": ` + notText},
		"BytesQuote":      {`{{ quote .raw }}`, `t: line 1, column 4: function "quote": ` + notText},
		"BytesInList":     {`{{ join "," (list "a" .raw) }}`, `t: line 1, column 4: function "join": ` + notText},
		"BytesFromJSON":   {`{{ fromJson .raw }}`, `t: line 1, column 4: function "fromJson": ` + notText},
		"BytesFormat":     {`{{ printf "%q" .raw }}`, `t: line 1, column 4: function "printf": a verb of the format does not fit its value, or values and verbs differ in number`},
		"BytesPassed":     {`{{ .raw | b64enc }}{{ print .raw | b64enc }}{{ printf "%s%x" .raw .raw | b64enc }}{{ .raw | toString | b64enc }}{{ .raw | trunc 2 | b64enc }}`, "AP/+AP/+AP/+MDBmZmZlAP/+AP8="},
		"HalfSurrogate":   {`{{ fromJson .half }}`, `t: line 1, column 4: function "fromJson": ` + notText},
		"NulInHTML":       {`{{ html .nul }}`, `t: line 1, column 4: function "html": a value has a character that HTML cannot hold`},
		"Twice":           {`{{ (fromJson .twice).a }}`, `t: line 1, column 5: function "fromJson": the value has the key "c" twice; store each key once`},
		"TwiceYAML":       {`{{ (fromYaml .twiceYAML).a }}`, `t: line 1, column 5: function "fromYaml": the value has the key "a" twice; store each key once`},
		"Documents":       {`{{ (fromYaml .docs).a }}`, `t: line 1, column 5: function "fromYaml": the value has several YAML documents; store one`},
		"BadJSON":         {`{{ fromJson .yaml | toJson }}`, `t: line 1, column 4: function "fromJson": the value is not JSON`},
		"WrongVerb":       {`{{ printf "%d" .word }}`, `t: line 1, column 4: function "printf": a verb of the format does not fit its value, or values and verbs differ in number`},
		"WrongVerbNumber": {`{{ printf "%d" (fromJson .v).p }}`, `t: line 1, column 4: function "printf": a verb of the format does not fit its value, or values and verbs differ in number`},
		"WrongVerbDict":   {`{{ printf "%d" (fromJson .v).in }}`, `t: line 1, column 4: function "printf": a verb of the format does not fit its value, or values and verbs differ in number`},
		"TooFewVerbs":     {`{{ printf "%s" .word .word }}`, `t: line 1, column 4: function "printf": a verb of the format does not fit its value, or values and verbs differ in number`},
		"TooManyVerbs":    {`{{ printf "%s %s" .word }}`, `t: line 1, column 4: function "printf": a verb of the format does not fit its value, or values and verbs differ in number`},
		"NotANumber":      {`{{ .word | int }}`, `t: line 1, column 12: function "int": an argument is not a number`},
		"NotANumberAtoi":  {`{{ .word | atoi }}`, `t: line 1, column 12: function "atoi": an argument is not a number`},
		"TooLarge":        {`{{ int64 (fromJson .v).many }}`, `t: line 1, column 4: function "int64": a number is too large for a function on integers`},
		"NumberAsText":    {`{{ upper (fromJson .v).id }}`, `t: line 1, column 20: an argument must be of the type string, not number`},
		"NumberAsList":    {`{{ len (fromJson .v).id }}`, `t: line 1, column 21: a number has no length`},
		"NumberIndexed":   {`{{ index (fromJson .v).id 0 }}`, `t: line 1, column 4: function "index": a number has no elements`},
		"NumberInRange":   {`{{ range (fromJson .v).id }}{{ end }}`, `t: line 1, column 10: range needs a list, a dict or a number`},
	}
	e := engine(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := e.Execute("t", tc.text, exactValues, NewBudget())
			got := string(out)
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Execute(%q): -want, +got:\n%s", tc.text, diff)
			}
		})
	}
}
