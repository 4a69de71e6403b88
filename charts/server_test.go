package charts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// variants are values that together render all objects of the chart.
var variants = map[string][]string{
	"defaults": nil,
	"all": append([]string{
		`global.serviceAccountTokens={"enabled":true,"names":["app"]}`, `global.crds.aggregateRoles=true`,
		`global.imagePullSecrets=[{"name":"regcred"}]`, `global.priorityClassName="system-cluster-critical"`,
		`global.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway"}]`,
		`global.nodeSelector={"kubernetes.io/os":"linux"}`, `global.tolerations=[{"operator":"Exists"}]`,
		`global.affinity={"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"kubernetes.io/hostname"}}]}}`,
		`global.podAnnotations={"a":"b"}`, `global.podLabels={"c":"d"}`, `global.serviceAccount.annotations={"e":"f"}`,
		`global.hostAliases=[{"ip":"10.0.0.1","hostnames":["a"]}]`, `global.podSecurityContext.fsGroup=1000`, `global.securityContext.runAsUser=1000`,
		`global.commonLabels={"g":"h"}`, `extraObjects=[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"extra","namespace":"{{ .Release.Namespace }}"},"data":{"a":"b"}}]`,
		`global.proxy={"http":"http://p:1","https":"http://p:1","noProxy":["10.0.0.0/8"]}`, `global.extraCA={"configMap":"roots","key":"ca.crt"}`,
		`provider-aws.extraCA={"configMap":"","secret":"roots"}`,
		`global.networkPolicy={"enabled":true,"metricsFrom":[{"namespaceSelector":{}}],"egress":[{"ports":[{"port":443}]}]}`,
		`global.extraEnv=[{"name":"A","value":"b"}]`, `global.volumes=[{"name":"t","emptyDir":{}}]`, `global.volumeMounts=[{"name":"t","mountPath":"/t"}]`,
		`global.metrics={"serviceMonitor":{"enabled":true,"interval":"30s","labels":{"prometheus":"main"},"relabelings":[{"sourceLabels":["__meta_kubernetes_pod_node_name"],"targetLabel":"node"}],` +
			`"metricRelabelings":[{"action":"drop","sourceLabels":["__name__"],"regex":"go_.*"}]}}`, `global.podDisruptionBudget.maxUnavailable="50%"`,
		`global={"hostUsers":false,"dnsPolicy":"None","dnsConfig":{"nameservers":["1.1.1.1"]},"strategy":{"type":"Recreate"},"podSpecExtra":{"schedulerName":"a","initContainers":[{"name":"a","image":"a","restartPolicy":"Always",` +
			`"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}}`, `provider-aws.podDisruptionBudget.minAvailable=1`,
		`global.metrics.service={"ipFamilyPolicy":"SingleStack","ipFamilies":["IPv4"]}`, `global.metrics.serviceMonitor.scrapeTimeout="5s"`, `global.metrics.serviceMonitor.honorLabels=true`,
		`prometheusRule.labels={"prometheus":"main"}`, `grafanaDashboard.labels={"team":"platform"}`,
		`admissionPolicies={"protectCRDs":{"enabled":true},"clusterKinds":{"enabled":true,"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"NotIn","values":["b"]},{"key":"c","operator":"Exists"}]}},` +
			`"protectParts":{"enabled":true,"serviceAccounts":["other:sa"]}}`,
	}, everything...),
	"scope": append([]string{`global.scope.namespaces=["default"]`, `global.serviceAccountTokens.enabled=true`, `global.presenceNamespace="kube-public"`}, everything...),
}

// monitoring are the Kinds of the Prometheus operator, whose CRDs are missing. Their Go types are used instead.
var monitoring = map[string]func(*testing.T, *unstructured.Unstructured){
	"ServiceMonitor": func(t *testing.T, o *unstructured.Unstructured) { decode[monitoringv1.ServiceMonitor](t, o) },
	"PrometheusRule": func(t *testing.T, o *unstructured.Unstructured) {
		if rule := decode[monitoringv1.PrometheusRule](t, o); len(rule.Spec.Groups) == 0 {
			t.Errorf("%s has no rules", name(o))
		}
	},
}

