package scenarios

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	passwordv1 "github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
)

// TestSourceOfTruth applies the guide with that name, deletes everything in the cluster, and applies it again,
// there and in a second namespace, which stands for a second cluster. All get the first password.
func TestSourceOfTruth(t *testing.T) {
	t.Parallel()
	const page, name, remote, first, second = "../../docs/guides/source-of-truth.md", "db-password", "shop/db-password", "truth", "truth-elsewhere"
	for _, ns := range []string{first, second} {
		must(t, shared.CreateNamespace(t.Context(), ns))
		must(t, shared.AWSStore(t.Context(), ns, "prod"))
	}
	modules := []string{stack.ProviderAWS, stack.GeneratorPassword}
	processes := map[string]*stack.Process{}
	for _, module := range modules {
		processes[module] = startModule(t, module, first+","+second)
	}
	// apply returns the password, and the reason of the PushSecret.
	apply := func(ns string) (string, string) {
		t.Helper()
		must(t, shared.Apply(t.Context(), examplesOf(t, page, ns)[name]))
		wantReady(t, ns, name, v1alpha1.ReasonSecretSynced)
		return string(getSecret(t, ns, name).Data["password"]), wantPushed(t, ns, "db-first-password").Reason
	}
	remoteValue := func() string {
		value, ok := shared.AWS.Get(remote)
		if !ok {
			t.Fatal("nothing was pushed")
		}
		return string(value)
	}
	is := func(when, ns, want, reason string) {
		t.Helper()
		got, why := apply(ns)
		if got != want || remoteValue() != want || why != reason {
			t.Errorf("%s: the Secret holds %q, the store %q, want %q; the PushSecret is %s, want %s", when, got, remoteValue(), want, why, reason)
		}
	}
	password, reason := apply(first)
	if len(password) != 32 || remoteValue() != password || reason != v1alpha1.ReasonSecretSynced {
		t.Fatalf("the Secret holds %q, the store %q; the PushSecret is %s", password, remoteValue(), reason)
	}

	deleteAll(t, first)
	is("everything was deleted and applied again", first, password, v1alpha1.ReasonSecretAlreadyExists)
	is("it was applied in a second cluster", second, password, v1alpha1.ReasonSecretAlreadyExists)

	for _, module := range modules {
		must(t, processes[module].Kill())
		startModule(t, module, first+","+second)
	}
	deleteAll(t, second)
	is("both modules were killed", second, password, v1alpha1.ReasonSecretAlreadyExists)
	ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: second, Name: "db-first-password"}}
	request := fmt.Sprintf(`{"metadata":{"annotations":{%q:"1"}}}`, v1alpha1.RefreshRequestAnnotation)
	must(t, shared.Admin.Patch(t.Context(), ps, client.RawPatch(types.MergePatchType, []byte(request))))
	is("a refresh was requested", second, password, v1alpha1.ReasonSecretAlreadyExists)
}

// pushPart returns the name of generator-password's part for a PushSecret.
func pushPart(name string) string { return generatedPasswords.PartName("PushSecret", name) }

// wantPushed waits until a PushSecret is ready after the requested refresh, with the data of its part unless
// the store had a value before.
func wantPushed(t *testing.T, ns, name string) metav1.Condition {
	t.Helper()
	var c *metav1.Condition
	eventually(t, func() string {
		ps := &v1alpha1.PushSecret{}
		must(t, shared.Admin.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, ps))
		c = meta.FindStatusCondition(ps.Status.Conditions, v1alpha1.ConditionReady)
		kept := getSecret(t, ns, pushPart(name))
		if c == nil || c.Status != metav1.ConditionTrue || kept == nil {
			return fmt.Sprintf("PushSecret %s is %+v", name, c)
		}
		rec, _ := inspect.RecordOf(kept.Annotations)
		for _, e := range rec.Entries {
			for _, s := range ps.Status.Stores {
				replaces := ps.Spec.UpdatePolicy != v1alpha1.UpdateIfNotExists
				if replaces && s.ObservedPart != e.Version || s.ObservedRefreshRequest != ps.Annotations[v1alpha1.RefreshRequestAnnotation] {
					return fmt.Sprintf("store %s does not have the present values", s.Name)
				}
			}
		}
		return ""
	})
	return *c
}

// deleteAll deletes all objects of a user in a namespace but the store, and waits until the dependent objects are
// deleted.
func deleteAll(t *testing.T, ns string) {
	t.Helper()
	for _, o := range []client.Object{&v1alpha1.PushSecret{}, &v1alpha1.ExternalSecret{}, &passwordv1.Password{}} {
		must(t, shared.Admin.DeleteAllOf(t.Context(), o, client.InNamespace(ns)))
	}
	eventually(t, func() string {
		var secrets corev1.SecretList
		must(t, shared.Admin.List(t.Context(), &secrets, client.InNamespace(ns)))
		for _, s := range secrets.Items {
			if s.Name != "prod-credentials" {
				return "Secret " + s.Name + " is still there"
			}
		}
		ps := &v1alpha1.PushSecret{}
		if err := shared.Admin.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "db-first-password"}, ps); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the PushSecret is still there: %v", err)
		}
		return ""
	})
}
