package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/e2e/helm"
)

// list returns all objects of a Kind in the cluster with the labels.
func list(t *testing.T, group, version, kind string, labels map[string]string) []*unstructured.Unstructured {
	t.Helper()
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind + "List"})
	must(t, admin.List(background, found, client.MatchingLabels(labels)))
	var out []*unstructured.Unstructured
	for i := range found.Items {
		out = append(out, &found.Items[i])
	}
	return out
}

// ours returns the objects of a release in the cluster, without CRDs.
func ours(t *testing.T) []string {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, k := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "ConfigMap"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	} {
		out = append(out, list(t, k.Group, k.Version, k.Kind, map[string]string{"app.kubernetes.io/part-of": "direct-secrets"})...)
	}
	return names(out)
}

// crds returns the groups of our CRDs in the cluster.
func crds(t *testing.T) []string {
	t.Helper()
	groups := map[string]bool{}
	for _, o := range list(t, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", nil) {
		if group, _, _ := unstructured.NestedString(o.Object, "spec", "group"); strings.HasSuffix(group, "direct-secrets.io") {
			groups[group] = true
		}
	}
	return slices.Sorted(maps.Keys(groups))
}

// TestReleases installs releases, and applies the manifests, in a cluster of its own, in which CRDs and policies stay.
func TestReleases(t *testing.T) {
	c, err := controlplane.Start(background)
	must(t, err)
	before := plane
	t.Cleanup(func() { must(t, errors.Join(use(before), c.Stop())) })
	must(t, use(c))
	t.Run("Lifecycle", lifecycle)
	t.Run("Helm3", lifecycleOfHelm3)
	t.Run("Several", severalReleases)
	t.Run("OneNamespace", releasesInOneNamespace)
	t.Run("DeletedNamespace", deletedServedNamespace)
	t.Run("Manifests", staticManifests)
	t.Run("Policies", admissionPolicies)
}

