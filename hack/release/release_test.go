package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testRepo is a repository with common, two providers and the umbrella chart, as small as it can be.
type testRepo struct {
	*testing.T

	repo
}

func newTestRepo(t *testing.T) testRepo {
	t.Helper()
	h := testRepo{t, repo{t.TempDir()}}
	h.run("init", "--quiet", "--initial-branch=main")
	h.run("config", "user.name", "test")
	h.run("config", "user.email", "test@example.com")
	files := map[string]string{
		"common/go.mod":                   "module " + commonPath + "\n",
		"common/a.go":                     "package common\n",
		"common/manifests/crds/a.yaml":    "a\n",
		"go.mod":                          "module root\n",
		"charts/library/Chart.yaml":       "name: library\nversion: 0.1.0\nappVersion: 0.1.0\n",
		"charts/crds/Chart.yaml":          "name: crds\nversion: 0.1.0\nappVersion: 0.1.0\nannotations:\n  a: b\n",
		"charts/direct-secrets/a.yaml":    "a\n",
		"charts/direct-secrets/README.md": "a\n",
		"charts/direct-secrets/Chart.yaml": "name: direct-secrets\nversion: 0.1.0\nappVersion: 0.1.0\nannotations:\n  a: b\ndependencies:\n  - name: library\n    version: 0.1.0\n" +
			"  - name: crds\n    version: 0.1.0\n  - name: provider-a\n    version: 0.1.0\n    condition: provider-a.enabled\n  - name: provider-b\n    version: 0.1.0\n    condition: provider-b.enabled\n",
	}
	for _, p := range []string{"provider-a", "provider-b"} {
		files[p+"/go.mod"] = "module " + p + "\n\nrequire " + commonPath + " v0.1.0\n"
		files[p+"/main.go"] = "package main\n"
		files["charts/"+p+"/Chart.yaml"] = "name: " + p + "\nversion: 0.1.0\nappVersion: 0.1.0\nannotations:\n  artifacthub.io/changes: |\n    - \"before\"\n  a: b\ndependencies:\n  - name: library\n    version: 0.1.0\n"
	}
	h.commit("Begin", files)
	if err := lock(h.root); err != nil {
		t.Fatal(err)
	}
	h.commit("Lock", nil)
	return h
}

func (h testRepo) run(args ...string) {
	h.Helper()
	if _, err := h.git(args...); err != nil {
		h.Fatal(err)
	}
}

// commit changes files, each by a line that is added.
func (h testRepo) commit(message string, files map[string]string) {
	h.Helper()
	for name, text := range files {
		path := filepath.Join(h.root, name)
		is, _ := os.ReadFile(path) // A new file has no content yet.
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			h.Fatal(err)
		}
		if err := os.WriteFile(path, append(is, text...), 0o644); err != nil {
			h.Fatal(err)
		}
	}
	h.run("add", "--all")
	h.run("commit", "--quiet", "--message", message)
}

// released makes all units have the release v0.1.0.
func (h testRepo) released() {
	h.Helper()
	for _, prefix := range []string{"common/", "provider-a/", "provider-b/", ""} {
		h.run("tag", prefix+"v0.1.0")
	}
}

func (h testRepo) plan() plan {
	h.Helper()
	p, err := read(h.repo)
	if err != nil {
		h.Fatal(err)
	}
	return p
}

