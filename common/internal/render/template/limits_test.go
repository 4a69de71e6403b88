package template

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// large is the largest value that a Secret can hold.
var large = strings.Repeat("secret, ", 1<<17)

// limitCases are templates that would never end or would exhaust the memory without limits.
var limitCases = map[string]struct {
	text string
	// reason is a part of the error.
	reason string
}{
	"a loop without a body":               {`{{range 1000000000000}}{{end}}`, "too much work"},
	"loops in each other":                 {`{{range 100000}}{{range 100000}}{{range 100000}}{{end}}{{end}}{{end}}`, "too much work"},
	"a loop with a body that always ends": {`{{range 1000000000000}}{{continue}}{{end}}`, "too much work"},
	"a loop over a list in loops":         {`{{$l := until 99999}}{{range $l}}{{range $l}}{{end}}{{end}}`, "too much work"},
	"a large body in a loop":              {`{{range 100000000}}` + strings.Repeat(`{{$x := 1}}`, 900) + strings.Repeat(`{{if 0}}{{end}}`, 900) + `{{end}}`, "too much work"},
	"the oldest of many variables":        {`{{$a := 1}}` + strings.Repeat(`{{$x := 1}}`, 990) + `{{range 100000000}}` + strings.Repeat(`{{$b := $a}}`, 8) + `{{end}}`, "too much work"},
	"too many variables":                  {strings.Repeat(`{{$x := 1}}`, 1001), "more than 1000 variables"},
	"a dict, sorted in a loop":            {`{{ $d := dict }}{{ range $i := 20000 }}{{ $_ := set $d (print $i) 1 }}{{ end }}{{ range 100000 }}{{ range $d }}{{ break }}{{ end }}{{ end }}`, "too much work"},
	"dates, kept":                         {`{{ $d := dict }}{{ range $i := 1000 }}{{ $_ := set $d (print $i) (now.Format (repeat 1000000 "2")) }}{{ end }}`, "too much"},
	"deep recursion of deep actions":      {`{{define "a"}}` + strings.Repeat("{{if 1}}", 190) + `{{template "a"}}` + strings.Repeat("{{end}}", 190) + `{{end}}{{template "a"}}`, "more than 100 deep"},
	"recursion without end":               {`{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`, "more than 100 deep"},
	"recursion of the template itself":    {`x{{template ""}}`, "that is not defined"},
	"exponential recursion":               {`{{define "a"}}{{if gt . 0}}{{template "a" sub . 1}}{{template "a" sub . 1}}{{end}}{{end}}{{template "a" 90}}`, "too much work"},
	"output":                              {`{{range 100}}{{$.big}}{{end}}`, "larger than 1024 KiB"},
	"output in small parts":               {`{{range 10000000}}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{end}}`, "larger than 1024 KiB"},
	"many actions":                        {strings.Repeat(`{{.}}`, 10001), "at most"},
	"a long template":                     {strings.Repeat(`x`, maxText+1), "at most 256 KiB"},
	"nested actions":                      {strings.Repeat(`{{if 1}}`, 4000) + strings.Repeat(`{{end}}`, 4000), "nested more than 200"},
	"nested parentheses":                  {`{{` + strings.Repeat(`(`, 9000) + `1` + strings.Repeat(`)`, 9000) + `}}`, "nested more than 200"},
	"nested parentheses without end":      {`{{` + strings.Repeat(`(`, 200000), "max expression depth"},
	"an argument list":                    {`{{ len (list ` + strings.Repeat(`.big `, 50000) + `) }}{{ len (print ` + strings.Repeat(`.big `, 50) + `) }}`, "larger than 2048 KiB"},

	"repeat":                        {`{{ repeat 1000000000 "x" }}`, "larger than 2048 KiB"},
	"repeat nothing":                {`{{ repeat 1000000000000 "" }}`, "larger than 2048 KiB"},
	"repeat, overflowing":           {`{{ repeat 4611686018427387904 "xxxx" }}`, "larger than 2048 KiB"},
	"repeat less than never":        {`{{ repeat -1 "x" }}`, "negative"},
	"repeat in a loop":              {`{{range 1000}}{{$x := repeat 1000000 "x"}}{{end}}`, "too much memory"},
	"kept":                          {`{{$d := dict}}{{range $i := until 1000}}{{$_ := set $d (print $i) (repeat 1000000 "x")}}{{end}}`, "too much memory"},
	"until":                         {`{{ until 1000000000 }}`, "more than 100000 elements"},
	"until, negative":               {`{{ until -1000000000 }}`, "more than 100000 elements"},
	"untilStep":                     {`{{ untilStep 0 1000000000 1 }}`, "more than 100000 elements"},
	"untilStep, overflowing":        {`{{ untilStep 0 9223372036854775807 4611686018427387904 }}`, "larger than 2^40"},
	"untilStep, down":               {`{{ untilStep 1000000000 0 -1 }}`, "more than 100000 elements"},
	"seq":                           {`{{ seq 1000000000 }}`, "more than 100000 elements"},
	"seq, two":                      {`{{ seq 1000000000 1 }}`, "more than 100000 elements"},
	"seq, three":                    {`{{ seq 1 1 1000000000 }}`, "more than 100000 elements"},
	"seq, down":                     {`{{ seq 1000000000 -1 1 }}`, "more than 100000 elements"},
	"indent":                        {`{{ indent 1000000000 "x" }}`, "larger than 2048 KiB"},
	"indent of lines":               {`{{ indent 1000 (repeat 100000 "\n") }}`, "larger than 2048 KiB"},
	"nindent":                       {`{{ nindent 1000000000 "x" }}`, "larger than 2048 KiB"},
	"printf with a width":           {`{{ printf "%1000000d%1000000d%1000000d%1000000d%1000000d" 1 2 3 4 5 }}`, "larger than 2048 KiB"},
	"printf with a width of a list": {`{{ printf "%1000000d" (until 1000) }}`, "larger than 2048 KiB"},
	"printf with a star":            {`{{ range 1000 }}{{$x := printf "%*d" 1000000 1}}{{end}}`, "too much"},
	"printf with a star of a list":  {`{{ printf "%*d" 1000000 (until 1000) }}`, "larger than 2048 KiB"},
	"printf with an unsigned star":  {`{{ printf "%*d%[1]*d%[1]*d" ((semver "999999.0.0").Major) (until 1000) }}`, "larger than 2048 KiB"},
	"printf with precision":         {`{{ printf "%.1000000f" (list 1.0 1.0 1.0 1.0 1.0 1.0) }}`, "larger than 2048 KiB"},
	"printf of large numbers":       {`{{ $l := list }}{{ range 2 }}{{ $l = concat $l $l (until 10000) }}{{ end }}{{ printf "%f" $l }}`, "larger than 2048 KiB"},
	"printf again":                  {`{{ printf "` + strings.Repeat("%[1]s", 500) + `" .big }}`, "larger than 2048 KiB"},
	"printf with many verbs":        {`{{ printf (repeat 100000 "%[1]s") .big }}`, "more than 1000 verbs"},
	"replace nothing":               {`{{ replace "" "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" .big }}`, "larger than 2048 KiB"},
	"replace with a long text":      {`{{ replace "s" .big .big }}`, "larger than 2048 KiB"},
	"join":                          {`{{ join .big (until 1000) }}`, "larger than 2048 KiB"},
	"wrapWith":                      {`{{ wrapWith 1 (repeat 1000 "x") .big }}`, "larger than 2048 KiB"},
	"trimAll":                       {`{{ trimAll (repeat 100000 "éx") .big }}`, "characters to trim"},
	"split":                         {`{{ split "" .big }}`, "more than 100000 elements"},
	"splitList":                     {`{{ splitList "" .big }}`, "more than 100000 elements"},
	"splitn":                        {`{{ splitn "" -1 .big }}`, "more than 100000 elements"},
	"concat":                        {`{{ $l := until 90000 }}{{ concat $l $l }}`, "more than 100000 elements"},
	"append in a loop":              {`{{ $l := list }}{{ range 100000 }}{{ $l = append $l 1 }}{{ end }}`, "too much"},
	"chunk of nothing":              {`{{ chunk 0 (list 1) }}`, "at least 1"},
	"uniq":                          {`{{ uniq (until 90000) }}`, "too much work"},
	"uniq in a loop":                {`{{ range 10000 }}{{ $x := uniq (until 1000) }}{{ end }}`, "too much work"},
	"without":                       {`{{ range 10000 }}{{ $x := without (until 10000) 0 1 2 3 4 5 }}{{ end }}`, "too much work"},
	"has":                           {`{{ $l := until 90000 }}{{ range 100000 }}{{ $x := has -1 $l }}{{ end }}`, "too much work"},
	"index in a loop":               {`{{ range 10000000 }}{{ if index $ $.big }}{{ end }}{{ end }}`, "too much work"},
	"index of a key in a loop":      {`{{ range 10000000 }}{{ $x := index $ "big" }}{{ end }}`, "too much work"},
	"slice by a dict in a loop":     {`{{ $d := dict "a" (repeat 900000 "x") }}{{ range 1000000 }}{{ $x := slice (list 1) $d }}{{ end }}`, "too much work"},
	"slice by a text in a loop":     {`{{ range 1000000 }}{{ $x := mustSlice (list 1) 0 $.big }}{{ end }}`, "too much work"},
	"eq in a loop":                  {`{{ $x := print $.big "" }}{{ range 10000000 }}{{ if eq $x $.big }}{{ end }}{{ end }}`, "too much work"},
	"method in a loop":              {`{{ $t := now }}{{ range 10000000 }}{{ if $t.Format $.big }}{{ end }}{{ end }}`, "too much"},
	"method with a piped argument":  {`{{ $t := now }}{{ range 10000000 }}{{ $x := $.big | $t.Format }}{{ end }}`, "too much"},
	"output of a method":            {`{{ range 100 }}{{ $.big | now.Format }}{{ end }}`, "larger than"},
	"print in a loop":               {`{{ range 10000000 }}{{ $x := print $.big }}{{ end }}`, "too much"},
	"sha in a loop":                 {`{{ range 10000000 }}{{ $x := sha512sum $.big }}{{ end }}`, "too much work"},

	"lists that double":                {`{{ $x := list "xxxxxxxxxx" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x }}`, "larger than 2048 KiB"},
	"lists that double, printed":       {`{{ $x := list "xxxxxxxxxx" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}`, "larger than 2048 KiB"},
	"lists that double, copied":        {`{{ $x := list "xxxxxxxxxx" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ deepCopy $x }}`, "larger than 2048 KiB"},
	"lists that double, as YAML":       {`{{ $x := list "xxxxxxxxxx" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ toYaml $x }}`, "larger than 2048 KiB"},
	"lists that double, as text":       {`{{ $x := list "xxxxxxxxxx" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ toString $x }}`, "larger than 2048 KiB"},
	"lists that double, compared":      {`{{ $x := list 1 }}{{ $y := list 1 }}{{ range 60 }}{{ $x = list $x $x }}{{ $y = list $y $y }}{{ end }}{{ deepEqual $x $y }}`, "larger than 2048 KiB"},
	"dicts that double, merged":        {`{{ $x := dict "a" 1 }}{{ range 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ merge (dict) $x }}`, "larger than 2048 KiB"},
	"a text held often":                {`{{ $x := list }}{{ range 100 }}{{ $x = append $x $.big }}{{ end }}{{ toJson $x }}`, "larger than 2048 KiB"},
	"a dict that grew in a list":       {`{{ $d := dict }}{{ $l := list $d $d $d $d }}{{ $_ := set $d "a" $.big }}{{ $l }}`, "larger than 2048 KiB"},
	"a dict that holds itself":         {`{{ $d := dict }}{{ $_ := set $d "self" $d }}{{ $d }}`, "contains itself"},
	"a dict that holds itself, %v":     {`{{ $d := dict }}{{ $_ := set $d "self" $d }}{{ printf "%v" $d }}`, "contains itself"},
	"a dict that holds itself, +":      {`{{ $d := dict }}{{ $_ := set $d "self" $d }}{{ toPrettyJson $d }}`, "contains itself"},
	"a dict as a key of itself":        {`{{ $d := dict }}{{ $_ := set $d "self" $d }}{{ dict $d 1 }}`, "contains itself"},
	"dicts that hold themselves":       {`{{ $d := dict }}{{ $_ := set $d "self" $d }}{{ $e := dict }}{{ $_ := set $e "self" $e }}{{ deepEqual $d $e }}`, "contains itself"},
	"dicts that hold themselves, eq":   {`{{ $d := dict }}{{ $_ := set $d "self" $d }}{{ eq $d $d }}`, "contains itself"},
	"dicts that hold themselves, | ne": {`{{ $d := dict }}{{ $_ := set $d "self" $d }}{{ $d | ne 1 }}`, "contains itself"},
	"a dict that holds itself, lt":     {`{{ $d := dict }}{{ $_ := set $d "self" $d }}{{ lt $d $d }}`, "contains itself"},
	"a dict that holds itself, slice":  {`{{ $d := dict }}{{ $_ := set $d "self" $d }}{{ slice (list 1) $d }}`, "contains itself"},
	"a dict that holds itself, int":    {`{{ $d := dict }}{{ $_ := set $d "self" $d }}{{ int $d }}`, "contains itself"},
	"a dict that holds itself, method": {`{{ $d := dict }}{{ $_ := set $d "self" $d }}{{ (semver "1.2.3").Compare $d }}`, "contains itself"},
	"a list in each other":             {`{{ $x := list }}{{ range 200 }}{{ $x = list $x }}{{ end }}{{ $x }}`, "more than 100 deep"},

	"a large expression":              {`{{ mustRegexMatch "(a{1000}b{1000}){1000}" "x" }}`, "malformed"},
	"an expression with many repeats": {`{{ regexMatch (repeat 500 "a{1000}") "x" }}`, "too large"},
	"a long expression":               {`{{ regexMatch (repeat 5000 "a") "x" }}`, "longer than 4096"},
	"a slow expression":               {`{{ regexMatch "(x+x+)+y" (repeat 1000000 "x") }}{{ range 1000 }}{{ $x := regexMatch "(x+x+)+y" (repeat 10000 "x") }}{{ end }}`, "too much work"},
	"an expression with many states":  {`{{ regexMatch "[^y]*.{900}y" (repeat 1000000 "x") }}`, "too much work"},
	"a quadratic expression":          {`{{ regexFindAll "x.*y|x" (repeat 1000000 "x") -1 }}`, "too much work"},
	"a quadratic expression, \\B":     {`{{ regexReplaceAll "\\Bx.*y|x" (repeat 100000 "x") "z" }}`, "too much work"},
	"many matches":                    {`{{ regexFindAll "" .big -1 }}`, "more than 100000 elements"},
	"many parts":                      {`{{ regexSplit "" .big -1 }}`, "more than 100000 elements"},
	"a replacement that grows":        {`{{ regexReplaceAll ".*" .big (repeat 1000 "$0") }}`, "larger than 2048 KiB"},
	"a literal that grows":            {`{{ regexReplaceAllLiteral "s" .big (repeat 1000 "x") }}`, "larger than 2048 KiB"},
	"compiling in a loop":             {`{{ range 100000 }}{{ $x := regexMatch "a{900}" "a" }}{{ end }}`, "too much work"},
	"a costly class":                  {`{{ range 100000 }}{{ $x := regexMatch "(?i)[\\pL\\pN]{20}" "a" }}{{ end }}`, "too much work"},

	"JSON with many parts":   {`{{ fromJson .jsonParts }}`, "more than 200000 elements"},
	"JSON with depth":        {`{{ fromJson .jsonDeep }}`, "more than 100 deep"},
	"JSON in a loop":         {`{{ range 1000 }}{{ $x := fromJson $.jsonObjects }}{{ end }}`, "too much"},
	"YAML with many parts":   {`{{ fromYaml .jsonParts }}`, "more than 200000 elements"},
	"YAML with depth":        {`{{ fromYaml .jsonDeep }}`, "too large or too deep"},
	"YAML with aliases":      {`{{ fromYaml .yamlBomb }}`, "too large or too deep"},
	"YAML with long texts":   {`{{ fromYaml .yamlTexts }}`, "too large or too deep"},
	"YAML that holds itself": {`{{ fromYaml "a: &a [*a]" }}`, "too large or too deep"},
	"YAML in a loop":         {`{{ range 1000 }}{{ $x := fromYaml $.jsonObjects }}{{ end }}`, "too much"},
	"YAML as text":           {`{{ range 1000 }}{{ $x := toYaml (until 50000) }}{{ end }}`, "too much"},
	"YAML of characters":     {`{{ range 100 }}{{ $x := toYaml (list (repeat 200000 "\x00")) }}{{ end }}`, "too"},

	"a long version":         {`{{ semver (repeat 1000 "1") }}`, "longer than 256"},
	"a long constraint":      {`{{ semverCompare (repeat 1000 ">1 ") "1" }}`, "longer than 256"},
	"a large version":        {`{{ semver "99999999999999999999999999.1.1" }}`, `function "semver" failed`},
	"many decimals":          {`{{ mulf ` + strings.Repeat("1e308 ", 100) + `}}`, "more than 64 numbers"},
	"decimals in a loop":     {`{{ range 1000000 }}{{ $x := mulf ` + strings.Repeat("1e308 ", 60) + `}}{{ end }}`, "too much work"},
	"random characters":      {`{{ randAlphaNum 1000000000 }}`, "larger than 2048 KiB"},
	"many random characters": {`{{ randAlpha 2000000 }}`, "too much"},
	"random bytes":           {`{{ randBytes 1000000000 }}`, "from 0 to"},
	"random bytes, negative": {`{{ randBytes -1 }}`, "from 0 to"},
	"password hashes":        {`{{ range 1000 }}{{ $x := bcrypt "a" }}{{ end }}`, "too much work"},
	"password files":         {`{{ range 1000 }}{{ $x := htpasswd "a" "b" }}{{ end }}`, "too much work"},
	"derived passwords":      {`{{ range 1000 }}{{ $x := derivePassword 1 "long" "a" "b" "c" }}{{ end }}`, "too much work"},
	"certificates":           {`{{ range 1000 }}{{ $x := genCA "a" 1 }}{{ end }}`, "too much work"},
	"DSA":                    {`{{ genPrivateKey "dsa" }}`, "DSA keys are not supported"},
	"a long key":             {`{{ genCAWithKey "a" 1 .big }}`, "longer than 9 KiB"},
	"signing in a loop":      {`{{ $k := genPrivateKey "ecdsa" }}{{ range 100000 }}{{ $x := genCAWithKey "a" 1 $k }}{{ end }}`, "too much work"},
	"sorting in a loop":      {`{{ $l := splitList "," (trunc 500000 .big) | sortAlpha }}{{ range 1000 }}{{ $x := sortAlpha $l }}{{ end }}`, "too much"},
}

