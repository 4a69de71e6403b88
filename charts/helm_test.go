package charts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/e2e/commands"
)

func newShell(t *testing.T) *commands.Shell {
	t.Helper()
	kubeconfig, err := plane.AdminKubeconfig()
	must(t, err)
	return commands.NewShell(t, kubeconfig)
}

// TestHelmsRenderAlike holds the oldest helm to render what today's does. Argo CD and Flux render like this: by a command
// of their own, with the CRDs, and without knowing what the cluster serves.
func TestHelmsRenderAlike(t *testing.T) {
	t.Parallel()
	shell := newShell(t)
	chart, err := filepath.Abs(umbrella)
	must(t, err)
	cases := map[string]struct {
		reason string
		values map[string]any
	}{
		"Nothing":    {reason: "no module is enabled by default", values: enable(nil)},
		"One":        {reason: "what the quick start installs", values: enable([]string{"provider-aws"})},
		"All":        {reason: "every module", values: enable(modules)},
		"Namespaces": {reason: "Roles instead of ClusterRoles", values: enable(modules, `global.scope.namespaces=["shop"]`)},
		"Extras":     {reason: "what is off by default", values: enable(modules, `global.metrics.serviceMonitor.enabled=true`, `global.replicas=3`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := yaml.Marshal(tc.values)
			must(t, err)
			values := filepath.Join(t.TempDir(), "values.yaml")
			must(t, os.WriteFile(values, raw, 0o600))
			rendered := map[string][]string{}
			for _, helm := range []string{commands.Helm, commands.OldestHelm} {
				out, err := shell.Run(t.Context(), helm, "template", release, chart, "--namespace", namespace, "--include-crds", "--kube-version", "1.33.0", "--values", values)
				must(t, err)
				rendered[helm] = sorted(t, out)
			}
			if diff := cmp.Diff(rendered[commands.Helm], rendered[commands.OldestHelm]); diff != "" {
				t.Errorf("%s: -today's helm, +the oldest:\n%s", tc.reason, diff)
			}
		})
	}
}

// sorted returns the objects of a rendered chart in YAML, sorted, since helm puts those of one Kind in any order.
func sorted(t *testing.T, out string) []string {
	t.Helper()
	var all []string
	for _, o := range objectsOf(t, out) {
		raw, err := yaml.Marshal(o)
		must(t, err)
		all = append(all, string(raw))
	}
	slices.Sort(all)
	return all
}

// TestLifeOfAReleaseOfHelm3 installs, upgrades, rolls back and removes a release in a real cluster by the oldest helm.
func TestLifeOfAReleaseOfHelm3(t *testing.T) {
	ownCluster(t)
	shell := newShell(t)
	chart, err := filepath.Abs(umbrella)
	must(t, err)
	helm := func(args ...string) string {
		t.Helper()
		out, err := shell.Run(t.Context(), commands.OldestHelm, append(args, "--namespace", "life")...)
		must(t, err)
		return out
	}
	upgrade := []string{"upgrade", "--install", release, chart, "--create-namespace", "--set", "global.replicas=0", "--set", "provider-aws.enabled=true"}

	if notes := helm(upgrade...); !strings.Contains(notes, "runs provider-aws in namespace life") || strings.Contains(notes, "UNTESTED") {
		t.Errorf("the notes tell what runs, got:\n%s", notes)
	}
	installed := ours(t)
	helm(append(upgrade, "--set", "provider-vault.enabled=true")...)
	if diff := cmp.Diff([]string{"aws.direct-secrets.io", "direct-secrets.io", "vault.direct-secrets.io"}, crds(t)); diff != "" {
		t.Errorf("an upgrade brings CRDs: -want, +got:\n%s", diff)
	}
	helm("rollback", release, "1")
	if diff := cmp.Diff(installed, ours(t)); diff != "" {
		t.Errorf("a rollback brings back what was there: -want, +got:\n%s", diff)
	}
	before := crds(t)
	helm("uninstall", release)
	if left := ours(t); len(left) > 0 {
		t.Errorf("an uninstall leaves nothing but CRDs, got %v", left)
	}
	if diff := cmp.Diff(before, crds(t)); diff != "" {
		t.Errorf("CRDs stay, and with them every Secret: -want, +got:\n%s", diff)
	}
}
