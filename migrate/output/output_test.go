package output

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hostile holds line breaks, sequences for terminals, and characters that reorder text or are invisible.
const hostile = "a\nb\r\t\x00\x1b[31m\x7f\u0085\u009b2J\u061c\u200b\u202e\u2028\u2029\u2066\ufeff\U000e0041z"

const cleaned = "a b    [31m   2J        z"

func TestPrint(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		print  func(*Printer) error
		want   string
	}{
		"Line":  {"an argument cannot add a line", func(p *Printer) error { return p.Line("%s: %d", hostile, 1) }, cleaned + ": 1\n"},
		"Lines": {"an element cannot add a line", func(p *Printer) error { return p.Lines(Lines{hostile, "b"}) }, cleaned + "\nb\n"},
		"Add": {"an argument cannot add a line", func(p *Printer) error {
			var l Lines
			l.Add("%s", hostile)
			return p.Lines(l)
		}, cleaned + "\n"},
		"Table": {"a cell cannot add a row or a column", func(p *Printer) error { return p.Table([][]string{{"A", "B"}, {hostile, "c"}}) },
			"A" + strings.Repeat(" ", len(cleaned)+2) + "B\n" + cleaned + "   c\n"},
		"Error": {"a line of an error cannot pass for another message", func(p *Printer) error {
			p.Error(errors.New("a\x1b\nwarning: b"))
			return nil
		}, "error: a \n  warning: b\n"},
		"JSON": {"characters are escaped", func(p *Printer) error { return p.JSON("<\u009b\u202e\x7f\U000e0041\n") },
			`"<\u009b\u202e\u007f\udb40\udc41\n"` + "\n"},
		"Manifest": {"a manifest stays as it is", func(p *Printer) error { return p.Manifest([]byte("a: \u202e")) }, "a: \u202e"},
		"Writer": {"help keeps its lines and tabs", func(p *Printer) error {
			_, err := Writer(p.to).Write([]byte("a\tb\n\x1b\u202ec"))
			return err
		}, "a\tb\n  c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			if err := tc.print(New(&b)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, b.String()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestJSONKeepsValues(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	want := map[string]string{hostile: hostile + "\U0001f600é"}
	if err := New(&b).JSON(want); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