// TestTheAPIServerAcceptsWhatIsRendered checks that the API server accepts all objects, and the pods with the strictest of the Pod
// Security Standards.
func TestTheAPIServerAcceptsWhatIsRendered(t *testing.T) {
	restricted := newNamespace(t, "restricted", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	for _, account := range modules {
		must(t, admin.Create(background, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: restricted, Name: release + "-" + account}}))
	}
	for variant, sets := range variants {
		t.Run(variant, func(t *testing.T) {
			seen := map[string]bool{}
			in := newNamespace(t, "dry-run-"+variant, nil)
			out, err := template(release, in, enable(modules, sets...))
			must(t, err)
			for _, o := range objectsOf(t, out) {
				seen[o.GetKind()] = true
				if check, ok := monitoring[o.GetKind()]; ok {
					check(t, o)
					continue
				}
				err := admin.Patch(background, o.DeepCopy(), client.Apply, client.DryRunAll, client.FieldOwner("test"), client.FieldValidation(metav1.FieldValidationStrict)) //nolint:staticcheck // Typed apply does not take what is read from YAML.
				if err != nil {
					t.Errorf("%s: %v", name(o), err)
				}
				if o.GetKind() == "Deployment" {
					checkPod(t, restricted, decode[appsv1.Deployment](t, o).Spec.Template)
				}
			}
			if variant == "all" {
				for _, kind := range []string{"CustomResourceDefinition", "Deployment", "ClusterRole", "Role", "ValidatingAdmissionPolicy", "PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "PrometheusRule", "ConfigMap", "Service"} {
					if !seen[kind] {
						t.Errorf("no %s is rendered, so this proves nothing about it", kind)
					}
				}
			}
		})
	}
}

// newNamespace creates a namespace with labels and returns its name.
func newNamespace(t *testing.T, name string, labels map[string]string) string {
	t.Helper()
	must(t, client.IgnoreAlreadyExists(admin.Create(background, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})))
	return name
}

// checkPod creates a pod without effect.
func checkPod(t *testing.T, in string, p corev1.PodTemplateSpec) {
	t.Helper()
	c := p.Spec.Containers[0]
	p.Spec.PriorityClassName = "" // One of the variants has a class of system pods.
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: c.Name, Labels: p.Labels}, Spec: p.Spec}
	if err := admin.Create(background, o, client.DryRunAll); err != nil {
		t.Errorf("the pod of %s: %v", c.Name, err)
	}
	if !*c.SecurityContext.ReadOnlyRootFilesystem || c.LivenessProbe == nil || c.ReadinessProbe == nil || c.Command != nil || len(c.Resources.Requests) == 0 {
		t.Errorf("a pod has a read-only root, probes, requests, and runs what its image says: %+v", c)
	}
	o.Spec.Containers = []corev1.Container{{Name: "unrestricted", Image: "a"}}
	if err := admin.Create(background, o, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("a pod that is not restricted: got %v, want a rejection, or this test proves nothing", err)
	}
}

func TestMonitoringIsWhole(t *testing.T) {
	t.Parallel()
	objects := render(t, umbrella, enable(modules, everything...))
	type group = map[string]any
	var files, inRule struct {
		Groups []group `json:"groups"`
	}
	must(t, yaml.Unmarshal([]byte(read(t, umbrella+"/files/alerts.yaml")), &files))
	raw, err := yaml.Marshal(of(objects, "PrometheusRule")[0].Object["spec"])
	must(t, err)
	must(t, yaml.Unmarshal(raw, &inRule))
	if diff := cmp.Diff(files.Groups, inRule.Groups); diff != "" {
		t.Errorf("the rules are those of files/alerts.yaml: -want, +got:\n%s", diff)
	}
	var maps []corev1.ConfigMap
	for _, o := range of(objects, "ConfigMap") {
		maps = append(maps, decode[corev1.ConfigMap](t, o))
	}
	if len(maps) != 1 || maps[0].Labels["grafana_dashboard"] != "1" ||
		strings.TrimSpace(maps[0].Data["direct-secrets.json"]) != strings.TrimSpace(read(t, umbrella+"/files/dashboard.json")) {
		t.Errorf("the dashboard is files/dashboard.json in one ConfigMap that Grafana's sidecar finds, got %d: %v", len(maps), maps)
	}
	for _, o := range of(objects, "ServiceMonitor") {
		monitor := decode[monitoringv1.ServiceMonitor](t, o)
		found := 0
		for _, s := range of(objects, "Service") {
			service, matches := decode[corev1.Service](t, s), true
			for k, v := range monitor.Spec.Selector.MatchLabels {
				matches = matches && service.Labels[k] == v
			}
			if matches && service.Spec.Ports[0].Name == monitor.Spec.Endpoints[0].Port {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s finds %d Services, want 1", name(o), found)
		}
	}
}
