package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// planned are releases of each sort, as `release check` prints them.
const planned = `[
{"unit": "common", "tag": "common/v0.1.1", "to": "v0.1.1", "changes": ["Fix common"]},
{"unit": "provider-a", "tag": "provider-a/v0.1.1", "to": "v0.1.1", "changes": ["Fix a"]},
{"unit": "direct-secrets", "tag": "v0.1.1", "to": "v0.1.1", "changes": ["Pin provider-a v0.1.1"]}
]`

var workflowFile = filepath.Join("..", "..", ".github", "workflows", "release.yaml")

// newTagsJob returns a repository, a rehearsal of its job "tags" for the releases in planned, the commit, and what the job prints.
func newTagsJob(t *testing.T) (testRepo, *rehearsal, string, *bytes.Buffer) {
	t.Helper()
	tree := filepath.Join("..", "..")
	h := newTestRepo(t)
	script, err := os.ReadFile(filepath.Join(tree, "hack", "release-tags.sh"))
	if err != nil {
		t.Fatal(err)
	}
	h.commit("Add the script", map[string]string{"hack/release-tags.sh": string(script)})
	if err := os.Chmod(filepath.Join(h.root, "hack", "release-tags.sh"), 0o755); err != nil { //nolint:gosec // It is a program.
		t.Fatal(err)
	}
	h.commit("Make it a program", nil)
	log := &bytes.Buffer{}
	r, err := newRehearsal(tree, t.TempDir(), h.repo, log)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		"plan.json", "charts/provider-a-0.1.1.tgz", "charts/direct-secrets-0.1.1.tgz", "charts/crds-0.1.1.tgz", "dsctl-archives/dsctl.tar.gz",
		"images/provider-a.tar", "images/provider-a-amd64.cdx.json", "images/provider-a-fips-amd64.cdx.json",
	} {
		path := filepath.Join(r.state, "artifacts", "release", file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(planned), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	head, err := h.git("rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	return h, r, head, log
}

// TestTagsJob runs the job "tags" of the workflow, and lets it run again after it was cut.
func TestTagsJob(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		// cuts are the tags at which one run each ends.
		cuts []string
	}{
		"Twice": {"a second cut is repaired, too", []string{"provider-a/v0.1.1", "v0.1.1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, r, head, log := newTagsJob(t)
			for _, cut := range tc.cuts {
				if err := r.runJob(workflowFile, "tags", head, "CUT="+cut); err == nil {
					t.Fatalf("the run is not cut at %s", cut)
				}
				if tag, _ := h.git("tag", "--list", cut); tag != "" {
					t.Errorf("%s is a tag without a release", cut)
				}
			}
			if err := r.runJob(workflowFile, "tags", head); err != nil {
				t.Fatalf("%s: %v\n%s", tc.reason, err, log)
			}
			got := map[string]string{}
			for _, tag := range []string{"common/v0.1.1", "provider-a/v0.1.1", "v0.1.1"} {
				at, err := h.git("rev-parse", tag)
				if err != nil || at != head {
					t.Errorf("%s is at %q: %v", tag, at, err)
				}
				for _, file := range []string{"draft", "files", "notes.md"} {
					raw, err := os.ReadFile(filepath.Join(r.state, "releases", tag, file))
					if err != nil {
						t.Fatal(err)
					}
					got[tag] += strings.ReplaceAll(string(raw), "\n", " ")
				}
			}
			want := map[string]string{
				"common/v0.1.1":     "false - Fix common ",
				"provider-a/v0.1.1": "false provider-a-0.1.1.tgz provider-a-amd64.cdx.json provider-a-fips-amd64.cdx.json - Fix a ",
				"v0.1.1":            "false direct-secrets-0.1.1.tgz crds-0.1.1.tgz dsctl.tar.gz - Pin provider-a v0.1.1 ",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			calls, err := os.ReadFile(filepath.Join(r.state, "calls"))
			if err != nil {
				t.Fatal(err)
			}
			if want := "gh workflow run docs.yaml --ref v0.1.1\n"; !strings.HasSuffix(string(calls), want) {
				t.Errorf("the docs of the release are not published: want the call %q in\n%s", want, calls)
			}
		})
	}
}

// TestForeignTag runs the job "tags" when a tag of the plan is already at another commit.
func TestForeignTag(t *testing.T) {
	t.Parallel()
	h, r, head, log := newTagsJob(t)
	h.run("tag", "common/v0.1.1", "HEAD~1")
	err := r.runJob(workflowFile, "tags", head)
	if err == nil || !strings.Contains(log.String(), "the tag common/v0.1.1 is at") {
		t.Errorf("the release would have files of another commit: got %v\n%s", err, log)
	}
}
