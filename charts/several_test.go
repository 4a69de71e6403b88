package charts

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/e2e/helm"
)

// install installs or upgrades a release with one module and without CRDs.
func install(r helm.Release, sets ...string) error {
	r.Chart, r.Values = umbrella, enable([]string{"provider-aws"}, append(slices.Clone(sets), `global.replicaCount=0`, `global.crds.enabled=false`)...)
	_, err := helmClient.Upgrade(background, r)
	return err
}

// severalReleases checks the statements of docs/operate/several-releases.md on several releases in a
// cluster.
func severalReleases(t *testing.T) {
	for _, ns := range []string{"team-a", "team-b", "shop", "jobs", "presence"} {
		newNamespace(t, ns, nil)
	}
	must(t, install(helm.Release{Name: "secrets", Namespace: "team-a"}, `global.scope.namespaces=["shop"]`, `global.presenceNamespace="presence"`))
	cases := []struct {
		reason, release string
		sets            []string
		want            []string
	}{
		{
			reason: "equal names in a namespace that both releases serve", release: "secrets", sets: []string{`global.scope.namespaces=["shop","jobs"]`},
			want: []string{`Role "secrets-provider-aws" in namespace "shop" exists`, `"meta.helm.sh/release-namespace" must equal "team-b": current value is "team-a"`},
		},
		{
			reason: "equal names in the shared namespace of Leases", release: "secrets", sets: []string{`global.scope.namespaces=["jobs"]`, `global.presenceNamespace="presence"`},
			want: []string{`Role "secrets-provider-aws-leases" in namespace "presence" exists`},
		},
		{
			reason: "another name", release: "team-b", sets: []string{`global.scope.namespaces=["shop","jobs"]`, `global.presenceNamespace="presence"`},
		},
	}
	for _, tc := range cases {
		err := install(helm.Release{Name: tc.release, Namespace: "team-b"}, tc.sets...)
		if err != nil && len(tc.want) == 0 {
			t.Errorf("%s: the release is rejected: %v", tc.reason, err)
		}
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want one that contains %q", tc.reason, err, want)
			}
		}
	}
	subjectsOf := func() []rbacv1.Subject {
		b := &rbacv1.RoleBinding{}
		must(t, admin.Get(background, client.ObjectKey{Namespace: "shop", Name: "secrets-provider-aws"}, b))
		return b.Subjects
	}
	account := func(in string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: in, Name: "secrets-provider-aws"}}
	}
	if diff := cmp.Diff(account("team-a"), subjectsOf()); diff != "" {
		t.Errorf("the first release keeps its rights: -want, +got:\n%s", diff)
	}
	must(t, install(helm.Release{Name: "secrets", Namespace: "team-b", TakeOwnership: true}, `global.scope.namespaces=["shop"]`))
	if diff := cmp.Diff(account("team-b"), subjectsOf()); diff != "" {
		t.Errorf("with --take-ownership the second has taken them, and the first has none: -want, +got:\n%s", diff)
	}
}

