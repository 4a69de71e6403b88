package charts

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestSettingsReachTheObjects renders a module with settings of its objects, and compares one field.
func TestSettingsReachTheObjects(t *testing.T) {
	const pod = "spec.template.spec."
	cases := map[string]struct {
		reason, kind, field string
		sets                []string
		want                string
	}{
		"DNSPolicy":     {reason: "the DNS policy of the pods", sets: []string{`global.dnsPolicy="Default"`}, kind: "Deployment", field: pod + "dnsPolicy", want: `"Default"`},
		"DNSConfig":     {reason: "the DNS configuration of the pods", sets: []string{`global.dnsConfig.nameservers=["1.1.1.1"]`}, kind: "Deployment", field: pod + "dnsConfig", want: `{"nameservers":["1.1.1.1"]}`},
		"HostNetwork":   {reason: "the network of the node", sets: []string{`provider-aws.hostNetwork=true`}, kind: "Deployment", field: pod + "hostNetwork", want: `true`},
		"HostDNS":       {reason: "pods in the network of the node still find Services", sets: []string{`global.hostNetwork=true`}, kind: "Deployment", field: pod + "dnsPolicy", want: `"ClusterFirstWithHostNet"`},
		"HostOwnDNS":    {reason: "a DNS policy that is set takes precedence", sets: []string{`global={"hostNetwork":true,"dnsPolicy":"Default"}`}, kind: "Deployment", field: pod + "dnsPolicy", want: `"Default"`},
		"ModuleNetwork": {reason: "a module can leave the network of the node", sets: []string{`global.hostNetwork=true`, `provider-aws.hostNetwork=false`}, kind: "Deployment", field: pod + "hostNetwork", want: `null`},
		"HostUsers":     {reason: "the pods get a user namespace", sets: []string{`global.hostUsers=false`}, kind: "Deployment", field: pod + "hostUsers", want: `false`},
		"PodSpecExtra":  {reason: "another field of the pod", sets: []string{`global.podSpecExtra.runtimeClassName="gvisor"`}, kind: "Deployment", field: pod + "runtimeClassName", want: `"gvisor"`},
		"PodSpecBoth":   {reason: "fields for all modules and for one are merged", sets: []string{`global.podSpecExtra.runtimeClassName="gvisor"`, `provider-aws.podSpecExtra.schedulerName="own"`}, kind: "Deployment", field: pod + "runtimeClassName", want: `"gvisor"`},
		"Deployment":    {reason: "annotations of the Deployment", sets: []string{`global.deploymentAnnotations.a="b"`}, kind: "Deployment", field: "metadata.annotations", want: `{"a":"b"}`},
		"History":       {reason: "the number of old ReplicaSets", sets: []string{`global.revisionHistoryLimit=0`}, kind: "Deployment", field: "spec.revisionHistoryLimit", want: `0`},
		"Strategy": {
			reason: "the strategy that is set replaces that of the chart", sets: []string{`global.strategy.rollingUpdate.maxSurge="50%"`},
			kind: "Deployment", field: "spec.strategy", want: `{"rollingUpdate":{"maxSurge":"50%"}}`,
		},
		"StrategyNoLeader": {
			reason: "Recreate works without leader election", sets: []string{`global={"leaderElection":{"enabled":false},"strategy":{"type":"Recreate"}}`},
			kind: "Deployment", field: "spec.strategy", want: `{"type":"Recreate"}`,
		},
		"MinAvailable": {
			reason: "a budget has one of minAvailable and maxUnavailable", sets: []string{`global={"replicaCount":3,"podDisruptionBudget":{"minAvailable":"66%"}}`},
			kind: "PodDisruptionBudget", field: "spec", want: `{"minAvailable":"66%","selector":{"matchLabels":{"app.kubernetes.io/instance":"direct-secrets","app.kubernetes.io/name":"provider-aws"}},"unhealthyPodEvictionPolicy":"AlwaysAllow"}`,
		},
		"MinNumber":     {reason: "a number stays a number", sets: []string{`global={"replicaCount":3,"podDisruptionBudget":{"minAvailable":2}}`}, kind: "PodDisruptionBudget", field: "spec.minAvailable", want: `2`},
		"MinOneReplica": {reason: "one replica has no budget that could block a node", sets: []string{`global.podDisruptionBudget.minAvailable=1`}, kind: "Deployment", field: "spec.replicas", want: `1`},
		"AccountLabels": {reason: "labels of the ServiceAccount", sets: []string{`global.serviceAccount.labels.a="b"`}, kind: "ServiceAccount", field: "metadata.labels.a", want: `"b"`},
		"Service":       {reason: "annotations of the Service", sets: []string{`global.metrics.service.annotations.a="b"`}, kind: "Service", field: "metadata.annotations", want: `{"a":"b"}`},
		"Families":      {reason: "IP families of the Service", sets: []string{`global.metrics.service.ipFamilies=["IPv6","IPv4"]`}, kind: "Service", field: "spec.ipFamilies", want: `["IPv6","IPv4"]`},
		"FamilyPolicy":  {reason: "the IP family policy of the Service", sets: []string{`global.metrics.service.ipFamilyPolicy="PreferDualStack"`}, kind: "Service", field: "spec.ipFamilyPolicy", want: `"PreferDualStack"`},
		"Monitor": {
			reason: "the timeout and honorLabels of a scrape", sets: []string{`global.metrics.serviceMonitor={"enabled":true,"scrapeTimeout":"5s","honorLabels":true}`},
			kind: "ServiceMonitor", field: "spec.endpoints", want: `[{"honorLabels":true,"port":"metrics","scrapeTimeout":"5s"}]`,
		},
		"MonitorNamespace": {reason: "the namespace of the ServiceMonitor", sets: []string{`global.metrics.serviceMonitor={"enabled":true,"namespace":"monitoring"}`}, kind: "ServiceMonitor", field: "metadata.namespace", want: `"monitoring"`},
		"MonitorTarget":    {reason: "it still selects the Service", sets: []string{`global.metrics.serviceMonitor={"enabled":true,"namespace":"monitoring"}`}, kind: "ServiceMonitor", field: "spec.namespaceSelector", want: `{"matchNames":["direct-secrets"]}`},
		"MonitorNotes":     {reason: "annotations of the ServiceMonitor", sets: []string{`global.metrics.serviceMonitor={"enabled":true,"annotations":{"a":"b"}}`}, kind: "ServiceMonitor", field: "metadata.annotations", want: `{"a":"b"}`},
		"Dashboard":        {reason: "the folder of the dashboard", sets: []string{`grafanaDashboard={"enabled":true,"annotations":{"grafana_folder":"Secrets"}}`}, kind: "ConfigMap", field: "metadata.annotations", want: `{"grafana_folder":"Secrets"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := of(render(t, umbrella, enable([]string{"provider-aws"}, tc.sets...)), tc.kind)
			if len(found) != 1 {
				t.Fatalf("%s: %d objects are a %s, want 1", tc.reason, len(found), tc.kind)
			}
			got, _, err := unstructured.NestedFieldNoCopy(found[0].Object, strings.Split(tc.field, ".")...)
			must(t, err)
			raw, err := json.Marshal(got)
			must(t, err)
			if diff := cmp.Diff(tc.want, string(raw)); diff != "" {
				t.Errorf("%s: %s: -want, +got:\n%s", tc.reason, tc.field, diff)
			}
		})
	}
}

// TestAnnotations checks that common annotations are on all objects but CRDs, replace no annotation of one Kind, and that
// CRDs have annotations of their own.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	sets := append([]string{
		`global.commonAnnotations={"team":"platform","on":"all"}`, `provider-aws.commonAnnotations.team="cloud"`, `global.serviceAccount.annotations.team="accounts"`,
		`global.crds={"aggregateRoles":true,"annotations":{"argocd.argoproj.io/sync-options":"Replace=true","note":"two\nlines"}}`, `admissionPolicies.protectCRDs.enabled=true`,
	}, everything...)
	for _, o := range render(t, umbrella, enable(modules, sets...)) {
		want := map[string]string{"team": "platform", "on": "all"}
		if o.GetLabels()["app.kubernetes.io/name"] == "provider-aws" {
			want["team"] = "cloud"
		}
		switch o.GetKind() {
		case "ServiceAccount":
			want["team"] = "accounts"
		case "CustomResourceDefinition":
			want = map[string]string{
				"argocd.argoproj.io/sync-options": "Replace=true", "note": "two\nlines", "helm.sh/resource-policy": "keep",
				"controller-gen.kubebuilder.io/version": o.GetAnnotations()["controller-gen.kubebuilder.io/version"],
			}
		}
		if diff := cmp.Diff(want, o.GetAnnotations()); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name(o), diff)
		}
	}
}

// TestWithoutRBAC checks that nothing of RBAC is rendered, in every scope, by the umbrella chart and by each other one.
func TestWithoutRBAC(t *testing.T) {
	t.Parallel()
	for scope, sets := range everyScope {
		sets = slices.Concat(sets, everything, []string{`global.metrics.auth=true`, `global.metrics.tls.secretName="cert"`, `global.rbac.create=false`})
		for _, o := range render(t, umbrella, enable(modules, sets...)) {
			if strings.HasPrefix(o.GetAPIVersion(), "rbac.authorization.k8s.io/") {
				t.Errorf("%s: %s is rendered", scope, name(o))
			}
		}
	}
	for _, chart := range append(slices.Clone(modules), "crds") {
		for _, o := range render(t, chart, enable(nil, `global.rbac.create=false`, `global.crds.aggregateRoles=true`)) {
			if strings.HasPrefix(o.GetAPIVersion(), "rbac.authorization.k8s.io/") {
				t.Errorf("the chart %s alone: %s is rendered", chart, name(o))
			}
		}
	}
}

// TestNamespaceOverride checks that another namespace takes the place of the release's namespace everywhere.
func TestNamespaceOverride(t *testing.T) {
	t.Parallel()
	sets := slices.Concat(everything, []string{
		`admissionPolicies={"protectParts":{"enabled":true},"protectStatus":{"enabled":true}}`, `global.crds.enabled=false`,
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
