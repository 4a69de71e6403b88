package charts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/e2e/helm"
)

// TestKubernetesVersions checks that the charts can be installed on every version of Kubernetes that could
// work, and that the notes warn about untested versions.
func TestKubernetesVersions(t *testing.T) {
	t.Parallel()
	oldest, newest := tested(t)
	want := fmt.Sprintf("direct-secrets is tested with 1.%d to 1.%d.", oldest, newest)
	if page := read(t, "../docs/reference/versions.md"); !strings.Contains(page, fmt.Sprintf("| Kubernetes | 1.%d to 1.%d |", oldest, newest)) {
		t.Errorf("docs/reference/versions.md does not say that 1.%d to 1.%d are supported", oldest, newest)
	}
	type outcome struct{ Refused, Untested bool }
	cases := map[string]struct {
		reason  string
		version string
		want    outcome
	}{
		"TooOld":     {reason: "a version without selectable fields of CRDs (before 1.31) is rejected", version: "v1.30.9", want: outcome{Refused: true}},
		"Old":        {reason: "a version that could work is accepted", version: "v1.31.0", want: outcome{Untested: true}},
		"JustBefore": {reason: "the version before the oldest tested one is accepted", version: fmt.Sprintf("v1.%d.9", oldest-1), want: outcome{Untested: true}},
		"Oldest":     {reason: "the suffix of EKS is accepted", version: fmt.Sprintf("v1.%d.0-eks-1a2b3c4", oldest), want: outcome{}},
		"Newest":     {reason: "the suffix of GKE, with a plus sign, is accepted", version: fmt.Sprintf("v1.%d.4-gke.100", newest), want: outcome{}},
		"Newer":      {reason: "a newer version is accepted", version: fmt.Sprintf("v1.%d.0", newest+1), want: outcome{Untested: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes, err := helmClient.Notes(helm.Release{Name: "versions", Namespace: "versions", Chart: umbrella, Values: enable([]string{"provider-aws"}, noCRDs)}, tc.version)
			if err != nil && !strings.Contains(err.Error(), "kubeVersion") {
				t.Fatal(err)
			}
			got := outcome{Refused: err != nil, Untested: strings.Contains(notes, "UNTESTED: this is Kubernetes "+tc.version) && strings.Contains(notes, want)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s\nnotes: %s", tc.reason, diff, notes)
			}
		})
	}
}

var pinnedKubernetes = regexp.MustCompile(`(?m)^(?:require)?\s*k8s\.io/kubernetes v1\.(\d+)\.\d+`)

// tested returns the oldest and the newest minor version of Kubernetes that e2e/servers builds.
func tested(t *testing.T) (oldest, newest int) {
	t.Helper()
	files, err := filepath.Glob("../e2e/servers/kubernetes*/go.mod")
	must(t, err)
	for _, f := range files {
		raw, err := os.ReadFile(f)
		must(t, err)
		m := pinnedKubernetes.FindSubmatch(bytes.TrimSpace(raw))
		if m == nil {
			t.Fatalf("%s pins no version of k8s.io/kubernetes", f)
		}
		minor, err := strconv.Atoi(string(m[1]))
		must(t, err)
		if oldest == 0 || minor < oldest {
			oldest = minor
		}
		newest = max(newest, minor)
	}
	return oldest, newest
}

// commonOf returns the version of common in the go.mod of a module.
func commonOf(t *testing.T, module string) string {
	t.Helper()
	found := regexp.MustCompile(`direct-secrets/common (v\S+)`).FindStringSubmatch(read(t, filepath.Join("..", module, "go.mod")))
	if found == nil {
		t.Fatalf("%s/go.mod does not require common", module)
	}
	return found[1]
}

// TestCommonVersions renders the umbrella chart with a chart of a module that has another version, or is built with another
// version of common.
func TestCommonVersions(t *testing.T) {
	t.Parallel()
	for _, module := range modules {
		if meta := read(t, filepath.Join(module, "Chart.yaml")); !strings.Contains(meta, "  direct-secrets.io/common: "+commonOf(t, module)+"\n") {
			t.Errorf("charts/%s/Chart.yaml does not have the version of common in %s/go.mod", module, module)
		}
	}
	const common = "direct-secrets.io/common: "
	is := commonOf(t, "provider-vault")
	var major, minor int
	_, err := fmt.Sscanf(is, "v%d.%d.", &major, &minor)
	must(t, err)
	version := func(majors, minors, patch int) string {
		return fmt.Sprintf("v%d.%d.%d", major+majors, minor+minors, patch)
	}
	tooFar := func(common string) string {
		return "provider-aws is built with common " + common + " and provider-vault with common " + is
	}
	both := []string{"provider-aws", "provider-vault"}
	cases := map[string]struct {
		reason string
		// annotation and version replace the annotation with common and the version in the chart of provider-aws.
		annotation, version string
		enabled             []string
		err                 string
	}{
		"Minor":     {reason: "the next minor version", annotation: common + version(0, 1, 3), enabled: both},
		"TwoMinors": {reason: "two minor versions apart", annotation: common + version(0, 2, 0), enabled: both, err: tooFar(version(0, 2, 0)) + ", which do not work together: use a newer chart of provider-vault"},
		"Major":     {reason: "another major version", annotation: common + version(1, 0, 0), enabled: both, err: tooFar(version(1, 0, 0))},
		"Alone":     {reason: "modules that are off do not count", annotation: common + version(1, 0, 0), enabled: []string{"provider-aws"}},
		"Narrow":    {reason: "a range that excludes the other module", annotation: common + version(0, 1, 0) + "\n  direct-secrets.io/works-with-common: '>=" + version(0, 1, 0) + "'", enabled: both, err: tooFar(version(0, 1, 0))},
		"None":      {reason: "a module has a version of common", annotation: "a: b", enabled: both, err: "set the annotation direct-secrets.io/common in the Chart.yaml of provider-aws"},
		"NoVersion": {reason: "the annotation is a version", annotation: common + "main", enabled: both, err: "semver"},
		"OfLater":   {reason: "the umbrella chart excludes a later chart of a module", annotation: common + is, version: "97.0.0", enabled: both, err: "provider-aws has the version 97.0.0, and this version of the chart direct-secrets works with ~"},
		"OfOff":     {reason: "the chart of a module that is off does not matter", annotation: common + is, version: "97.0.0", enabled: []string{"provider-vault"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := copied(t)
			meta := filepath.Join(tree, "provider-aws", "Chart.yaml")
			edited := strings.Replace(read(t, meta), common+commonOf(t, "provider-aws"), tc.annotation, 1)
			if tc.version != "" {
				edited = regexp.MustCompile(`(?m)^version: .*`).ReplaceAllString(edited, "version: "+tc.version)
			}
			must(t, os.WriteFile(meta, []byte(edited), 0o600))
			_, err := helmClient.Template(helm.Release{Name: release, Namespace: namespace, Chart: filepath.Join(tree, umbrella), Values: enable(tc.enabled, noCRDs)})
			if got := fmt.Sprint(err); (err == nil) != (tc.err == "") || !strings.Contains(got, tc.err) {
				t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.err)
			}
		})
	}
}

// copied returns a copy of the charts, whose CRDs are those of this tree.
func copied(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	tree := filepath.Join(folder, "charts")
	must(t, os.CopyFS(tree, os.DirFS(".")))
	for _, module := range append([]string{"common"}, modules...) {
		here, err := filepath.Abs(filepath.Join("..", module))
		must(t, err)
		must(t, os.Symlink(here, filepath.Join(folder, module)))
	}
	return tree
}
