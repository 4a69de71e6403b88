package fips

import (
	"crypto/md5" //nolint:gosec // The test needs an algorithm that is refused.
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestModes starts itself again for each value of the setting.
func TestModes(t *testing.T) {
	if os.Getenv("FIPS_CHILD") != "" {
		fmt.Println(Mode(), Refused(panicOf(func() { md5.Sum(nil) })), Refused(errors.New("other")), Refused(nil)) //nolint:gosec // As above.
		os.Exit(0)
	}
	cases := map[string]struct{ reason, want string }{
		"off":  {"without the mode, nothing is refused", "off false false false"},
		"on":   {"the mode alone refuses nothing", "on false false false"},
		"only": {"MD5 is refused", "only true false false"},
	}
	for mode, tc := range cases {
		t.Run(mode, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestModes$")
			child.Env = append(os.Environ(), "FIPS_CHILD=1", "GODEBUG=fips140="+mode)
			out, err := child.CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != tc.want {
				t.Errorf("%s: got %q and error %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

func panicOf(do func()) (v any) {
	defer func() { v = recover() }()
	do()
	return nil
}