// hostile returns the values of limitCases.
func hostile() map[string]string {
	bomb := strings.Builder{}
	bomb.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := range 20 {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 8), i)
	}
	return map[string]string{
		"big":         large,
		"jsonParts":   "[" + strings.Repeat("[],", 349_000) + "0]",
		"jsonDeep":    strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000),
		"jsonObjects": "[" + strings.Repeat(`{"a":{}},`, 20_000) + "0]",
		"yamlBomb":    bomb.String(),
		"yamlTexts":   "a: &a " + large[:500_000] + "\nb: [" + strings.Repeat("*a,", 1000) + "]\n",
	}
}

func TestLimits(t *testing.T) {
	e := engine(t)
	data := hostile()
	for name, c := range limitCases {
		t.Run(name, func(t *testing.T) {
			start, peak := time.Now(), watchHeap()
			_, err := e.Execute("t", c.text, data, NewBudget())
			took, heap := time.Since(start), peak()
			if err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("Execute(%.80q): %v, want an error with %q", c.text, err, c.reason)
			}
			// The limits count work; the clock only checks that the counts are realistic.
			if took > 20*time.Second {
				t.Errorf("Execute(%.80q) took %v", c.text, took)
			}
			if heap > 100<<20 {
				t.Errorf("Execute(%.80q) used %d MiB", c.text, heap>>20)
			}
			t.Logf("%v, %d MiB", took.Round(time.Millisecond), heap>>20)
		})
	}
}