func TestPlan(t *testing.T) {
	const a, b = "provider-a/main.go", "provider-b/main.go"
	one := func(files ...string) map[string]string {
		all := map[string]string{}
		for _, f := range files {
			all[f] = "b\n"
		}
		return all
	}
	cases := map[string]struct {
		reason string
		// commits are messages and the files that they change.
		commits []any
		want    string
	}{
		"Nothing": {"nothing has changed", nil, "Nothing is due.\n"},
		"OnlyDocs": {
			"pages and tests are not released",
			[]any{"Explain", one("docs/a.md", "README.md", "charts/direct-secrets/README.md", "provider-a/main_test.go", "common/testdata/a"), "Test more", one("e2e/a.go")},
			"Nothing is due.\n",
		},
		"OneProvider": {
			"a fix in one provider releases it, and the umbrella that pins it",
			[]any{"Fix a", one(a)},
			"provider-a/v0.1.1 (after v0.1.0)\n  - Fix a\nv0.1.1 (after v0.1.0)\n  - Pin provider-a v0.1.1\n",
		},
		"CommonPatch": {
			"common is released first, and a changed provider waits for it",
			[]any{"Fix common", one("common/a.go"), "Fix b", one(b)},
			"common/v0.1.1 (after v0.1.0)\n  - Fix common\nAfter common, with the change of Renovate that moves to it: provider-b\n",
		},
		"CommonMinor": {
			"a changed CRD makes a minor release",
			[]any{"Add a field", one("common/manifests/crds/a.yaml", "charts/crds/files/crds/a.yaml")},
			"common/v0.2.0 (after v0.1.0)\n  - Add a field\nAfter common, with the change of Renovate that moves to it: direct-secrets\n",
		},
		"ChartOnly": {
			"a change of the umbrella releases no module",
			[]any{"Correct a note", one("charts/direct-secrets/a.yaml")},
			"v0.1.1 (after v0.1.0)\n  - Correct a note\n",
		},
		"Library": {
			"templates that all charts contain release all modules",
			[]any{"Correct a label", one("charts/library/a.tpl")},
			"provider-a/v0.1.1 (after v0.1.0)\n  - Correct a label\nprovider-b/v0.1.1 (after v0.1.0)\n  - Correct a label\n" +
				"v0.1.1 (after v0.1.0)\n  - Correct a label\n  - Pin provider-a v0.1.1\n  - Pin provider-b v0.1.1\n",
		},
		"Schema": {
			"a new value of a chart makes a minor release of the module, and of the umbrella that has the value, too",
			[]any{"Add a value", one("charts/provider-a/values.schema.json"), "Fix a", one(a)},
			"provider-a/v0.2.0 (after v0.1.0)\n  - Add a value\n  - Fix a\nv0.2.0 (after v0.1.0)\n  - Pin provider-a v0.2.0\n",
		},
		"Dsctl": {
			"what is linked into dsctl releases it",
			[]any{"Change the demo", one("internal/demo/a.go"), "Change the stack", one("e2e/stack/a.go")},
			"v0.1.1 (after v0.1.0)\n  - Change the demo\n  - Change the stack\n",
		},
		"Written": {
			"the commit of the release is no change in it",
			[]any{"Fix a", one(a), "Release", one("provider-a/CHANGELOG.md", "charts/provider-a/b.yaml", "charts/direct-secrets/CHANGELOG.md", "charts/direct-secrets/a.yaml")},
			"provider-a/v0.1.1 (after v0.1.0)\n  - Fix a\nv0.1.1 (after v0.1.0)\n  - Pin provider-a v0.1.1\n",
		},
		"Trailer": {
			"a commit can ask for a minor release",
			[]any{"Add a method\n\nRelease: minor", one("common/a.go")},
			"common/v0.2.0 (after v0.1.0)\n  - Add a method\n",
		},
		"PatchOfSchema": {
			"a patch release changes no schema",
			[]any{"Add a field\n\nRelease: patch", one("provider-a/manifests/crds/a.yaml")},
			"provider-a/v0.1.1 (after v0.1.0)\n  - Add a field\nv0.1.1 (after v0.1.0)\n  - Pin provider-a v0.1.1\n" +
				"Refused: \"Add a field\" changes a schema of provider-a and has the trailer Release: patch, but a patch release changes no schema\n",
		},
		"UnknownLevel": {
			"a trailer that is misspelled is not ignored",
			[]any{"Fix a\n\nRelease: mayor", one(a)},
			"provider-a/v0.1.1 (after v0.1.0)\n  - Fix a\nv0.1.1 (after v0.1.0)\n  - Pin provider-a v0.1.1\nRefused: \"Fix a\" has the trailer Release: mayor; it must be patch or minor\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newTestRepo(t)
			h.released()
			for i := 0; i < len(tc.commits); i += 2 {
				h.commit(tc.commits[i].(string), tc.commits[i+1].(map[string]string))
			}
			if diff := cmp.Diff(tc.want, h.plan().String()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestStale plans a release of a module that still requires an old common.
func TestStale(t *testing.T) {
	t.Parallel()
	h := newTestRepo(t)
	h.released()
	h.commit("Fix common", map[string]string{"common/a.go": "b\n"})
	h.run("tag", "common/v0.1.1")
	h.commit("Fix a", map[string]string{"provider-a/main.go": "b\n"})
	err := h.plan().refusal()
	if want := "provider-a requires common v0.1.0, and the last release is v0.1.1: merge the change of Renovate first"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestCut plans again after a release was cut between two tags: the umbrella chart has the version that was written.
func TestCut(t *testing.T) {
	t.Parallel()
	h := newTestRepo(t)
	h.released()
	h.commit("Add a value", map[string]string{"charts/provider-a/values.schema.json": "b\n"})
	if err := run([]string{"write"}, h.root, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	h.commit("Release", nil)
	h.run("tag", "provider-a/v0.2.0")
	out := &bytes.Buffer{}
	if err := run([]string{"check"}, h.root, out); err != nil {
		t.Fatal(err)
	}
	h.run("tag", "v0.2.0")
	if err := run([]string{"check"}, h.root, out); err != nil {
		t.Fatal(err)
	}
	want := `[
  {
    "unit": "direct-secrets",
    "tag": "v0.2.0",
    "from": "v0.1.0",
    "to": "v0.2.0",
    "changes": [
      "Pin provider-a v0.2.0"
    ]
  }
]
[]
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestFolders checks that a change of each package that is linked into dsctl or a module makes a release.
func TestFolders(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	units, err := repo{root}.units()
	if err != nil {
		t.Fatal(err)
	}
	list := exec.Command("go", "list", "-deps", "-f", "{{.Dir}}", "./cmd/...") //nolint:noctx // It ends by itself.
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range strings.Fields(string(out)) {
		path, ours := strings.CutPrefix(folder, root+"/")
		released := slices.ContainsFunc(units, func(u unit) bool {
			return slices.ContainsFunc(u.Folders, func(of string) bool { return strings.HasPrefix(path+"/", of+"/") })
		})
		if ours && !released {
			t.Errorf("a change of %s, which dsctl contains, makes no release", path)
		}
	}
}

// TestUnwritten checks that nothing is published before its version and its changelog are in the tree.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	h := newTestRepo(t)
	h.released()
	h.commit("Fix a", map[string]string{"provider-a/main.go": "b\n"})
	if err := check(h.plan()); err == nil || !strings.Contains(err.Error(), "provider-a v0.1.1 is due") {
		t.Errorf("before it is written: %v", err)
	}
	if err := run([]string{"write"}, h.root, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"check"}, h.root, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "uncommitted") {
		t.Errorf("before it is committed: %v", err)
	}
	h.run("add", "--all")
	h.run("commit", "--quiet", "--message", "Release")
	out := &bytes.Buffer{}
	if err := run([]string{"check"}, h.root, out); err != nil {
		t.Fatal(err)
	}
	want := `[
  {
    "unit": "provider-a",
    "tag": "provider-a/v0.1.1",
    "from": "v0.1.0",
    "to": "v0.1.1",
    "changes": [
      "Fix a"
    ]
  },
  {
    "unit": "direct-secrets",
    "tag": "v0.1.1",
    "from": "v0.1.0",
    "to": "v0.1.1",
    "changes": [
      "Pin provider-a v0.1.1"
    ]
  }
]
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	got := map[string]string{}
	for _, f := range []string{"provider-a/CHANGELOG.md", "charts/direct-secrets/CHANGELOG.md", "charts/direct-secrets/Chart.yaml", "charts/provider-a/Chart.yaml", "charts/provider-b/Chart.yaml"} {
		raw, err := os.ReadFile(filepath.Join(h.root, f))
		if err != nil {
			t.Fatal(err)
		}
		got[f] = string(raw)
	}
	if diff := cmp.Diff(map[string]string{
		"provider-a/CHANGELOG.md":            "# Changes of provider-a\n\n## v0.1.1\n\n- Fix a\n",
		"charts/direct-secrets/CHANGELOG.md": "# Changes of direct-secrets\n\n## v0.1.1\n\n- Pin provider-a v0.1.1\n",
		"charts/direct-secrets/Chart.yaml": "name: direct-secrets\nversion: 0.1.1\nappVersion: 0.1.1\nannotations:\n  artifacthub.io/changes: |\n    - \"Pin provider-a v0.1.1\"\n  a: b\ndependencies:\n  - name: library\n    version: \"~0.1.0\"\n" +
			"  - name: crds\n    version: \"~0.1.0\"\n  - name: provider-a\n    version: \"~0.1.0\"\n    condition: provider-a.enabled\n  - name: provider-b\n    version: \"~0.1.0\"\n    condition: provider-b.enabled\n",
		"charts/provider-a/Chart.yaml": "name: provider-a\nversion: 0.1.1\nappVersion: 0.1.1\nannotations:\n  artifacthub.io/changes: |\n    - \"Fix a\"\n  a: b\ndependencies:\n  - name: library\n    version: 0.1.0\n",
		"charts/provider-b/Chart.yaml": "name: provider-b\nversion: 0.1.0\nappVersion: 0.1.0\nannotations:\n  artifacthub.io/changes: |\n    - \"before\"\n  a: b\ndependencies:\n  - name: library\n    version: 0.1.0\n",
	}, got); diff != "" {
		t.Errorf("what is written: -want, +got:\n%s", diff)
	}
}

// TestPublish releases everything for the first time, in a copy of the repository.
func TestPublish(t *testing.T) {
	t.Parallel()
	h := newTestRepo(t)
	want := "Step 1\ncommon/v0.1.0 (first release)\nAfter common, with the change of Renovate that moves to it: provider-a, provider-b, direct-secrets\n" +
		"Step 2\nprovider-a/v0.1.0 (first release)\nprovider-b/v0.1.0 (first release)\nv0.1.0 (first release)\nStep 3\nNothing is due.\n"
	out := &bytes.Buffer{}
	if err := run([]string{"publish"}, h.root, out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if p := h.plan(); len(p.Releases) == 0 {
		t.Error("the rehearsal has changed the repository")
	}
}
