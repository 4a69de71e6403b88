package template

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestPreparedTogether renders a few texts over many values at the same time; some renderings succeed, some fail.
func TestPreparedTogether(t *testing.T) {
	e, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := range 200 {
				v := fmt.Sprintf("%d-%d", w, n)
				text := fmt.Sprintf(`%d {{ .v | upper }} {{ range until 3 }}{{ . }}{{ end }}`, n%5)
				want := fmt.Sprintf("%d %s 012", n%5, v)
				if got, err := e.Execute("t", text, map[string]string{"v": v}, NewBudget()); err != nil || string(got) != want {
					t.Errorf("Execute(%q): %q, %v, want %q", text, got, err, want)
				}
				if out, err := e.Execute("t", "{{ .v }}{{ .missing }}", map[string]string{"v": v}, NewBudget()); err == nil || out != nil {
					t.Errorf("Execute(): %q, %v, want an error", out, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestPreparedCosts checks that each rendering takes the same from its budget.
func TestPreparedCosts(t *testing.T) {
	e, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	const text = `{{ define "x" }}{{ . }}{{ end }}{{ range until 9 }}{{ template "x" . }}{{ end }}{{ .v | quote }}`
	var first Budget
	for n := range 3 {
		b := NewBudget()
		if _, err := e.Execute("t", text, map[string]string{"v": "x"}, b); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			first = *b
		}
		if *b != first {
			t.Errorf("rendering %d leaves %+v, the first left %+v", n, *b, first)
		}
	}
}

// TestShelf checks that the shelf is limited, and keeps no values.
func TestShelf(t *testing.T) {
	e, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		text := fmt.Sprintf("%d %s{{ .v }}", n, strings.Repeat("x", 5000))
		if _, err := e.Execute("t", text, map[string]string{"v": "x"}, NewBudget()); err != nil {
			t.Fatal(err)
		}
		size := 0
		for text, all := range e.prepared.all {
			for _, p := range all {
				size += len(text)
				if p.run.budget != nil || p.run.out.Cap() > 0 {
					t.Error("a prepared template keeps what it rendered")
				}
			}
		}
		if size != e.prepared.size || size > maxShelf {
			t.Errorf("%d bytes are kept, counted as %d, want at most %d", size, e.prepared.size, maxShelf)
		}
	}
}