// watchHeap starts to watch the heap. The returned function stops that, and returns the maximum growth of the heap.
func watchHeap() func() uint64 {
	percent := debug.SetGCPercent(100) // As in a module: tests run with another value.
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	base, top := m.HeapAlloc, m.HeapAlloc
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			runtime.ReadMemStats(&m)
			top = max(top, m.HeapAlloc)
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		debug.SetGCPercent(percent)
		return top - base
	}
}

// saneCases are large but reasonable templates, which must stay within the limits.
var saneCases = map[string]struct {
	text   string
	length int
}{
	"a value as large as a Secret":     {`{{ .big }}`, 1 << 20},
	"changed a few times":              {`{{ .big | upper | trim | replace "SECRET" "public" | trunc 1000000 }}`, 1_000_000},
	"encoded and decoded":              {`{{ .big | b64enc | b64dec | len }}`, 7},
	"formatted with a width":           {`{{ printf "%-100s %s" .big (trunc 10 .big) | len }}`, 7},
	"indented":                         {`{{ .big | trunc 500000 | indent 4 | len }}`, 6},
	"split and joined":                 {`{{ splitList "secret" (trunc 400000 .big) | join "" | len }}`, 6},
	"a document, parsed for each key":  {`{{ range 30 }}{{ ($.json | fromJson).users | len }}{{ end }}`, 120},
	"a loop over a document":           {`{{ range (fromJson .json).users }}{{ .name | upper | quote }}: {{ printf "%s/%d" .name (int .id) | b64enc }}` + "\n" + `{{ end }}`, 23_993},
	"a document as YAML":               {`{{ fromJson .json | toYaml | len }}`, 5},
	"a document of YAML":               {`{{ fromYaml .yaml | toJson | len }}`, 5},
	"lines, filtered by an expression": {`{{ range splitList "," (trunc 8000 .big) }}{{ if regexMatch "^ ?sec.*t$" . }}+{{ end }}{{ end }}`, 1000},
	"all matches of an expression":     {`{{ regexReplaceAll "s(e)c" (trunc 80000 .big) "$1" | len }}`, 5},
	"a list of a thousand":             {`{{ $l := list }}{{ range 1000 }}{{ $l = append $l . }}{{ end }}{{ len $l }}`, 4},
	"some password hashes":             {`{{ range 5 }}{{ bcrypt "x" }}{{ end }}`, 300},
	"two certificates":                 {`{{ $ca := genCA "ca" 365 }}{{ $c := genSignedCert "x" nil nil 365 $ca }}{{ if $c.Key }}ok{{ end }}`, 2},
}

