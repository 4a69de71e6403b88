package previous

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRelease(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		// steps are a tag each, or a file that a commit changes.
		steps []string
		want  string
	}{
		"NoRelease":    {"nothing is released", nil, BeforeReleases},
		"FirstRelease": {"the first release has no release before", []string{"v0.1.0"}, BeforeReleases},
		"Code":         {"changed code is an upgrade from the last release", []string{"v0.1.0", "provider-aws/main.go"}, "v0.1.0"},
		"Chart":        {"so is a changed chart", []string{"v0.1.0", "charts/library/templates/a.tpl"}, "v0.1.0"},
		"Common":       {"so is a changed common", []string{"v0.1.0", "common/a.go"}, "v0.1.0"},
		"Docs":         {"a page or a test is no upgrade", []string{"v0.1.0", "docs/a.md", "charts/README.md", "common/a_test.go"}, BeforeReleases},
		"Second":       {"the second release is an upgrade of the first one", []string{"v0.1.0", "common/a.go", "v0.1.1", "docs/a.md"}, "v0.1.0"},
		"Order":        {"versions are not sorted as text", []string{"v0.9.0", "common/a.go", "v0.10.0", "common/b.go"}, "v0.10.0"},
		"Module":       {"the tag of a module is no release of the umbrella chart", []string{"v0.1.0", "common/a.go", "common/v0.2.0"}, "v0.1.0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			run := func(args ...string) {
				t.Helper()
				if _, err := git(root, args...); err != nil {
					t.Fatal(err)
				}
			}
			change := func(file string) {
				t.Helper()
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("changed\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				run("add", "--all")
				run("-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message", "Change")
			}
			run("init", "--quiet")
			change("common/go.mod")
			for _, step := range tc.steps {
				if filepath.Ext(step) == ".go" || filepath.Ext(step) == ".md" || filepath.Ext(step) == ".tpl" {
					change(step)
				} else {
					run("tag", step)
				}
			}
			got, err := Release(root)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
