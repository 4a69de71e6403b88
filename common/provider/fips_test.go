package provider

import (
	"crypto/md5" //nolint:gosec // The test needs an algorithm that is refused.
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/internal/fips"
)

// TestRefusedCall starts itself again under GODEBUG=fips140=only. A refused call in a provider is a panic of Go, and becomes an
// error that names the setting.
func TestRefusedCall(t *testing.T) {
	if os.Getenv("FIPS_CHILD") != "" {
		var err error
		func() {
			defer recoverTo(&err, "reading")
			md5.Sum(nil) //nolint:gosec // As above.
		}()
		fmt.Println(err)
		os.Exit(0)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRefusedCall$")
	child.Env = append(os.Environ(), "FIPS_CHILD=1", "GODEBUG=fips140=only")
	out, err := child.CombinedOutput()
	want := "the provider's code failed while reading: " + fips.Refusal
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("got error %v and output %q, want %q", err, out, want)
	}
}