func TestSaneTemplates(t *testing.T) {
	e := engine(t)
	users := strings.Repeat(`{"name":"someone","id":1},`, 999) + `{"name":"last","id":1}`
	data := map[string]string{"big": large, "json": `{"users":[` + users + `]}`, "yaml": "users:\n" + strings.Repeat("- name: someone\n  id: 1\n", 1000)}
	for name, c := range saneCases {
		t.Run(name, func(t *testing.T) {
			start, b := time.Now(), NewBudget()
			got, err := e.Execute("t", c.text, data, b)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != c.length {
				t.Errorf("Execute(%q) wrote %d bytes, want %d", c.text, len(got), c.length)
			}
			t.Logf("%v, %d steps, %d KiB", time.Since(start).Round(time.Millisecond), defaultSteps-b.steps, (defaultBytes-b.bytes)>>10)
		})
	}
}

// TestBudgetIsShared renders several templates with one budget.
func TestBudgetIsShared(t *testing.T) {
	e, b := engine(t), NewBudget()
	n := 0
	for ; n < 1000; n++ {
		if _, err := e.Execute("t", `{{range 10000}}{{end}}`, nil, b); err != nil {
			break
		}
	}
	if n < 10 || n > 100 {
		t.Errorf("%d templates of 10,000 rounds fit into one budget, want 10 to 100", n)
	}
	if _, err := e.Execute("t", "x", nil, b); err == nil {
		t.Error("a spent budget renders one more template")
	}
}
