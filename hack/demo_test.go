package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDemoOtherSystem checks that the demo refuses a system other than Linux before it builds anything.
func TestDemoOtherSystem(t *testing.T) {
	bin := t.TempDir()
	must(t, os.WriteFile(filepath.Join(bin, "uname"), []byte("#!/bin/sh\necho Darwin\n"), 0o700)) //nolint:gosec // It must be executable.
	bash, err := exec.LookPath("bash")
	must(t, err)
	demo := exec.Command(bash, "./demo.sh") //nolint:gosec // The script under test.
	demo.Env = []string{"PATH=" + bin}      // No program to build with.
	out, err := demo.CombinedOutput()
	if err == nil || !strings.HasPrefix(string(out), "The demo needs Linux") {
		t.Errorf("the demo on Darwin: error %v, output:\n%s", err, out)
	}
}