// releasesInOneNamespace checks the statements of docs/operate/several-releases.md on releases that share a
// namespace.
func releasesInOneNamespace(t *testing.T) {
	in := newNamespace(t, "platform", nil)
	for _, ns := range []string{"shop", "jobs"} {
		newNamespace(t, ns, nil)
	}
	const same = "runs it for the same namespaces and controllerClass"
	steps := []struct {
		reason, release string
		sets            []string
		want            string
	}{
		{reason: "the first", release: "one", sets: []string{`global.scope.namespaces=["shop"]`}},
		{reason: "a release that would serve the same objects", release: "two", sets: []string{`global.scope.namespaces=["jobs","shop"]`}, want: "provider-aws: release one in namespace platform " + same},
		{reason: "a release for all namespaces", release: "two", want: same},
		{reason: "other namespaces", release: "two", sets: []string{`global.scope.namespaces=["jobs"]`}},
		{reason: "a release with another class for all namespaces", release: "blue", sets: []string{`global.controllerClass="blue"`}},
		{reason: "a second release with that class", release: "azure", sets: []string{`global.controllerClass="blue"`, `global.scope.namespaces=["shop"]`}, want: "release blue in namespace platform " + same},
		{reason: "an upgrade of the same release", release: "two", sets: []string{`global.scope.namespaces=["jobs"]`, `global.concurrency=7`}},
		{reason: "an upgrade that would serve the same objects", release: "two", sets: []string{`global.scope.namespaces=["shop"]`}, want: "release one in namespace platform " + same},
		{reason: "a release without replicas, with a name that would be a boolean in YAML", release: "off", sets: []string{`global.replicaCount=0`, `global.scope.namespaces=["kube-public"]`}},
		{reason: "a release without replicas, in the place of one that runs", release: "on", sets: []string{`global.scope.namespaces=["kube-public"]`}},
	}
	for _, s := range steps {
		values := enable([]string{"provider-aws"}, append([]string{`global.crds.enabled=false`}, s.sets...)...)
		_, err := helmClient.Upgrade(background, helm.Release{Name: s.release, Namespace: in, Chart: umbrella, Values: values})
		if (err != nil) != (s.want != "") || err != nil && !strings.Contains(err.Error(), s.want) {
			t.Errorf("%s: release %s: got %v, want an error that contains %q, or none", s.reason, s.release, err, s.want)
		}
	}
	var deployments appsv1.DeploymentList
	must(t, admin.List(background, &deployments, client.InNamespace(in)))
	got := map[string]string{} // This maps each Deployment to its Lease.
	for _, d := range deployments.Items {
		for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
			if id, ok := strings.CutPrefix(arg, "--leader-election-id="); ok {
				got[d.Name] = id
			}
		}
	}
	want := map[string]string{}
	for _, release := range []string{"one", "two", "blue", "off", "on"} {
		want[release+"-provider-aws"] = release + ".provider-aws.direct-secrets.io"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("each release has its own Lease: -want, +got:\n%s", diff)
	}
}

// deletedServedNamespace checks the statements of docs/operate/several-releases.md on a namespace that is
// deleted.
func deletedServedNamespace(t *testing.T) {
	newNamespace(t, "team", nil)
	newNamespace(t, "shop", nil)
	jobs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: newNamespace(t, "jobs", nil)}}
	serve := func(namespaces string) error {
		return install(helm.Release{Name: "tenant", Namespace: "team"}, `global.scope.namespaces=`+namespaces)
	}
	role := client.ObjectKey{Namespace: "jobs", Name: "tenant-provider-aws"}

	must(t, serve(`["shop","jobs"]`))
	must(t, admin.Get(background, role, &rbacv1.Role{}))
	must(t, serve(`["shop"]`))
	if err := admin.Get(background, role, &rbacv1.Role{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("a namespace that is no longer served still has the Role: %v", err)
	}

	must(t, serve(`["shop","jobs"]`))
	must(t, admin.Delete(background, jobs))
	controlplane.Eventually(t, func() string {
		if err := admin.Get(background, client.ObjectKeyFromObject(jobs), &corev1.Namespace{}); client.IgnoreNotFound(err) != nil || err == nil {
			return "the namespace still exists"
		}
		return ""
	})
	if err := serve(`["shop","jobs"]`); err == nil || !strings.Contains(err.Error(), `namespaces "jobs" not found`) {
		t.Errorf("an upgrade for a deleted namespace: got %v, want an error that names it", err)
	}
	if err := serve(`["shop"]`); err != nil {
		t.Errorf("an upgrade without the deleted namespace: %v", err)
	}
	newNamespace(t, "jobs", nil)
	must(t, serve(`["shop","jobs"]`))
	must(t, admin.Get(background, role, &rbacv1.Role{}))
}
