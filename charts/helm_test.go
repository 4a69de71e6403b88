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

// TestHelmsRenderAlike checks that the oldest supported helm renders the same as the present one. Argo CD and
// Flux render in this way: with their own command, with the CRDs, and without information about the
// cluster.
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
		"OpenShift":  {reason: "the values for OpenShift", values: openShift(t)},
		"Namespaces": {reason: "Roles instead of ClusterRoles", values: enable([]string{"provider-aws"}, noCRDs, `global.scope.namespaces=["shop"]`)},
		"Extras": {reason: "every module, and everything that is off by default", values: enable(modules, `global.metrics.serviceMonitor.enabled=true`, `global.replicaCount=3`, `global.commonLabels={"team":"platform"}`, `global.commonAnnotations={"a":"b"}`,
			`global.crds.annotations={"a":"b"}`, `global.podSpecExtra.runtimeClassName="a"`, `global.podDisruptionBudget.minAvailable=2`, `global.strategy.rollingUpdate.maxSurge=2`,
			`extraObjects=[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{{ .Release.Name }}-extra"}}]`, `global.metrics.serviceMonitor.relabelings=[{"action":"labeldrop","regex":"pod"}]`)},
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

// TestHelmsRefuseAlike checks that the oldest helm, too, names the setting to use instead of an unknown one.
func TestHelmsRefuseAlike(t *testing.T) {
	t.Parallel()
	shell := newShell(t)
	chart, err := filepath.Abs(umbrella)
	must(t, err)
	refused := func(want string, sets ...string) {
		t.Helper()
		args := []string{"template", release, chart, "--kube-version", "1.33.0", "--set", "provider-aws.enabled=true"}
		for _, set := range sets {
			args = append(args, "--set", set)
		}
		if _, err := shell.Run(t.Context(), commands.OldestHelm, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want an error that contains %q", sets, err, want)
		}
	}
	refused("use extraArgs", "provider-aws.args={--log-level=debug}")
	refused("use provider-aws", "aws.enabled=true") // The schema knows the short name of a module.
	refused("use global.replicaCount", "global.replicas=2")
}

// sorted returns the objects of a rendered chart in YAML, sorted, because the order within a Kind varies
// between versions of helm.
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

// lifecycleOfHelm3 installs, upgrades, rolls back and uninstalls a release in a real cluster with the oldest supported helm.
func lifecycleOfHelm3(t *testing.T) {
	shell := newShell(t)
	chart, err := filepath.Abs(umbrella)
	must(t, err)
	helm := func(args ...string) string {
		t.Helper()
		out, err := shell.Run(t.Context(), commands.OldestHelm, append(args, "--namespace", "life")...)
		must(t, err)
		return out
	}
	upgrade := []string{"upgrade", "--install", release, chart, "--create-namespace", "--set", "global.replicaCount=0", "--set", "provider-gcp.enabled=true"}
	before := crds(t)

	if notes := helm(upgrade...); !strings.Contains(notes, "runs provider-gcp in namespace life") || strings.Contains(notes, "UNTESTED") {
		t.Errorf("the notes tell what runs, got:\n%s", notes)
	}
	installed := ours(t)
	helm(append(upgrade, "--set", "provider-azure.enabled=true")...)
	brought := slices.Sorted(slices.Values(append(before, "azure.direct-secrets.io", "direct-secrets.io", "gcp.direct-secrets.io")))
	if diff := cmp.Diff(slices.Compact(brought), crds(t)); diff != "" {
		t.Errorf("an upgrade brings CRDs: -want, +got:\n%s", diff)
	}
	helm("rollback", release, "1")
	if diff := cmp.Diff(installed, ours(t)); diff != "" {
		t.Errorf("a rollback brings back what was there: -want, +got:\n%s", diff)
	}
	before = crds(t)
	helm("uninstall", release)
	if left := ours(t); len(left) > 0 {
		t.Errorf("an uninstall must leave only CRDs, got %v", left)
	}
	if diff := cmp.Diff(before, crds(t)); diff != "" {
		t.Errorf("CRDs stay, and with them every Secret: -want, +got:\n%s", diff)
	}
}
