package charts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// openShift returns the values for OpenShift, with all modules and without CRDs.
func openShift(t *testing.T) map[string]any {
	t.Helper()
	values, file := enable(modules, noCRDs), map[string]any{}
	must(t, yaml.Unmarshal([]byte(read(t, umbrella+"/values-openshift.yaml")), &file))
	merge(values, file)
	return values
}

// TestOpenShift renders the values for OpenShift. Its security context constraints restricted-v2 reject pods
// that set a user or a group, or other capabilities or seccomp profiles. See
// https://docs.redhat.com/en/documentation/openshift_container_platform/4.19/html/authentication_and_authorization/managing-pod-security-policies
func TestOpenShift(t *testing.T) {
	t.Parallel()
	objects := render(t, umbrella, openShift(t))
	pods := of(objects, "Deployment")
	if len(pods) != len(modules) {
		t.Fatalf("there are %d Deployments, want %d", len(pods), len(modules))
	}
	yes, no := true, false
	for _, o := range pods {
		spec := decode[appsv1.Deployment](t, o).Spec.Template.Spec
		wantPod := &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		if diff := cmp.Diff(wantPod, spec.SecurityContext); diff != "" {
			t.Errorf("%s: the pod leaves users and groups to OpenShift: -want, +got:\n%s", name(o), diff)
		}
		wantContainer := &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
		if diff := cmp.Diff(wantContainer, spec.Containers[0].SecurityContext); diff != "" {
			t.Errorf("%s: so does the container: -want, +got:\n%s", name(o), diff)
		}
		ca := of(objects, "ConfigMap")
		if len(ca) != 1 || ca[0].GetNamespace() != namespace || ca[0].GetLabels()["config.openshift.io/inject-trusted-cabundle"] != "true" {
			t.Fatalf("want one ConfigMap with the label that OpenShift fills, got %v", names(ca))
		}
		var mounted []string
		for _, v := range spec.Volumes {
			mounted = append(mounted, v.ConfigMap.Name+"/"+v.ConfigMap.Items[0].Key)
		}
		if diff := cmp.Diff([]string{ca[0].GetName() + "/ca-bundle.crt"}, mounted); diff != "" {
			t.Errorf("%s trusts what OpenShift fills in: -want, +got:\n%s", name(o), diff)
		}
	}
	if got := len(of(objects, "ServiceMonitor")); got != len(modules) {
		t.Errorf("there are %d ServiceMonitors, want one for each module", got)
	}
}
