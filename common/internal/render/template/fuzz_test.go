package template

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// FuzzExecute renders any template over any values. A rendering must not panic or take long, and its error must not
// contain the value. The budget is small, so that many templates are tried; it is too small for a password hash or a
// certificate.
func FuzzExecute(f *testing.F) {
	for _, c := range functionCases {
		f.Add(c.text, `{"a":1}`)
	}
	for _, c := range limitCases {
		if len(c.text) < 200 {
			f.Add(c.text, "x")
		}
	}
	for _, v := range canaryValues() {
		f.Add(`{{ range .v }}{{ .v.x }}{{ end }}{{ fromYaml .v }}{{ fromJson .v }}{{ urlParse .v }}`, v)
	}
	f.Add(`{{ block "a" . }}{{ with $x := .v }}{{ $x | printf "%v %*d" 1 2 }}{{ else }}{{ template "a" . }}{{ end }}{{ end }}`, "x")
	e := failing(f)
	f.Fuzz(func(t *testing.T, text, value string) {
		value += canary
		data := map[string]string{"v": value, "user": value, "json": value, "big": strings.Repeat(value, 100)}
		start := time.Now()
		out, err := e.Execute("t", text, data, &Budget{steps: defaultSteps / 20, bytes: defaultBytes})
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if len(out) > maxOutput {
			t.Errorf("it wrote %d bytes", len(out))
		}
		if err == nil || strings.Contains(text, "7351") {
			return
		}
		if shown := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(shown, canary) {
			t.Errorf("the error shows the value: %s", shown)
		}
	})
}
