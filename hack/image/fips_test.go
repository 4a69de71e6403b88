//go:build long

package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFIPS builds the FIPS image of a module, and checks that the certified module is linked and in force.
func TestFIPS(t *testing.T) {
	folder, out := filepath.Join("..", "..", module), t.TempDir()
	if err := save(must(licensed())(t), variant{"-fips", fipsModule}, folder, []string{runtime.GOARCH}, out, false); err != nil {
		t.Fatal(err)
	}
	goroot := strings.TrimSpace(string(must(goCommand(".", nil, "env", "GOROOT"))(t)))
	certified := strings.TrimSpace(string(must(os.ReadFile(filepath.Join(goroot, "lib", "fips140", "certified.txt")))(t)))

	files := []string{}
	for _, e := range must(os.ReadDir(out))(t) {
		files = append(files, e.Name())
	}
	bill := module + "-fips-" + runtime.GOARCH + ".cdx.json"
	if diff := cmp.Diff([]string{bill, module + "-fips.tar"}, files); diff != "" {
		t.Fatalf("files of the image: -want, +got:\n%s", diff)
	}
	text := string(must(os.ReadFile(filepath.Join(out, bill)))(t))
	for _, part := range []string{`"version": "1.2.3-fips"`, `"name": "direct-secrets:fips140"`, `"value": "` + certified + `"`} {
		if !strings.Contains(text, part) {
			t.Errorf("the bill of materials lacks %s", part)
		}
	}

	binary := must(build(folder, []string{runtime.GOARCH}, fipsModule))(t)[0].data
	want, got := map[string]string{"GOFIPS140": certified, "DefaultGODEBUG": "fips140=on"}, map[string]string{}
	for _, s := range must(buildinfo.Read(bytes.NewReader(binary)))(t).Settings {
		if want[s.Key] != "" {
			got[s.Key] = s.Value
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings in the binary: -want, +got:\n%s", diff)
	}

	path := filepath.Join(t.TempDir(), module)
	if err := os.WriteFile(path, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	help := exec.CommandContext(t.Context(), path, "--help")
	help.Env = []string{"GODEBUG=fips140=debug"} // The mode "on", which prints the self-tests.
	printed, err := help.CombinedOutput()
	if err != nil || !bytes.Contains(printed, []byte("fips140: verified code+data")) {
		t.Errorf("the module did not verify itself: %v\n%s", err, printed)
	}
}
