package command

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// called matches calls of dsctl in pages, on a line of their own or between backticks.
var called = regexp.MustCompile("(?m)(?:^    (?:\\$ )?|`)dsctl ([^`\n]+)")

// TestDocs checks that pages use only existing commands and flags, and that docs/reference/dsctl.md names all
// of them.
func TestDocs(t *testing.T) {
	t.Parallel()
	page := ""
	for _, path := range []string{"reference/dsctl.md", "operate/runbook.md"} {
		raw, err := os.ReadFile("../../../../docs/" + path)
		if err != nil {
			t.Fatal(err)
		}
		if path == "reference/dsctl.md" {
			page = string(raw)
		}
		lines := called.FindAllStringSubmatch(string(raw), -1)
		if len(lines) == 0 {
			t.Errorf("docs/%s: no command was found", path)
		}
		for _, l := range lines {
			root := New(genericiooptions.NewTestIOStreamsDiscard(), "v0.1.1", nil)
			root.InitDefaultCompletionCmd()
			c, rest, err := root.Find(strings.Fields(l[1]))
			if err == nil {
				c.InitDefaultVersionFlag()
				err = c.ParseFlags(rest)
			}
			if err != nil || (c == root && !strings.HasPrefix(l[1], "--")) {
				t.Errorf("docs/%s: dsctl %s: %v", path, l[1], err)
			}
		}
	}
	root := New(genericiooptions.NewTestIOStreamsDiscard(), "v0.1.1", nil)
	for _, c := range root.Commands() {
		if !strings.Contains(page, "`"+c.Name()+"`") {
			t.Errorf("docs/reference/dsctl.md does not name the command %s", c.Name())
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !strings.Contains(page, "--"+f.Name) && (f.Shorthand == "" || !strings.Contains(page, "-"+f.Shorthand)) {
				t.Errorf("docs/reference/dsctl.md does not name the flag --%s of %s", f.Name, c.Name())
			}
		})
	}
}
