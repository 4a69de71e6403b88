package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/e2e/commands"
)

// staticManifests applies the kustomizations of the CRDs and of all modules together, as a user without Helm does. They
// contain what the umbrella chart renders with its default values. Only Helm needs the annotation that makes it keep CRDs.
func staticManifests(t *testing.T) {
	shell := newShell(t)
	must(t, admin.Create(background, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	var built string
	for _, chart := range append([]string{"crds"}, modules...) {
		folder, err := filepath.Abs(chart)
		must(t, err)
		out, err := shell.Run(t.Context(), commands.Kubectl, "kustomize", folder)
		must(t, err)
		built += "\n---\n" + out
		_, err = shell.Run(t.Context(), commands.Kubectl, "apply", "--server-side", "-k", folder)
		must(t, err)
	}
	rendered, err := template(release, namespace, enable(modules))
	must(t, err)
	const keep = "    helm.sh/resource-policy: keep\n"
	want, got := byName(t, strings.ReplaceAll(rendered, keep, "")), byName(t, built)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the kustomizations differ from the chart: -chart, +kustomizations:\n%s", diff)
	}
}

// remoteBase matches a base in the repository.
var remoteBase = regexp.MustCompile(`https://github\.com/direct-secrets/direct-secrets//charts/(\S+)\?ref=\S+`)

// TestStaticManifestsPage builds the kustomization of the page, with the bases of this tree.
func TestStaticManifestsPage(t *testing.T) {
	t.Parallel()
	_, example, _ := strings.Cut(read(t, "../docs/operate/static-manifests.md"), "```yaml foreign\n")
	example, _, _ = strings.Cut(example, "```")
	folder := t.TempDir()
	here, err := filepath.Abs(".")
	must(t, err)
	back, err := filepath.Rel(folder, here)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), remoteBase.ReplaceAll([]byte(example), []byte(back+"/$1")), 0o600))
	out, err := newShell(t).Run(t.Context(), commands.Kubectl, "kustomize", folder)
	must(t, err)
	deployments := of(objectsOf(t, out), "Deployment")
	if len(deployments) != 1 {
		t.Fatalf("got %d Deployments", len(deployments))
	}
	d := decode[appsv1.Deployment](t, deployments[0])
	if image := d.Spec.Template.Spec.Containers[0].Image; *d.Spec.Replicas != 2 || !strings.HasPrefix(image, "registry.example.com/direct-secrets/provider-aws:") {
		t.Errorf("the example has no effect: %d replicas of %s", *d.Spec.Replicas, image)
	}
}

// byName returns the objects in YAML by Kind and name.
func byName(t *testing.T, out string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, o := range objectsOf(t, out) {
		raw, err := yaml.Marshal(o)
		must(t, err)
		all[name(o)] = string(raw)
	}
	return all
}
