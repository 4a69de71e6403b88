package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rehearsed are the releases of a rehearsal that begins without tags.
const rehearsed = `Step 1
common/v0.1.0 (first release)
After common, with the change of Renovate that moves to it: provider-a, provider-b, direct-secrets
Step 2
provider-a/v0.1.0 (first release)
provider-b/v0.1.0 (first release)
v0.1.0 (first release)
Step 3
Nothing is due.

== Explain a page
Step 1
Nothing is due.

== Fix a provider
Step 1
provider-a/v0.1.1 (after v0.1.0)
  - Fix a provider
v0.1.1 (after v0.1.0)
  - Pin provider-a v0.1.1
Step 2
Nothing is due.

== Change the schema of a provider
Step 1
provider-a/v0.2.0 (after v0.1.1)
  - Change the schema of a provider
v0.2.0 (after v0.1.1)
  - Pin provider-a v0.2.0
cut
Step 2
Nothing is due.

== Fix common
Step 1
common/v0.1.1 (after v0.1.0)
  - Fix common
Step 2
provider-a/v0.2.1 (after v0.2.0)
  - Move to common v0.1.1
provider-b/v0.1.1 (after v0.1.0)
  - Move to common v0.1.1
v0.2.1 (after v0.2.0)
  - Pin provider-a v0.2.1
  - Pin provider-b v0.1.1
Step 3
Nothing is due.

== Change the schema of common
Step 1
common/v0.2.0 (after v0.1.1)
  - Change the schema of common
After common, with the change of Renovate that moves to it: direct-secrets
Step 2
provider-a/v0.3.0 (after v0.2.1)
  - Move to common v0.2.0
provider-b/v0.2.0 (after v0.1.1)
  - Move to common v0.2.0
v0.3.0 (after v0.2.1)
  - Change the schema of common
  - Pin provider-a v0.3.0
  - Pin provider-b v0.2.0
Step 3
Nothing is due.

== Change the notes of the umbrella chart
Step 1
v0.3.1 (after v0.3.0)
  - Change the notes of the umbrella chart
Step 2
Nothing is due.
`

// TestHistories releases each history in a small repository.
func TestHistories(t *testing.T) {
	t.Parallel()
	h := newTestRepo(t)
	h.commit("Add more", map[string]string{
		"docs/a.md": "a\n", "common/a/a.go": "package a\n", "charts/direct-secrets/templates/NOTES.txt": "a\n",
		"provider-a/manifests/crds/a.yaml": "a\n",
	})
	out := &bytes.Buffer{}
	tag := h.commandThenTags(nil, out)
	r := rehearser{repo: h.repo, out: out, publish: func(p plan, cut bool) error {
		if cut {
			out.WriteString("cut\n")
		}
		return tag(p, cut)
	}}
	if err := r.all(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rehearsed, out.String()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestFailingTests stops a rehearsal at a commit that does not pass.
func TestFailingTests(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, test, want string }{
		"Release":  {"the commit of the release is tested", "false", "the commit of the release does not pass"},
		"Tagged":   {"so is the commit after it is tagged", "! git describe --tags --exact-match --match 'v*'", "the tagged commit does not pass"},
		"Renovate": {"so is the change of Renovate", `! git log -1 --format=%s | grep -q "^Move to common v0.1.1"`, "Renovate's change does not pass"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newTestRepo(t)
			if name == "Renovate" {
				h.released()
				h.commit("Fix common", map[string]string{"common/a.go": "b\n"})
			}
			out := &bytes.Buffer{}
			r := rehearser{repo: h.repo, out: out, test: []string{"bash", "-c", tc.test + " 2>/dev/null"}, publish: h.commandThenTags(nil, out)}
			if err := r.releases(false); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestMove compares the files that a rehearsal changes for a release of common with those that have its version.
func TestMove(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	want, err := repo{root}.git("grep", "--files-with-matches", "-E", `direct-secrets/common v[0-9]|direct-secrets.io/common: v[0-9]`, "--", "*go.mod", "*.tmpl", "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h := newTestRepo(t)
	for _, file := range strings.Fields(want) {
		raw, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		h.commit("Add a file", map[string]string{file: string(raw)})
	}
	if err := h.move("v97.0.0"); err != nil {
		t.Fatal(err)
	}
	for _, file := range strings.Fields(want) {
		raw, err := os.ReadFile(filepath.Join(h.root, file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), "common v97.0.0") && !strings.Contains(string(raw), "common: v97.0.0") {
			t.Errorf("%s keeps the old version of common", file)
		}
	}
}
