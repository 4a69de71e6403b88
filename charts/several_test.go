package charts

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/e2e/helm"
)

// install installs or upgrades a release with one module and without CRDs.
func install(r helm.Release, sets ...string) error {
	r.Chart, r.Values = umbrella, enable([]string{"provider-aws"}, append(slices.Clone(sets), `global.replicas=0`, `global.crds.enabled=false`)...)
	_, err := helmClient.Upgrade(background, r)
	return err
}

// TestSeveralReleases: what docs/multitenancy.md says of releases beside each other.
func TestSeveralReleases(t *testing.T) {
	ownCluster(t)
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
			reason: "equal names in a namespace that both serve", release: "secrets", sets: []string{`global.scope.namespaces=["shop","jobs"]`},
			want: []string{`Role "secrets-provider-aws" in namespace "shop" exists`, `"meta.helm.sh/release-namespace" must equal "team-b": current value is "team-a"`},
		},
		{
			reason: "equal names in the namespace of Leases that both share", release: "secrets", sets: []string{`global.scope.namespaces=["jobs"]`, `global.presenceNamespace="presence"`},
			want: []string{`Role "secrets-provider-aws-leases" in namespace "presence" exists`},
		},
		{
			reason: "a name of its own", release: "team-b", sets: []string{`global.scope.namespaces=["shop","jobs"]`, `global.presenceNamespace="presence"`},
		},
	}
	for _, tc := range cases {
		err := install(helm.Release{Name: tc.release, Namespace: "team-b"}, tc.sets...)
		if err != nil && len(tc.want) == 0 {
			t.Errorf("%s: it is refused: %v", tc.reason, err)
		}
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want one that says %q", tc.reason, err, want)
			}
		}
	}
	who := func() []rbacv1.Subject {
		b := &rbacv1.RoleBinding{}
		must(t, admin.Get(background, client.ObjectKey{Namespace: "shop", Name: "secrets-provider-aws"}, b))
		return b.Subjects
	}
	account := func(in string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: in, Name: "secrets-provider-aws"}}
	}
	if diff := cmp.Diff(account("team-a"), who()); diff != "" {
		t.Errorf("the first release keeps its rights: -want, +got:\n%s", diff)
	}
	must(t, install(helm.Release{Name: "secrets", Namespace: "team-b", TakeOwnership: true}, `global.scope.namespaces=["shop"]`))
	if diff := cmp.Diff(account("team-b"), who()); diff != "" {
		t.Errorf("with --take-ownership the second has taken them, and the first has none: -want, +got:\n%s", diff)
	}
}

// TestServedNamespaceIsGone: what docs/multitenancy.md says of a namespace that is deleted.
func TestServedNamespaceIsGone(t *testing.T) {
	ownCluster(t)
	newNamespace(t, "team", nil)
	newNamespace(t, "shop", nil)
	jobs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: newNamespace(t, "jobs", nil)}}
	serve := func(namespaces string) error {
		return install(helm.Release{Name: "secrets", Namespace: "team"}, `global.scope.namespaces=`+namespaces)
	}
	role := client.ObjectKey{Namespace: "jobs", Name: "secrets-provider-aws"}

	must(t, serve(`["shop","jobs"]`))
	must(t, admin.Get(background, role, &rbacv1.Role{}))
	must(t, serve(`["shop"]`))
	if err := admin.Get(background, role, &rbacv1.Role{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("a namespace that is served no more has still the Role: %v", err)
	}

	must(t, serve(`["shop","jobs"]`))
	must(t, admin.Delete(background, jobs))
	controlplane.Eventually(t, func() string {
		if err := admin.Get(background, client.ObjectKeyFromObject(jobs), &corev1.Namespace{}); client.IgnoreNotFound(err) != nil || err == nil {
			return "the namespace is still there"
		}
		return ""
	})
	if err := serve(`["shop","jobs"]`); err == nil || !strings.Contains(err.Error(), `namespaces "jobs" not found`) {
		t.Errorf("an upgrade for a namespace that is gone: got %v, want an error that names it", err)
	}
	if err := serve(`["shop"]`); err != nil {
		t.Errorf("an upgrade without it: %v", err)
	}
	newNamespace(t, "jobs", nil)
	must(t, serve(`["shop","jobs"]`))
	must(t, admin.Get(background, role, &rbacv1.Role{}))
}
