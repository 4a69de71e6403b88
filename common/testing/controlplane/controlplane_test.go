package controlplane

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// eventually fails the test if ok does not return true within a minute.
func eventually(t *testing.T, what string, ok func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, time.Minute, true,
		func(ctx context.Context) (bool, error) { return ok(ctx), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func clientFor(t *testing.T, cfg *rest.Config) *kubernetes.Clientset {
	t.Helper()
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

func newNamespace(t *testing.T, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := clientFor(t, cluster.Config()).CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestServiceAccountHasOnlyItsPermissions(t *testing.T) {
	const namespace, account = "rbac", "reader"
	raw, err := cluster.ServiceAccountKubeconfig(t.Context(), namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	secrets := clientFor(t, cfg).CoreV1().Secrets(namespace)
	if _, err := secrets.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("list secrets without a Role: got %v, want Forbidden", err)
	}

	rbac := clientFor(t, cluster.Config()).RbacV1()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}},
	}
	if _, err := rbac.Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: namespace}},
	}
	if _, err := rbac.RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "list secrets with a Role", func(ctx context.Context) bool {
		_, err := secrets.List(ctx, metav1.ListOptions{})
		return err == nil
	})
	if _, err := secrets.Get(t.Context(), "any", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("get a secret with a Role that only lists: got %v, want Forbidden", err)
	}
}

func TestServiceAccountKubeconfigTwice(t *testing.T) {
	for range 2 {
		if _, err := cluster.ServiceAccountKubeconfig(t.Context(), "twice", "account"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAdminKubeconfig(t *testing.T) {
	raw, err := cluster.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientFor(t, cfg).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

func TestGarbageCollectorRemovesDependents(t *testing.T) {
	const namespace = "gc"
	newNamespace(t, namespace)
	configMaps := clientFor(t, cluster.Config()).CoreV1().ConfigMaps(namespace)
	owner, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dependent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:            "dependent",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}}
	if _, err := configMaps.Create(t.Context(), dependent, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := configMaps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the dependent is collected", func(ctx context.Context) bool {
		_, err := configMaps.Get(ctx, dependent.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestNamespaceDeletionCompletes(t *testing.T) {
	const namespace = "leaving"
	newNamespace(t, namespace)
	core := clientFor(t, cluster.Config()).CoreV1()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "content"}}
	if _, err := core.Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := core.Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is deleted", func(ctx context.Context) bool {
		_, err := core.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestResourceQuotaBinds(t *testing.T) {
	const namespace = "quota"
	newNamespace(t, namespace)
	core := clientFor(t, cluster.Config()).CoreV1()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}}
	quota.Spec.Hard = corev1.ResourceList{"count/secrets": resource.MustParse("0")}
	if _, err := core.ResourceQuotas(namespace).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a secret over the quota is refused", func(ctx context.Context) bool {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "over-"}}
		_, err := core.Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
	})
}

// crd returns a CustomResourceDefinition for a kind with a plural.
func crd(plural string) []byte {
	return fmt.Appendf(nil, `---
# A leading separator and a comment are no document.
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.test.direct-secrets.io}
spec:
  group: test.direct-secrets.io
  scope: Namespaced
  names: {plural: %[1]s, singular: %[1]s, kind: %[2]s, listKind: %[2]sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`, plural, strings.ToUpper(plural[:1])+plural[1:])
}

func TestInstallCRDs(t *testing.T) {
	if err := cluster.InstallCRDs(t.Context(), crd("apples"), append(crd("pears"), crd("plums")...)); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	for kind, plural := range map[string]string{"Apples": "apples", "Pears": "pears", "Plums": "plums"} {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "test.direct-secrets.io/v1", "kind": kind, "metadata": map[string]any{"name": "one"},
		}}
		gvr := schema.GroupVersionResource{Group: "test.direct-secrets.io", Version: "v1", Resource: plural}
		owner, err := client.Resource(gvr).Namespace("default").Create(t.Context(), u, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// The collector must know the new kind at once; otherwise tests wait for half a minute.
		configMaps := clientFor(t, cluster.Config()).CoreV1().ConfigMaps("default")
		dependent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name:            "of-" + plural,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: kind, Name: "one", UID: owner.GetUID()}},
		}}
		if _, err := configMaps.Create(t.Context(), dependent, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := client.Resource(gvr).Namespace("default").Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		eventually(t, "the dependent of a "+kind+" is collected", func(ctx context.Context) bool {
			_, err := configMaps.Get(ctx, dependent.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("the dependent of a %s was collected after %s", kind, took)
		}
	}

	before := cluster.controllerManager
	if err := cluster.InstallCRDs(t.Context(), crd("apples")); err != nil {
		t.Fatal(err)
	}
	if cluster.controllerManager != before {
		t.Error("the controller manager was restarted although no kind is new")
	}
}

func TestInstallCRDsRefuses(t *testing.T) {
	cases := map[string]struct {
		manifest, want string
	}{
		"AnotherKind": {manifest: "apiVersion: v1\nkind: Secret\nmetadata: {name: other}\n", want: `Secret "other" is not a CustomResourceDefinition`},
		"NoYAML":      {manifest: "kind: [", want: "cannot read a CustomResourceDefinition"},
		"Invalid": {
			manifest: "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: no.example.com}\n",
			want:     "cannot apply CustomResourceDefinition no.example.com",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := cluster.InstallCRDs(t.Context(), []byte(tc.manifest))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("InstallCRDs: got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestAuditLog(t *testing.T) {
	const namespace = "audited"
	newNamespace(t, namespace)
	since := time.Now()
	cfg := cluster.Config()
	cfg.UserAgent = "audit-test/1"
	secrets := clientFor(t, cfg).CoreV1().Secrets(namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "one"}, StringData: map[string]string{"password": "canary-8f14e45f"}}
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Get(t.Context(), "one", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := secrets.Delete(t.Context(), "absent", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}

	events, err := cluster.ReadAuditLog(since)
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Verb, User, Resource, Name string
		Code                       int
		Write                      bool
	}
	var got []line
	for _, e := range events {
		if e.UserAgent == cfg.UserAgent {
			got = append(got, line{e.Verb, e.User.Username, e.ObjectRef.Resource, e.ObjectRef.Name, e.ResponseStatus.Code, e.IsWrite()})
		}
	}
	want := []line{
		{"create", "admin", "secrets", "one", 201, true},
		{"get", "admin", "secrets", "one", 200, false},
		{"delete", "admin", "secrets", "absent", 404, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ReadAuditLog: -want +got:\n%s", diff)
	}
}
