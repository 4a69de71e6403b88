package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocsPublish publishes one version after another into the same folder.
func TestDocsPublish(t *testing.T) {
	pages := t.TempDir()
	publish := func(name, content string) error {
		built := t.TempDir()
		must(t, os.WriteFile(filepath.Join(built, "index.html"), []byte(content), 0o600))
		must(t, os.WriteFile(filepath.Join(built, "404.html"), []byte(content+" 404"), 0o600))
		return exec.Command("./docs-publish.sh", built, name, pages).Run() //nolint:gosec // The script under test.
	}
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(pages, name)) //nolint:gosec // A file that the script wrote.
		must(t, err)
		return string(raw)
	}
	steps := []struct {
		reason, name, content string
		versions, latest      string
	}{
		{reason: "index.html redirects to main before the first release", name: "main", content: "a", versions: `["main"]`, latest: "main"},
		{reason: "index.html redirects to the newest release", name: "v0.9", content: "b", versions: `["main", "v0.9"]`, latest: "v0.9"},
		{reason: "versions are compared as numbers", name: "v0.10", content: "c", versions: `["main", "v0.10", "v0.9"]`, latest: "v0.10"},
		{reason: "a patch of an older release replaces only that release", name: "v0.9", content: "d", versions: `["main", "v0.10", "v0.9"]`, latest: "v0.10"},
	}
	for _, s := range steps {
		must(t, publish(s.name, s.content))
		if diff := cmp.Diff(s.versions+"\n", read("versions.json")); diff != "" {
			t.Errorf("%s: versions.json: -want, +got:\n%s", s.reason, diff)
		}
		if got := read("index.html"); !strings.Contains(got, "url="+s.latest+"/") {
			t.Errorf("%s: index.html redirects elsewhere:\n%s", s.reason, got)
		}
		if diff := cmp.Diff(s.content, read(s.name+"/index.html")); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", s.reason, diff)
		}
	}
	if diff := cmp.Diff("a c d c 404", strings.Join([]string{
		read("main/index.html"), read("v0.10/index.html"), read("v0.9/index.html"), read("404.html"),
	}, " ")); diff != "" {
		t.Errorf("the published files: -want, +got:\n%s", diff)
	}
	for _, name := range []string{"", "..", "v1", "v0.1.3", "provider-aws/v0.1"} {
		if err := publish(name, ""); err == nil {
			t.Errorf("the version %q is published", name)
		}
	}
}
