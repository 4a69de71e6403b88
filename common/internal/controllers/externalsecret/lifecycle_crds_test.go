package externalsecret_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/manifests"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// removal has its own cluster, since CRDs are cluster-wide.
type removal struct {
	*env
	namespaces []string
	objects    int
}

func newRemoval(t *testing.T) *removal {
	t.Helper()
	e := testenv.On(t, testenv.StartPlane(t), "")
	e.Flags = []func(*operator.Flags){withDefault(never)}
	return &removal{env: &env{e}, namespaces: []string{"one", "two"}, objects: 20}
}

// fill creates objects with unset cleanupPolicy in each namespace. If owned is true, it also creates one that owns
// its Secret, to show when the garbage collector has run.
func (r *removal) fill(owned bool) {
	r.Helper()
	for _, ns := range r.namespaces {
		for i := range r.objects {
			name := fmt.Sprintf("s-%d", i)
			r.Backend.Put(name, []byte("value of "+name))
			r.make(ns, r.ExternalSecret(name))
		}
		if owned {
			r.Backend.Put("owned", []byte("x"))
			r.make(ns, r.ExternalSecret("owned", into(v1alpha1.Target{CleanupPolicy: onDelete})))
		}
	}
	r.Eventually(func() string {
		var list v1alpha1.ExternalSecretList
		if err := r.API.List(r.Ctx, &list); err != nil {
			return err.Error()
		}
		for _, es := range list.Items {
			if !meta.IsStatusConditionTrue(es.Status.Conditions, v1alpha1.ConditionReady) {
				return es.Namespace + "/" + es.Name + " is not in sync"
			}
		}
		return ""
	})
}

func (r *removal) make(namespace string, o client.Object) {
	r.Helper()
	o.SetNamespace(namespace)
	if err := r.API.Create(r.Ctx, o); err != nil {
		r.Fatal(err)
	}
}

// secrets returns the Secrets of all namespaces by name.
func (r *removal) secrets() map[string]corev1.Secret {
	r.Helper()
	all := map[string]corev1.Secret{}
	for _, ns := range r.namespaces {
		var list corev1.SecretList
		if err := r.API.List(r.Ctx, &list, client.InNamespace(ns)); err != nil {
			r.Fatal(err)
		}
		for _, s := range list.Items {
			all[ns+"/"+s.Name] = s
		}
	}
	return all
}

func (r *removal) wantSame(when string, before map[string]corev1.Secret) {
	r.Helper()
	if diff := cmp.Diff(before, r.secrets()); diff != "" {
		r.Errorf("%s the Secrets have changed: -before, +now:\n%s", when, diff)
	}
}

// removeCRD deletes the CRD of ExternalSecrets and waits until it and its objects are deleted.
func (r *removal) removeCRD() {
	r.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("externalsecrets." + v1alpha1.Group)
	if err := r.API.Delete(r.Ctx, crd); err != nil {
		r.Fatal(err)
	}
	start := time.Now()
	r.Eventually(func() string {
		if err := r.API.Get(r.Ctx, client.ObjectKeyFromObject(crd), crd); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the CRD is still there: %v", err)
		}
		return ""
	})
	r.Logf("the CRD and its objects were deleted after %s", time.Since(start).Round(time.Millisecond))
}

// TestCRDRemoval deletes the CRD while the operator runs with the default Never. It does not run in parallel, because
// it has its own control plane.
func TestCRDRemoval(t *testing.T) {
	r := newRemoval(t)
	for _, ns := range r.namespaces {
		r.make("", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
		r.make(ns, r.Store("store", "main"))
	}
	r.Start()
	r.fill(true)
	before := r.secrets()
	if want := len(r.namespaces) * (r.objects + 1); len(before) != want {
		t.Fatalf("%d Secrets, want %d", len(before), want)
	}

	r.removeCRD()
	r.Eventually(func() string {
		for name := range r.secrets() {
			if name == "one/owned" || name == "two/owned" {
				return name + " still exists, so the garbage collector has not run"
			}
		}
		return ""
	})
	delete(before, "one/owned")
	delete(before, "two/owned")
	r.wantSame("with the operator running", before)
	r.Stop()
	r.wantSame("after it stopped", before)

	// Without its CRD the operator either waits or exits with an error; both are fine.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	t.Logf("without the CRD the operator exits with: %v", r.Operator("provider-fake", fakev1.Group, r.Server.Kinds()).Run(ctx))
	r.wantSame("after a restart without the CRD", before)

	if err := r.Cluster.InstallCRDs(t.Context(), controlplane.Manifests(manifests.CRDs)...); err != nil {
		t.Fatal(err)
	}
	r.Start()
	r.Backend.Put("new", []byte("x"))
	r.make("one", r.ExternalSecret("new"))
	r.Eventually(func() string {
		if _, ok := r.secrets()["one/new"]; !ok {
			return "the new object has no Secret"
		}
		return ""
	})
	after := r.secrets()
	delete(after, "one/new")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("after the CRD was installed again: -before, +now:\n%s", diff)
	}

	// The objects are created again, too, and take over their Secrets.
	r.fill(false)
	for name, s := range r.secrets() {
		if was := before[name]; name != "one/new" && (was.UID != s.UID || !cmp.Equal(was.Data, s.Data)) {
			t.Errorf("%s is another Secret, or holds other values, than before", name)
		}
	}
}
