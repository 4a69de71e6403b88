package charts

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestSettingsReachTheObjects renders a module with settings of its objects, and compares fields.
func TestSettingsReachTheObjects(t *testing.T) {
	const (
		pod     = "Deployment spec.template.spec."
		monitor = "ServiceMonitor spec."
		token   = `"bearerTokenFile":"/var/run/secrets/kubernetes.io/serviceaccount/token"`
	)
	cases := map[string]struct {
		reason, values string
		want           map[string]string
	}{
		"Set": {
			reason: "each setting has its field, and those of all modules and of one are merged",
			values: `{"global":{"replicaCount":3,"dnsPolicy":"Default","dnsConfig":{"nameservers":["1.1.1.1"]},"hostNetwork":true,"hostUsers":false,"podSpecExtra":{"runtimeClassName":"gvisor"},"deploymentAnnotations":{"a":"b"},
				"revisionHistoryLimit":0,"strategy":{"rollingUpdate":{"maxSurge":"50%"}},"podDisruptionBudget":{"minAvailable":"66%"},"serviceAccount":{"labels":{"a":"b"}},"metrics":{"service":{"annotations":{"a":"b"},"ipFamilies":["IPv6","IPv4"],
				"ipFamilyPolicy":"PreferDualStack"},"serviceMonitor":{"enabled":true,"scrapeTimeout":"5s","honorLabels":true,"namespace":"monitoring","annotations":{"a":"b"}}}},
				"provider-aws":{"podSpecExtra":{"schedulerName":"own"}},"grafanaDashboard":{"enabled":true,"annotations":{"grafana_folder":"Secrets"}}}`,
			want: map[string]string{
				pod + "dnsPolicy": `"Default"`, pod + "dnsConfig": `{"nameservers":["1.1.1.1"]}`, pod + "hostNetwork": `true`, pod + "hostUsers": `false`, pod + "runtimeClassName": `"gvisor"`, pod + "schedulerName": `"own"`,
				"Deployment metadata.annotations": `{"a":"b"}`, "Deployment spec.revisionHistoryLimit": `0`, "Deployment spec.strategy": `{"rollingUpdate":{"maxSurge":"50%"}}`,
				"PodDisruptionBudget spec":         `{"minAvailable":"66%","selector":{"matchLabels":{"app.kubernetes.io/instance":"direct-secrets","app.kubernetes.io/name":"provider-aws"}},"unhealthyPodEvictionPolicy":"AlwaysAllow"}`,
				"ServiceAccount metadata.labels.a": `"b"`, "Service metadata.annotations": `{"a":"b"}`, "Service spec.ipFamilies": `["IPv6","IPv4"]`, "Service spec.ipFamilyPolicy": `"PreferDualStack"`,
				monitor + "endpoints": `[{"honorLabels":true,"port":"metrics","scrapeTimeout":"5s"}]`, "ServiceMonitor metadata.namespace": `"monitoring"`, monitor + "namespaceSelector": `{"matchNames":["direct-secrets"]}`,
				"ServiceMonitor metadata.annotations": `{"a":"b"}`, "ConfigMap metadata.annotations": `{"grafana_folder":"Secrets"}`,
			},
		},
		"HostNetwork": {
			reason: "pods in the network of the node still find Services, Prometheus verifies the endpoint to which it sends its token, and a number stays a number",
			values: `{"global":{"hostNetwork":true,"replicaCount":3,"podDisruptionBudget":{"minAvailable":2},"metrics":{"auth":true,"tls":{"secretName":"cert"},"serviceMonitor":{"enabled":true}}}}`,
			want: map[string]string{
				pod + "dnsPolicy": `"ClusterFirstWithHostNet"`, "PodDisruptionBudget spec.minAvailable": `2`, "Deployment spec.strategy.type": `"RollingUpdate"`,
				monitor + "endpoints": `[{` + token + `,"port":"metrics","scheme":"https","tlsConfig":{"ca":{"secret":{"key":"ca.crt","name":"cert"}},"serverName":"direct-secrets-provider-aws-metrics.direct-secrets.svc"}}]`,
				pod + "volumes":       `[{"name":"direct-secrets-metrics","secret":{"items":[{"key":"tls.crt","path":"tls.crt"},{"key":"tls.key","path":"tls.key"}],"secretName":"cert"}}]`,
			},
		},
		"OneReplica": {
			reason: "a module can leave the network of the node, a tlsConfig of the user replaces that of the chart, and one replica has no budget that could block a node",
			values: `{"global":{"hostNetwork":true,"leaderElection":{"enabled":false},"podDisruptionBudget":{"minAvailable":1},"metrics":{"auth":true,"tls":{"secretName":"cert"},"serviceMonitor":{"enabled":true,"tlsConfig":{"serverName":"a"}}}},
				"provider-aws":{"hostNetwork":false}}`,
			want: map[string]string{
				pod + "hostNetwork": `null`, "Deployment spec.strategy": `{"type":"Recreate"}`, "Deployment spec.replicas": `1`, "PodDisruptionBudget": "",
				monitor + "endpoints": `[{` + token + `,"port":"metrics","scheme":"https","tlsConfig":{"serverName":"a"}}]`,
			},
		},
		"Recreate": {
			reason: "Recreate is accepted without leader election",
			values: `{"global":{"leaderElection":{"enabled":false},"strategy":{"type":"Recreate"}}}`,
			want:   map[string]string{"Deployment spec.strategy": `{"type":"Recreate"}`, pod + "hostUsers": `null`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sets := []string{noCRDs}
			for key, value := range topLevel(t, tc.values) {
				sets = append(sets, key+"="+value)
			}
			objects, got := render(t, umbrella, enable([]string{"provider-aws"}, sets...)), map[string]string{}
			for at := range tc.want {
				kind, field, _ := strings.Cut(at, " ")
				for _, o := range of(objects, kind) {
					value, _, err := unstructured.NestedFieldNoCopy(o.Object, strings.Split(field, ".")...)
					must(t, err)
					raw, err := json.Marshal(value)
					must(t, err)
					got[at] += string(raw)
				}
				if len(of(objects, kind)) == 0 {
					got[at] = ""
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCommonMetadata checks that common labels and annotations are on all objects, and replace none of one Kind or of the chart. CRDs
// have annotations of their own.
func TestCommonMetadata(t *testing.T) {
	t.Parallel()
	plain := append([]string{
		`admissionPolicies.protectCRDs.enabled=true`, `global.serviceAccountTokens.enabled=true`, `global.crds.aggregateRoles=true`, `global.podLabels.team="pods"`,
		`global.serviceAccount.annotations.team="accounts"`, `global.crds.annotations={"argocd.argoproj.io/sync-options":"Replace=true","note":"two\nlines"}`,
	}, everything...)
	sets := append([]string{
		`global.commonLabels={"team":"platform","app.kubernetes.io/name":"mine"}`, `provider-aws.commonLabels.team="cloud"`,
		`global.commonAnnotations={"team":"platform","on":"all"}`, `provider-aws.commonAnnotations.team="cloud"`,
	}, plain...)
	labels := map[string]map[string]string{}
	for _, o := range render(t, umbrella, enable(modules, append(plain, noCRDs)...)) {
		labels[name(o)] = o.GetLabels()
	}
	for _, o := range render(t, umbrella, enable(modules, sets...)) {
		if o.GetKind() == "CustomResourceDefinition" {
			want := map[string]string{
				"argocd.argoproj.io/sync-options": "Replace=true", "note": "two\nlines", "helm.sh/resource-policy": "keep",
				"controller-gen.kubebuilder.io/version": o.GetAnnotations()["controller-gen.kubebuilder.io/version"],
			}
			if diff := cmp.Diff(want, o.GetAnnotations()); diff != "" {
				t.Errorf("annotations of %s: -want, +got:\n%s", name(o), diff)
			}
			continue
		}
		wantLabels, want := maps.Clone(labels[name(o)]), map[string]string{"team": "platform", "on": "all"}
		if wantLabels["app.kubernetes.io/name"] == "provider-aws" {
			want["team"] = "cloud"
		}
		wantLabels["team"] = want["team"]
		switch o.GetKind() {
		case "ServiceAccount":
			want["team"] = "accounts"
		case "Deployment":
			own := map[string]string{"app.kubernetes.io/name": wantLabels["app.kubernetes.io/name"], "app.kubernetes.io/instance": release, "app.kubernetes.io/part-of": "direct-secrets", "team": "pods"}
			if diff := cmp.Diff(own, decode[appsv1.Deployment](t, o).Spec.Template.Labels); diff != "" {
				t.Errorf("podLabels count before commonLabels in %s: -want, +got:\n%s", name(o), diff)
			}
		}
		if diff := cmp.Diff([]map[string]string{wantLabels, want}, []map[string]string{o.GetLabels(), o.GetAnnotations()}); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name(o), diff)
		}
	}
}

// TestWithoutRBAC checks that nothing of RBAC is rendered, in every scope.
func TestWithoutRBAC(t *testing.T) {
	t.Parallel()
	for scope, sets := range everyScope {
		sets = slices.Concat(sets, everything, []string{`global.metrics.auth=true`, `global.metrics.tls.secretName="cert"`, `global.rbac.create=false`, noCRDs})
		for _, o := range render(t, umbrella, enable(modules, sets...)) {
			if strings.HasPrefix(o.GetAPIVersion(), "rbac.authorization.k8s.io/") {
				t.Errorf("%s: %s is rendered", scope, name(o))
			}
		}
	}
}

// TestNamespaceOverride checks that another namespace takes the place of the release's namespace everywhere.
func TestNamespaceOverride(t *testing.T) {
	t.Parallel()
	sets := slices.Concat(everything, []string{
		`admissionPolicies={"protectParts":{"enabled":true},"protectStatus":{"enabled":true}}`, noCRDs,
		`global.metrics={"auth":true,"tls":{"secretName":"cert"}}`, `global.serviceAccountTokens.enabled=true`,
	})
	text := func(in string, more ...string) string {
		t.Helper()
		out, err := template(release, in, enable(modules, append(sets, more...)...))
		must(t, err)
		return out
	}
	if diff := cmp.Diff(text("elsewhere"), text("here", `global.namespaceOverride="elsewhere"`)); diff != "" {
		t.Errorf("all modules in another namespace: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(text("here"), text("here", `global.namespaceOverride="here"`, `provider-aws.namespaceOverride=""`)); diff != "" {
		t.Errorf("an empty setting of a module is the namespace of the release: -want, +got:\n%s", diff)
	}
	one := text("here", `provider-aws.namespaceOverride="elsewhere"`)
	for _, want := range []string{"system:serviceaccount:elsewhere:direct-secrets-provider-aws", "system:serviceaccount:here:direct-secrets-provider-vault"} {
		if !strings.Contains(one, want) {
			t.Errorf("the policies do not name %s", want)
		}
	}
	// Modules that do not see each other would report each other's objects.
	if got := strings.Count(one, "--presence-namespace=here"); got != len(modules) || strings.Contains(one, "--presence-namespace=elsewhere") {
		t.Errorf("%d modules publish themselves in the namespace of the release, want %d", got, len(modules))
	}
}
