package actions

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHide(t *testing.T) {
	t.Parallel()
	var hidden Hidden
	w := func(action string) string { hidden.actions = map[string]string{}; return hidden.word(action) }
	cases := map[string]struct{ reason, template, want string }{
		"Value":     {"An action inside of a line is a word.", "a: {{ .Values.a }}\nb: x-{{.b}}-y\n", "a: " + w("{{ .Values.a }}") + "\nb: x-" + w("{{.b}}") + "-y\n"},
		"Equal":     {"Equal actions are equal words.", "a: {{ .a }}\nb: {{ .a }}\n", "a: " + w("{{ .a }}") + "\nb: " + w("{{ .a }}") + "\n"},
		"Control":   {"One that yields no value is a comment.", "a:\n  {{- if .b }}\n  c: 1\n  {{- end }}\n", "a:\n  #" + w("{{- if .b }}") + "\n  c: 1\n  #" + w("{{- end }}") + "\n"},
		"Lines":     {"So are all its lines.", "{{- /* a\nb: }} */}}\nc: 1\n", "#" + w("{{- /* a") + "\n#" + w("b: }} */}}") + "\nc: 1\n"},
		"Several":   {"And all actions of the line.", "{{ if .a }} {{ with .b }}\nc: 1\n", "#" + w("{{ if .a }} {{ with .b }}") + "\nc: 1\n"},
		"Of a key":  {"The value of a key is a word.", "labels:\n  {{- include \"labels\" . | nindent 2 }}\na: 1\n", "labels:\n  " + w("{{- include \"labels\" . | nindent 2 }}") + "\na: 1\n"},
		"Of none":   {"Behind other keys it is a comment.", "labels:\n  a: b\n  {{- include \"labels\" . | nindent 2 }}\n", "labels:\n  a: b\n  #fields-" + w("{{- include \"labels\" . | nindent 2 }}") + "\n"},
		"Braces":    {"Strings can hold braces.", "a: {{ \"{{ .password }}\" }}\nb: {{ `}}` }}{{ '}' }}\n", "a: " + w("{{ \"{{ .password }}\" }}") + "\nb: " + w("{{ `}}` }}") + w("{{ '}' }}") + "\n"},
		"Quoted":    {"Quotes around an action stay.", `a: "{{ .a | quote }}"`, `a: "` + w("{{ .a | quote }}") + `"`},
		"Nothing":   {"A text without actions stays.", "a: }}\n", "a: }}\n"},
		"Carriages": {"Line ends stay.", "a:\r\n  {{- if .b }}\r\n  c: 1\r\n", "a:\r\n  #" + w("{{- if .b }}") + "\r\n  c: 1\r\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, h, err := Hide("", []byte(tc.template))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.template, h.Show(string(got))); diff != "" {
				t.Errorf("shown again: -want, +got:\n%s", diff)
			}
		})
	}
	for template, want := range map[string]string{"a: {{ .b": "line 1: an action does not end", "a: " + Mark: "it contains", "\na: {{ .b\n}}": "line 2: an action inside of a line has several lines"} {
		if _, _, err := Hide("", []byte(template)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", template, err, want)
		}
	}
}