// lifecycle installs, upgrades and uninstalls a release in a real cluster.
func lifecycle(t *testing.T) {
	in := newNamespace(t, "life", nil)
	upgrade := func(modules ...string) string {
		t.Helper()
		notes, err := helmClient.Upgrade(background, helm.Release{Name: release, Namespace: in, Chart: umbrella, Values: enable(modules, `global.replicaCount=0`)})
		must(t, err)
		return notes
	}

	if notes := upgrade(); !strings.Contains(notes, "--set provider-vault.enabled=true") {
		t.Errorf("a release without a module says how to enable one, got:\n%s", notes)
	}
	if diff := cmp.Diff([]string{"direct-secrets.io"}, crds(t)); diff != "" {
		t.Errorf("no module leaves a CRD before it was enabled: -want, +got:\n%s", diff)
	}
	if got := ours(t); len(got) > 0 {
		t.Errorf("no module is enabled, but there are %v", got)
	}

	notes := upgrade("provider-aws", "generator-password", "provider-vault")
	if strings.Contains(notes, "WAITING") || !strings.Contains(notes, "runs generator-password, provider-aws, provider-vault in namespace life") {
		t.Errorf("the notes tell what runs, and that nothing waits, got:\n%s", notes)
	}
	want := []string{"aws.direct-secrets.io", "direct-secrets.io", "generator.direct-secrets.io", "vault.direct-secrets.io"}
	if diff := cmp.Diff(want, crds(t)); diff != "" {
		t.Errorf("CRDs of the modules that are enabled: -want, +got:\n%s", diff)
	}
	held := holdObjects(t, in)

	notes = upgrade("provider-vault")
	if diff := cmp.Diff(want, crds(t)); diff != "" {
		t.Errorf("CRDs stay when modules are disabled: -want, +got:\n%s", diff)
	}
	for _, n := range ours(t) {
		if strings.Contains(n, "provider-aws") || strings.Contains(n, "generator-password") {
			t.Errorf("%s is of a module that is disabled", n)
		}
	}
	commands := held.check(t, notes)
	runCommands(t, commands)
	if notes := upgrade("provider-vault"); strings.Contains(notes, "kubectl patch pushsecrets.direct-secrets.io -n life aws-push ") {
		t.Errorf("what was released waits no more, got:\n%s", notes)
	}

	size := 0
	for _, s := range list(t, "", "v1", "Secret", map[string]string{"owner": "helm", "name": release}) {
		raw, err := s.MarshalJSON()
		must(t, err)
		size = max(size, len(raw))
	}
	if size == 0 || size > 700<<10 {
		t.Errorf("Helm's record of the release has %d bytes; a Secret takes a MiB", size)
	}

	out, err := helmClient.Uninstall(release, in)
	must(t, err)
	if !strings.Contains(out, "externalsecrets.direct-secrets.io") {
		t.Errorf("helm uninstall names the CRDs that it keeps, got:\n%s", out)
	}
	if diff := cmp.Diff(want, crds(t)); diff != "" {
		t.Errorf("CRDs stay without the release: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string(nil), ours(t)); diff != "" {
		t.Errorf("nothing else stays: -want, +got:\n%s", diff)
	}
	held.stay(t)
	if notes := upgrade("provider-aws", "provider-vault"); !strings.Contains(notes, "provider-aws") {
		t.Errorf("the release comes back over the CRDs that stayed, got:\n%s", notes)
	}
	_, err = helmClient.Uninstall(release, in)
	must(t, err)
}

// objects are objects that a test has created.
type objects []client.Object

// holdObjects creates PushSecrets and parts with the finalizers of modules, and a target.
func holdObjects(t *testing.T, in string) objects {
	t.Helper()
	push := `{apiVersion: direct-secrets.io/v1alpha1, kind: PushSecret, metadata: {name: %s, finalizers: [%s]},
spec: {deletionPolicy: Delete, storeRefs: [{kind: VaultKV, name: a}], selector: {secret: {name: a}}}}`
	secret := `{apiVersion: v1, kind: Secret, metadata: {name: %s, finalizers: [%s], labels: {direct-secrets.io/part: "true"}}}`
	es := object(t, in, `{apiVersion: direct-secrets.io/v1alpha1, kind: ExternalSecret, metadata: {name: es}, spec: {dataFrom: [{sourceRef: {generatorRef: {kind: Password, name: a}}}]}}`)
	all := objects{
		object(t, in, push, "aws-push", "a.example.com/x, aws.direct-secrets.io/pushsecret"),
		object(t, in, push, "aws-class", "aws.direct-secrets.io/pushsecret-0a1b2c3d"),
		object(t, in, push, "vault-push", "vault.direct-secrets.io/pushsecret"),
		object(t, in, secret, "aws-part", "aws.direct-secrets.io/part"),
		object(t, in, secret, "clean-part", "a.example.com/x"),
		es,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "target", Labels: map[string]string{"aws.direct-secrets.io/managed": "true"}}, Data: map[string][]byte{"a": []byte("b")}},
	}
	for _, o := range all {
		must(t, admin.Create(background, o))
	}
	status := `{"status":{"parts":[{"module":"aws.direct-secrets.io","name":"aws-part"},{"module":"generator.direct-secrets.io","name":"clean-part"}]}}`
	must(t, admin.Status().Patch(background, es, client.RawPatch("application/merge-patch+json", []byte(status))))
	return all
}

// patch matches the commands in the notes that remove finalizers.
var patch = regexp.MustCompile(`kubectl patch (\S+) -n (\S+) (\S+) --type=json -p '(.*)'`)

