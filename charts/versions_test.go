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
	said := fmt.Sprintf("Direct Secrets is tested with 1.%d to 1.%d.", oldest, newest)
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
			notes, err := helmClient.Notes(helm.Release{Name: "versions", Namespace: "versions", Chart: umbrella, Values: enable([]string{"provider-aws"})}, tc.version)
			if err != nil && !strings.Contains(err.Error(), "kubeVersion") {
				t.Fatal(err)
			}
			got := outcome{Refused: err != nil, Untested: strings.Contains(notes, "UNTESTED: this is Kubernetes "+tc.version) && strings.Contains(notes, said)}
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
