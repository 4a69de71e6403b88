package charts

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/e2e/helm"
)

// parentChart returns a chart that depends on the umbrella chart.
func parentChart(t *testing.T) string {
	t.Helper()
	parent := t.TempDir()
	must(t, os.WriteFile(filepath.Join(parent, "Chart.yaml"), []byte("apiVersion: v2\nname: parent\nversion: 1.0.0\ndependencies: [{name: direct-secrets, version: \">=0.0.0-0\"}]\n"), 0o600))
	must(t, os.Mkdir(filepath.Join(parent, "charts"), 0o700))
	here, err := filepath.Abs(umbrella)
	must(t, err)
	must(t, os.Symlink(here, filepath.Join(parent, "charts", umbrella)))
	return parent
}

// TestGlobalOfAParent checks that a parent chart can have its own settings in global, and that wrong settings
// of our own are still rejected.
func TestGlobalOfAParent(t *testing.T) {
	t.Parallel()
	parent := parentChart(t)
	values := func(sets ...string) helm.Release {
		return helm.Release{Name: release, Namespace: namespace, Chart: parent, Values: enable(nil, append(sets, `direct-secrets.provider-aws.enabled=true`, noCRDs)...)}
	}
	out, err := manifests(values(`global={"foo":"bar","storageClass":"fast"}`))
	must(t, err)
	if got := names(of(objectsOf(t, out), "Deployment")); len(got) != 1 {
		t.Errorf("there are the Deployments %v, want one", got)
	}
	_, err = manifests(values(`global.replicaCount="two"`, `global.scope.namespace=["a"]`, `direct-secrets.provider-aws.replica=2`))
	for _, want := range []string{"'/global/replicaCount': got string", "'/global/scope': additional properties 'namespace'", "'/provider-aws': additional properties 'replica'"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// TestNames checks the names of objects. It also checks that the labels stay, which commands of the docs and
// selectors use.
func TestNames(t *testing.T) {
	cases := map[string]struct {
		reason string
		sets   []string
		want   []string
	}{
		"Module": {reason: "the release's name is before that of the module", sets: []string{`provider-aws.nameOverride="aws"`},
			want: []string{"direct-secrets-aws", "direct-secrets-aws-cluster", "direct-secrets-aws-leases", "direct-secrets-aws-metrics", "direct-secrets-alerts"}},
		"Full": {reason: "the whole name can be set", sets: []string{`provider-aws.fullnameOverride="secrets-of-aws"`, `provider-aws.nameOverride="aws"`, `fullnameOverride="ds"`},
			want: []string{"secrets-of-aws", "secrets-of-aws-cluster", "secrets-of-aws-leases", "secrets-of-aws-metrics", "ds-alerts"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string]bool{}
			for _, o := range render(t, umbrella, enable([]string{"provider-aws"}, append(tc.sets, `prometheusRule.enabled=true`, noCRDs)...)) {
				got[o.GetName()] = true
				if o.GetKind() == "Deployment" && o.GetLabels()["app.kubernetes.io/name"] != "provider-aws" {
					t.Errorf("%s: labels must keep the name of the module, got %v", tc.reason, o.GetLabels())
				}
			}
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPodsTakeWhatIsSet checks that setting one field of a pod keeps the defaults of the others.
func TestPodsTakeWhatIsSet(t *testing.T) {
	t.Parallel()
	p := pod(t, "provider-aws", `global.podSecurityContext={"fsGroup":1000}`, `provider-aws.securityContext={"runAsUser":2000,"readOnlyRootFilesystem":false}`,
		`global.hostAliases=[{"ip":"10.0.0.1","hostnames":["vault.example.com"]}]`).Spec
	yes, no, group, user := true, false, int64(1000), int64(2000)
	wantPod := &corev1.PodSecurityContext{RunAsNonRoot: &yes, FSGroup: &group, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	if diff := cmp.Diff(wantPod, p.SecurityContext); diff != "" {
		t.Errorf("podSecurityContext: -want, +got:\n%s", diff)
	}
	wantContainer := &corev1.SecurityContext{RunAsUser: &user, AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	if diff := cmp.Diff(wantContainer, p.Containers[0].SecurityContext); diff != "" {
		t.Errorf("securityContext: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"vault.example.com"}}}, p.HostAliases); diff != "" {
		t.Errorf("hostAliases: -want, +got:\n%s", diff)
	}
}

// TestExtraObjects checks extra objects, which can be objects or strings, with templates.
func TestExtraObjects(t *testing.T) {
	t.Parallel()
	values := enable(nil, noCRDs, `extraObjects=[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{{ .Release.Name }}-one"}},`+
		`"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: two\n  labels:\n    {{- include \"library.labels\" . | nindent 4 }}\n"]`)
	found := of(render(t, umbrella, values), "ConfigMap")
	if diff := cmp.Diff([]string{"ConfigMap direct-secrets-one", "ConfigMap two"}, names(found)); diff != "" {
		t.Fatalf("-want, +got:\n%s", diff)
	}
}
