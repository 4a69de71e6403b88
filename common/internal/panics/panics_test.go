package panics

import (
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr/funcr"
)

// fail panics with a value, as code that holds a secret does.
func fail(secret string) { panic(errors.New(secret)) }

func TestError(t *testing.T) {
	const secret = "hunter2"
	var lines []string
	log := funcr.New(func(prefix, args string) { lines = append(lines, prefix+args) }, funcr.Options{})
	err := func() (err error) {
		defer func() { err = Error(log, recover()) }()
		fail(secret)
		return nil
	}()
	got := strings.Join(lines, "\n")
	cases := map[string]struct {
		reason string
		text   string
		holds  string
		want   bool
	}{
		"Place":         {"The log names the function that panicked.", got, "panics.fail", true},
		"Line":          {"The log names its file and line.", got, "panics_test.go:", true},
		"SecretInLog":   {"The value of a panic may hold a secret, so it is not logged.", got, secret, false},
		"Type":          {"The error names the type of the value.", err.Error(), "panic of type *errors.", true},
		"SecretInError": {"The error ends up in logs, so it does not show the value.", err.Error(), secret, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(tc.text, tc.holds) != tc.want {
				t.Errorf("\n%s\nError(): %q in %q: want %t", tc.reason, tc.holds, tc.text, tc.want)
			}
		})
	}
}