// check checks the notes and returns their commands.
func (objects) check(t *testing.T, notes string) [][]string {
	t.Helper()
	for _, want := range []string{"WAITING: provider-aws is not enabled, and 3 objects", "PushSecret life/aws-push", "PushSecret life/aws-class", "Secret life/aws-part of ExternalSecret es", "deletionPolicy: None"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
	for _, not := range []string{"vault-push", "clean-part", "WAITING: generator-password", "WAITING: provider-gcp"} {
		if strings.Contains(notes, not) {
			t.Errorf("the notes say %q, which does not wait:\n%s", not, notes)
		}
	}
	return patch.FindAllStringSubmatch(notes, -1)
}

// runCommands does the same as the commands, without a shell.
func runCommands(t *testing.T, commands [][]string) {
	t.Helper()
	var did []string
	for _, c := range commands {
		kind := map[string]string{"pushsecrets.direct-secrets.io": "{apiVersion: direct-secrets.io/v1alpha1, kind: PushSecret, metadata: {name: %s}}", "secrets": "{apiVersion: v1, kind: Secret, metadata: {name: %s}}"}[c[1]]
		o := object(t, c[2], kind, c[3])
		must(t, admin.Patch(background, o, client.RawPatch("application/json-patch+json", []byte(c[4]))))
		did = append(did, fmt.Sprint(c[1], " ", c[3], " ", o.GetFinalizers()))
	}
	slices.Sort(did)
	if diff := cmp.Diff([]string{"pushsecrets.direct-secrets.io aws-class []", "pushsecrets.direct-secrets.io aws-push [a.example.com/x]", "secrets aws-part []"}, did); diff != "" {
		t.Errorf("each command takes off the finalizer of the module, and no other: -want, +got:\n%s", diff)
	}
}

func (all objects) stay(t *testing.T) {
	t.Helper()
	for _, o := range all {
		uid := o.GetUID()
		must(t, admin.Get(background, client.ObjectKeyFromObject(o), o))
		if o.GetUID() != uid || !o.GetDeletionTimestamp().IsZero() {
			t.Errorf("%s has changed since the release was uninstalled", o.GetName())
		}
	}
}

func TestLint(t *testing.T) {
	charts, err := filepath.Glob("*/Chart.yaml")
	must(t, err)
	for _, c := range charts {
		if dir := filepath.Dir(c); dir != "library" { // A library renders nothing by itself.
			if err := helm.Lint(dir); err != nil {
				t.Errorf("%s: %v", dir, err)
			}
		}
	}
}

// TestPackagesAreReproducible packages the charts twice.
func TestPackagesAreReproducible(t *testing.T) {
	t.Parallel()
	var folders [2]string
	for i := range folders {
		folders[i] = t.TempDir()
		must(t, helm.PackageAll(".", folders[i], time.Unix(1700000000, 0)))
	}
	found, err := filepath.Glob(filepath.Join(folders[0], "*.tgz"))
	must(t, err)
	if len(found) != len(modules)+2 {
		t.Errorf("%d packages, want one of each module, the CRDs and the umbrella: %v", len(found), found)
	}
	for _, f := range found {
		a, err := os.ReadFile(f)
		must(t, err)
		b, err := os.ReadFile(filepath.Join(folders[1], filepath.Base(f)))
		must(t, err)
		if !bytes.Equal(a, b) {
			t.Errorf("%s has other bytes the second time", filepath.Base(f))
		}
		for _, name := range filesIn(t, a) {
			if base := filepath.Base(name); base == "kustomization.yaml" || base == "manifests.yaml" {
				t.Errorf("%s contains %s, which is for users without Helm", filepath.Base(f), name)
			}
		}
	}
	packed := render(t, filepath.Join(folders[0], "direct-secrets-"+appVersion(t)+".tgz"), enable(modules, everything...))
	if diff := cmp.Diff(render(t, umbrella, enable(modules, everything...)), packed); diff != "" {
		t.Errorf("a package renders what the folder renders: -want, +got:\n%s", diff)
	}
}

// filesIn returns the names of the files in a package.
func filesIn(t *testing.T, raw []byte) (names []string) {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(raw))
	must(t, err)
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		must(t, err)
		names = append(names, header.Name)
	}
}
