package charts

import (
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
	cases := map[string]struct {
		reason, set, err string
	}{
		"Own":          {reason: "settings of the parent are accepted", set: `global={"foo":"bar","storageClass":"fast"}`},
		"OursIsWrong":  {reason: "a wrong type is rejected", set: `global.replicaCount="two"`, err: "/global/replicaCount"},
		"OursMisspelt": {reason: "an unknown name inside of a setting is rejected", set: `global.scope.namespace=["a"]`, err: "/global/scope"},
		"OfAModule":    {reason: "an unknown name in a module is rejected", set: `direct-secrets.provider-aws.replica=2`, err: "replica"},
	}
	parent := parentChart(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values := map[string]any{}
			must(t, helm.Set(values, `direct-secrets.provider-aws.enabled=true`, tc.set))
			out, err := helmClient.Template(helm.Release{Name: release, Namespace: namespace, Chart: parent, Values: values})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: got %v, want an error that names %s", tc.reason, err, tc.err)
				}
				return
			}
			must(t, err)
			if got := names(of(objectsOf(t, out), "Deployment")); len(got) != 1 {
				t.Errorf("%s: there are the Deployments %v, want one", tc.reason, got)
			}
		})
	}
}

// TestNames checks the names of objects. It also checks that the labels stay, which commands of the docs and
// selectors use.
func TestNames(t *testing.T) {
	cases := map[string]struct {
		reason string
		sets   []string
		want   []string // the names of all objects but CRDs
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
			for _, o := range render(t, umbrella, enable([]string{"provider-aws"}, append(tc.sets, `prometheusRule.enabled=true`)...)) {
				if o.GetKind() != "CustomResourceDefinition" {
					got[o.GetName()] = true
				}
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

// TestCommonLabels checks that common labels are on all objects and pods, and replace no label of the chart.
func TestCommonLabels(t *testing.T) {
	t.Parallel()
	sets := append([]string{`global.commonLabels={"team":"platform","app.kubernetes.io/name":"mine"}`, `provider-aws.commonLabels.team="cloud"`,
		`global.podLabels.team="pods"`, `admissionPolicies.protectCRDs.enabled=true`, `global.serviceAccountTokens.enabled=true`, `global.crds.aggregateRoles=true`}, everything...)
	plain := map[string]map[string]string{}
	for _, o := range render(t, umbrella, enable(modules, sets[2:]...)) {
		plain[name(o)] = o.GetLabels()
	}
	for _, o := range render(t, umbrella, enable(modules, sets...)) {
		if o.GetKind() == "CustomResourceDefinition" {
			continue
		}
		want := maps.Clone(plain[name(o)])
		want["team"] = "platform"
		if want["app.kubernetes.io/name"] == "provider-aws" {
			want["team"] = "cloud"
		}
		if diff := cmp.Diff(want, o.GetLabels()); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name(o), diff)
		}
	}
	want := map[string]string{
		"app.kubernetes.io/name": "provider-aws", "app.kubernetes.io/instance": release, "app.kubernetes.io/part-of": "direct-secrets", "team": "pods",
	}
	if diff := cmp.Diff(want, pod(t, "provider-aws", sets...).Labels); diff != "" {
		t.Errorf("podLabels count before commonLabels: -want, +got:\n%s", diff)
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
	values := enable(nil, `extraObjects=[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{{ .Release.Name }}-one"}},`+
		`"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: two\n  labels:\n    {{- include \"library.labels\" . | nindent 4 }}\n"]`)
	found := of(render(t, umbrella, values), "ConfigMap")
	if diff := cmp.Diff([]string{"ConfigMap direct-secrets-one", "ConfigMap two"}, names(found)); diff != "" {
		t.Fatalf("-want, +got:\n%s", diff)
	}
}
