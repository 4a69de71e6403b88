package fanout_test

import (
	stdcmp "cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

// env is a ClusterEnv whose ExternalSecrets are created by the fan-out.
type env struct{ *testenv.ClusterEnv }

func newEnv(t *testing.T) *env {
	t.Helper()
	return &env{testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{})}
}

func TestMain(m *testing.M) { testenv.Main(m) }

// fanOut returns a ClusterExternalSecret that creates "db" in the namespaces with the label team: <name of the test>.
func (e *env) fanOut(change ...func(*v1alpha1.ClusterExternalSecret)) *v1alpha1.ClusterExternalSecret {
	p := &v1alpha1.ClusterExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: e.Name}, Spec: v1alpha1.ClusterExternalSecretSpec{
		ExternalSecretSpec: v1alpha1.ExternalSecretSpec{
			StoreRef: &v1alpha1.StoreRef{Kind: "ClusterFakeStore", Name: e.Name},
			Data:     []v1alpha1.DataEntry{{SecretKey: "value", RemoteRef: v1alpha1.RemoteRef{Key: "db"}}},
		},
		ExternalSecretName:     "db",
		ExternalSecretMetadata: v1alpha1.TemplateMetadata{Labels: map[string]string{"made": "true"}, Annotations: map[string]string{"by": "us"}},
		NamespaceChoice:        v1alpha1.NamespaceChoice{NamespaceSelectors: []metav1.LabelSelector{{MatchLabels: e.team()}}},
	}}
	for _, f := range change {
		f(p)
	}
	return p
}

func (e *env) team() map[string]string { return map[string]string{"team": e.Name} }

// join sets the team label of a namespace.
func (e *env) join(namespace, team string) {
	e.Helper()
	testenv.Update(e.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespaced(namespace)}}, func(n *corev1.Namespace) {
		metav1.SetMetaDataLabel(&n.ObjectMeta, "team", team)
	})
}

// wantMade waits until the status lists the provisioned namespaces and the failed ones, each with a part of its
// reason. It returns the Ready condition.
func (e *env) wantMade(p *v1alpha1.ClusterExternalSecret, provisioned []string, failed map[string]string) *metav1.Condition {
	e.Helper()
	var ready *metav1.Condition
	e.Eventually(func() string {
		is := &v1alpha1.ClusterExternalSecret{}
		if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(p), is); err != nil {
			return err.Error()
		}
		ready = meta.FindStatusCondition(is.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.ObservedGeneration != is.Generation {
			return fmt.Sprintf("Ready is %+v", ready)
		}
		var names []string
		for _, n := range is.Status.ProvisionedNamespaces {
			names = append(names, strings.TrimPrefix(n, e.Name+"-"))
		}
		bad := map[string]string{}
		for _, f := range is.Status.FailedNamespaces {
			ns := strings.TrimPrefix(f.Namespace, e.Name+"-")
			if bad[ns] = f.Message; failed[ns] != "" && strings.Contains(f.Message, failed[ns]) {
				bad[ns] = failed[ns]
			}
		}
		if diff := cmp.Diff(provisioned, names); diff != "" {
			return "provisionedNamespaces: -want, +got:\n" + diff
		}
		if len(failed)+len(bad) > 0 {
			if diff := cmp.Diff(failed, bad); diff != "" {
				return "failedNamespaces: -want, +got:\n" + diff
			}
		}
		return ""
	})
	return ready
}

func (e *env) wantValue(namespace, value string) {
	e.Helper()
	e.Eventually(func() string {
		if got := e.In(namespace).Data("db")["value"]; got != value {
			return fmt.Sprintf("the Secret of %s holds %q, want %q", namespace, got, value)
		}
		return ""
	})
}

// wantDeleted waits until the API server no longer has an object.
func (e *env) wantDeleted(namespace string, o client.Object) {
	e.Helper()
	e.Eventually(func() string {
		if err := e.API.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespaced(namespace), Name: o.GetName()}, o); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("%T %s/%s still exists: %v", o, namespace, o.GetName(), err)
		}
		return ""
	})
}

func externalSecret(name string) *v1alpha1.ExternalSecret {
	return &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// child waits until wrong returns an empty string for an object of a namespace, and returns the object.
func (e *env) child(namespace, name string, wrong func(*v1alpha1.ExternalSecret) string) *v1alpha1.ExternalSecret {
	e.Helper()
	var es *v1alpha1.ExternalSecret
	e.Eventually(func() string {
		es = &v1alpha1.ExternalSecret{}
		if err := e.API.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespaced(namespace), Name: name}, es); err != nil {
			return err.Error()
		}
		return wrong(es)
	})
	return es
}

// TestClusterExternalSecret creates an object in the namespaces that match, also in those that match later. It
// restores the object and deletes it again. Objects that it did not create stay unchanged.
func TestClusterExternalSecret(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("one"))
	e.Backend.Put("other", []byte("other"))
	for ns, labels := range map[string]map[string]string{"one": e.team(), "two": nil, "taken": e.team()} {
		e.CreateNamespace(ns, labels)
	}
	e.CreateExternalSecret("taken", "other")
	parent := e.fanOut()
	e.Create(parent)
	e.wantValue("one", "one")
	if c := e.wantMade(parent, []string{"one"}, map[string]string{"taken": `"db" exists and was not created by this object`}); c.Reason != v1alpha1.ReasonPartlyProvisioned || c.Status != metav1.ConditionFalse {
		t.Errorf("Ready is %+v", c)
	}
	e.join("two", e.Name)
	e.CreateNamespace("new", e.team())
	e.wantValue("two", "one")
	e.wantValue("new", "one")
	e.wantMade(parent, []string{"new", "one", "two"}, map[string]string{"taken": "was not created by this object"})

	// A user edits the child.
	es := externalSecret("db")
	es.Namespace = e.Namespaced("two")
	testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) {
		es.Spec.Data[0].RemoteRef.Key = "other"
		es.Labels = map[string]string{"theirs": "1"}
		es.Annotations["theirs"] = "1"
		es.Annotations["by"] = "them"
	})
	es = e.child("two", "db", func(es *v1alpha1.ExternalSecret) string {
		if es.Spec.Data[0].RemoteRef.Key != "db" {
			return "the spec was not restored"
		}
		return ""
	})
	if diff := cmp.Diff(map[string]string{"theirs": "1", "made": "true"}, es.Labels); diff != "" {
		t.Errorf("labels: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1", "us"}, []string{es.Annotations["theirs"], es.Annotations["by"]}); diff != "" {
		t.Errorf("annotations: -want, +got:\n%s", diff)
	}
	e.wantValue("two", "one")
	if err := e.API.Delete(e.Ctx, es); err != nil {
		t.Fatal(err)
	}
	e.child("two", "db", func(is *v1alpha1.ExternalSecret) string {
		if is.UID == es.UID {
			return "the object is the deleted one"
		}
		return ""
	})

	// The spec of the parent changes.
	testenv.Update(e.Client, parent, func(p *v1alpha1.ClusterExternalSecret) {
		p.Spec.ExternalSecretMetadata = v1alpha1.TemplateMetadata{Labels: map[string]string{"since": "2"}}
		p.Spec.ExternalSecretSpec.Data[0].RemoteRef.Key = "other"
	})
	for _, ns := range []string{"one", "two", "new"} {
		es := e.child(ns, "db", func(es *v1alpha1.ExternalSecret) string { return cmp.Diff(map[string]string{"since": "2"}, es.Labels) })
		if _, ok := es.Annotations["by"]; ok {
			t.Errorf("%s: an annotation that is no longer wanted still exists", ns)
		}
		e.wantValue(ns, "other")
	}

	// The conflicting object is deleted, which is noticed by its event.
	taken := externalSecret("db")
	taken.Namespace = e.Namespaced("taken")
	if err := e.API.Delete(e.Ctx, taken); err != nil {
		t.Fatal(err)
	}
	if c := e.wantMade(parent, []string{"new", "one", "taken", "two"}, nil); c.Reason != v1alpha1.ReasonProvisioned || c.Status != metav1.ConditionTrue {
		t.Errorf("Ready is %+v", c)
	}

	// Namespaces stop to match by a changed label, or are deleted.
	e.join("one", "bank")
	e.wantDeleted("one", externalSecret("db"))
	e.wantDeleted("one", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db"}})
	if err := e.API.Delete(e.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespaced("new")}}); err != nil {
		t.Fatal(err)
	}
	e.wantMade(parent, []string{"taken", "two"}, nil)

	// The parent is deleted.
	if err := e.API.Delete(e.Ctx, parent); err != nil {
		t.Fatal(err)
	}
	for _, ns := range []string{"taken", "two"} {
		e.wantDeleted(ns, externalSecret("db"))
		e.wantDeleted(ns, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db"}})
	}
}

// TestFanOutName renames the children. The old ones are deleted once the new ones exist. Where a new one cannot be
// created, the old one stays.
func TestFanOutName(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("one"))
	e.CreateNamespace("free", e.team())
	e.CreateNamespace("taken", e.team())
	parent := e.fanOut(func(p *v1alpha1.ClusterExternalSecret) { p.Spec.ExternalSecretName = "old" })
	e.Create(parent)
	e.wantMade(parent, []string{"free", "taken"}, nil)
	e.CreateExternalSecret("taken", "db")

	w, err := e.API.Watch(e.Ctx, &v1alpha1.ExternalSecretList{}, client.InNamespace(e.Namespaced("free")))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	testenv.Update(e.Client, parent, func(p *v1alpha1.ClusterExternalSecret) { p.Spec.ExternalSecretName = "db" })
	there := map[string]bool{}
	for len(there) == 0 || there["old"] || !there["db"] {
		var ev watch.Event
		select {
		case ev = <-w.ResultChan():
		case <-e.Ctx.Done():
			t.Fatal("the watch ended")
		}
		es, ok := ev.Object.(*v1alpha1.ExternalSecret)
		if !ok {
			t.Fatalf("the watch returned %T", ev.Object)
		}
		there[es.Name] = ev.Type != watch.Deleted
		if !there["old"] && !there["db"] {
			t.Fatal("for a moment neither child existed")
		}
	}
	e.wantMade(parent, []string{"free"}, map[string]string{"taken": "was not created by this object"})
	e.child("taken", "old", func(*v1alpha1.ExternalSecret) string { return "" })

	// An invalid name changes nothing.
	testenv.Update(e.Client, parent, func(p *v1alpha1.ClusterExternalSecret) { p.Spec.ExternalSecretName = "No_Name" })
	c := e.wantMade(parent, []string{"free"}, map[string]string{"taken": "was not created by this object"})
	if c.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(c.Message, "No_Name") {
		t.Errorf("Ready is %+v", c)
	}
	e.join("taken", "bank") // An invalid parent changes nothing here, either.
	testenv.Update(e.Client, parent, func(p *v1alpha1.ClusterExternalSecret) { p.Spec.ExternalSecretName = "db" })
	e.wantMade(parent, []string{"free"}, nil)
	e.wantDeleted("taken", externalSecret("old"))
}

// TestFanOutRename renames the children while the new ones cannot be Ready: the old ones stay, and so do their
// Secrets.
func TestFanOutRename(t *testing.T) {
	const secret = "shared"
	cases := map[string]struct {
		reason string
		target string
		// hinder keeps new children from being Ready; let ends that.
		hinder func(e *env) (let func())
	}{
		"Store": {"The values cannot be read while the store is down.", "", func(e *env) func() {
			return e.Backend.Inject(fake.Fault{Key: "db", Err: provider.NewError(provider.Unavailable, "down")})
		}},
		"Target": {"Both write the same Secret. It stays when a user deletes the old child without its Secret.", secret, func(e *env) func() {
			return func() {
				old := e.child("a", "old", func(*v1alpha1.ExternalSecret) string { return "" })
				testenv.Update(e.In("a"), old, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CleanupPolicy = v1alpha1.CleanupNever })
				e.Eventually(func() string {
					if s := e.In("a").Secret(secret); operatortest.OwnedBy(s, old) {
						return "the old child still owns the Secret"
					}
					return ""
				})
				e.In("a").Delete(old)
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("one"))
			e.CreateNamespace("a", e.team())
			parent := e.fanOut(func(p *v1alpha1.ClusterExternalSecret) {
				p.Spec.ExternalSecretName, p.Spec.ExternalSecretSpec.Target.Name = "old", tc.target
			})
			e.Create(parent)
			e.In("a").WantReady("old", v1alpha1.ReasonSecretSynced)
			was := e.In("a").WantSecret(stdcmp.Or(tc.target, "old"), "value", "one")

			let := tc.hinder(e)
			testenv.Update(e.Client, parent, func(p *v1alpha1.ClusterExternalSecret) { p.Spec.ExternalSecretName = "new" })
			e.wantMade(parent, nil, map[string]string{"a": `"old" is deleted once its replacement "new" is Ready`})
			is := e.In("a").WantSecret(was.Name, "value", "one")
			if is.UID != was.UID {
				t.Errorf("%s The Secret was created again.", tc.reason)
			}
			let()
			e.wantMade(parent, []string{"a"}, nil)
			e.wantDeleted("a", externalSecret("old"))
			e.In("a").WantReady("new", v1alpha1.ReasonSecretSynced)
			is = e.In("a").WantSecret(stdcmp.Or(tc.target, "new"), "value", "one")
			if tc.target != "" && is.UID != was.UID {
				t.Errorf("%s The Secret was created again.", tc.reason)
			}
		})
	}
}

// TestFanOutOtherWriters has two parents that want the same name. The second reports a conflict, and takes over when the
// first releases the name.
func TestFanOutOtherWriters(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("first", []byte("first"))
	e.Backend.Put("second", []byte("second"))
	e.CreateNamespace("one", e.team())
	otherParent := func(key string) *v1alpha1.ClusterExternalSecret {
		p := e.fanOut(func(p *v1alpha1.ClusterExternalSecret) {
			p.Name += "-" + key
			p.Spec.ExternalSecretSpec.Data[0].RemoteRef.Key = key
		})
		e.Create(p)
		return p
	}
	first := otherParent("first")
	e.wantMade(first, []string{"one"}, nil)
	second := otherParent("second")
	e.wantMade(second, nil, map[string]string{"one": "was not created by this object"})
	e.wantValue("one", "first")
	testenv.Update(e.Client, first, func(p *v1alpha1.ClusterExternalSecret) { p.Spec.ExternalSecretName = "elsewhere" })
	e.wantMade(second, []string{"one"}, nil)
	e.wantValue("one", "second")
	testenv.Update(e.Client, first, func(p *v1alpha1.ClusterExternalSecret) { p.Spec.ExternalSecretName = "db" })
	e.wantMade(first, nil, map[string]string{"one": "was not created by this object"})
	if err := e.API.Delete(e.Ctx, second); err != nil {
		t.Fatal(err)
	}
	e.wantMade(first, []string{"one"}, nil)
	e.wantValue("one", "first")
}

// TestFanOutTerminating ignores a namespace that is being deleted, however long that takes.
func TestFanOutTerminating(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("one"))
	e.CreateNamespace("stays", e.team())
	e.CreateNamespace("goes", e.team())
	holds := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespaced("goes"), Name: "holds", Finalizers: []string{"example.org/holds"}}}
	e.Create(holds)
	parent := e.fanOut()
	e.Create(parent)
	e.wantMade(parent, []string{"goes", "stays"}, nil)
	if err := e.API.Delete(e.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespaced("goes")}}); err != nil {
		t.Fatal(err)
	}
	e.wantDeleted("goes", externalSecret("db"))
	// A change of the parent starts another pass.
	testenv.Update(e.Client, parent, func(p *v1alpha1.ClusterExternalSecret) { p.Spec.ExternalSecretMetadata.Labels["more"] = "1" })
	if c := e.wantMade(parent, []string{"stays"}, nil); c.Reason != v1alpha1.ReasonProvisioned {
		t.Errorf("Ready is %+v", c)
	}
	testenv.Update(e.Client, holds, func(c *corev1.ConfigMap) { c.Finalizers = nil })
	e.wantMade(parent, []string{"stays"}, nil)
}

// TestFanOutInvalid has invalid specs: some are refused by the API server, and some only by the operator.
func TestFanOutInvalid(t *testing.T) {
	e := newEnv(t)
	e.CreateNamespace("one", e.team())
	type change = func(*v1alpha1.ClusterExternalSecret)
	target := func(target v1alpha1.Target) change {
		return func(p *v1alpha1.ClusterExternalSecret) { p.Spec.ExternalSecretSpec.Target = target }
	}
	cases := map[string]struct {
		reason string
		change change
		// refused is the expected error of the API server, invalid the expected message of the operator.
		refused, invalid string
	}{
		"DeleteShared": {
			"The rules of an ExternalSecret apply, too: Delete needs a Secret of its own.", target(v1alpha1.Target{CreationPolicy: v1alpha1.CreateMerge, DeletionPolicy: v1alpha1.DeletionDelete}),
			"deletionPolicy Delete needs creationPolicy Owner or Orphan", "",
		},
		"MergeNone": {
			"The rules of an ExternalSecret apply, too: Merge needs a Secret.", target(v1alpha1.Target{CreationPolicy: v1alpha1.CreateNone, DeletionPolicy: v1alpha1.DeletionMerge}),
			"deletionPolicy Merge needs a creationPolicy that writes a Secret", "",
		},
		"CleanupOrphan": {
			"The rules of an ExternalSecret apply, too: cleanupPolicy needs Owner.", target(v1alpha1.Target{CreationPolicy: v1alpha1.CreateOrphan, CleanupPolicy: v1alpha1.CleanupNever}),
			"cleanupPolicy needs creationPolicy Owner", "",
		},
		"FrozenShared": {
			"The rules of an ExternalSecret apply, too: immutable needs a Secret of its own.", target(v1alpha1.Target{CreationPolicy: v1alpha1.CreateMerge, Immutable: true}),
			"immutable needs creationPolicy Owner or Orphan", "",
		},
		"Policy": {
			"The enums of an ExternalSecret apply, too.", target(v1alpha1.Target{CreationPolicy: "Owned"}), `Unsupported value: "Owned"`, "",
		},
		"NameTooLong": {
			"A name has a limit.", func(p *v1alpha1.ClusterExternalSecret) { p.Spec.ExternalSecretName = strings.Repeat("a", 254) },
			"spec.externalSecretName: Too long", "",
		},
		"NamespaceTooLong": {
			"The name of a namespace has a limit.", func(p *v1alpha1.ClusterExternalSecret) { p.Spec.Namespaces = []string{strings.Repeat("a", 64)} },
			"spec.namespaces[0]: Too long", "",
		},
		"NamespaceTwice": {
			"The names of namespaces must be unique.", func(p *v1alpha1.ClusterExternalSecret) { p.Spec.Namespaces = []string{"a", "a"} },
			"Duplicate value", "",
		},
		"Name": {
			"A name must be valid.", func(p *v1alpha1.ClusterExternalSecret) { p.Spec.ExternalSecretName = "a/b" },
			"", `"a/b" cannot be the name of objects of kind ExternalSecret`,
		},
		"Label": {
			"An invalid label is found before it is tried in every namespace.",
			func(p *v1alpha1.ClusterExternalSecret) { p.Spec.ExternalSecretMetadata.Labels["made"] = "a b" },
			"", `spec.externalSecretMetadata.labels: Invalid value: "a b"`,
		},
		"Note": {
			"The annotation of the operator cannot be set.",
			func(p *v1alpha1.ClusterExternalSecret) {
				p.Spec.ExternalSecretMetadata.Annotations[v1alpha1.FanOutAnnotation] = "{}"
			},
			"", v1alpha1.FanOutAnnotation + " is reserved for the operator",
		},
		"Selector": {
			"A selector must be valid.",
			func(p *v1alpha1.ClusterExternalSecret) {
				p.Spec.NamespaceSelectors = append(p.Spec.NamespaceSelectors, metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like", Values: []string{"b"}}},
				})
			},
			"", "spec.namespaceSelectors[1]: invalid label selector",
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		p := e.fanOut(tc.change)
		p.Name += "-" + strings.ToLower(name)
		err := e.API.Create(e.Ctx, p)
		switch {
		case tc.refused != "":
			if !kerrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("\n%s\n%s: the API server returned %v, want %q", tc.reason, name, err, tc.refused)
			}
			continue
		case err != nil:
			t.Errorf("\n%s\n%s: the API server returned %v", tc.reason, name, err)
			continue
		}
		c := e.wantMade(p, nil, nil)
		if c.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(c.Message, tc.invalid) {
			t.Errorf("\n%s\n%s: Ready is %+v, want it to contain %q", tc.reason, name, c, tc.invalid)
		}
		e.WantEvent(p.Name, v1alpha1.ReasonInvalidSpec, c.Message)
	}
	var list v1alpha1.ExternalSecretList
	if err := e.API.List(e.Ctx, &list, client.InNamespace(e.Namespaced("one"))); err != nil || len(list.Items) > 0 {
		t.Errorf("%d objects were created: %v", len(list.Items), err)
	}
}

// policy creates an admission policy and its binding for the ExternalSecrets of one namespace.
func (e *env) policy(kind, namespace string, spec map[string]any) {
	e.Helper()
	name := e.Namespaced(namespace)
	spec["failurePolicy"] = "Fail"
	spec["matchConstraints"] = map[string]any{"resourceRules": []any{map[string]any{
		"apiGroups": []any{v1alpha1.Group}, "apiVersions": []any{"*"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{"externalsecrets"},
	}}}
	binding := map[string]any{"policyName": name, "matchResources": map[string]any{
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: name}},
	}}
	if kind == "ValidatingAdmissionPolicy" {
		binding["validationActions"] = []any{"Deny"}
	}
	for k, s := range map[string]map[string]any{kind: spec, kind + "Binding": binding} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": k, "spec": s}}
		u.SetName(name)
		e.Create(u)
		e.Cleanup(func() {
			if err := e.API.Delete(context.Background(), u); err != nil { //nolint:usetesting // The context of the test has ended.
				e.Error(err)
			}
		})
	}
}

// TestFanOutRefused has admission policies that refuse the object in one namespace, and change it in another. Both
// are reported, and neither write is repeated in a loop.
func TestFanOutRefused(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("one"))
	for _, ns := range []string{"fine", "refuses", "changes"} {
		e.CreateNamespace(ns, nil)
	}
	e.policy("ValidatingAdmissionPolicy", "refuses", map[string]any{"validations": []any{map[string]any{
		"expression": "!('made' in object.metadata.?labels.orValue({}))", "message": "not here",
	}}})
	e.policy("MutatingAdmissionPolicy", "changes", map[string]any{
		"reinvocationPolicy": "Never",
		"mutations": []any{map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
			"expression": "Object{spec: Object.spec{refreshInterval: '7h'}}",
		}}},
	})
	// Policies take effect after a moment.
	e.Eventually(func() string {
		probe := e.fanOut()
		for _, ns := range []string{"refuses", "changes"} {
			es := externalSecret("probe")
			es.Namespace, es.Labels, es.Spec = e.Namespaced(ns), map[string]string{"made": "true"}, probe.Spec.ExternalSecretSpec
			err := e.API.Create(e.Ctx, es, client.DryRunAll)
			if ns == "refuses" && err == nil || ns == "changes" && (err != nil || es.Spec.RefreshInterval == "") {
				return fmt.Sprintf("the policy of %s is not in effect yet: %v", ns, err)
			}
		}
		return ""
	})
	parent := e.fanOut()
	e.Create(parent)
	for _, ns := range []string{"fine", "refuses", "changes"} {
		e.join(ns, e.Name)
	}
	e.wantMade(parent, []string{"fine"}, map[string]string{"refuses": "not here", "changes": "changes the object on each write"})
	e.wantValue("fine", "one")
	es := e.child("changes", "db", func(*v1alpha1.ExternalSecret) string { return "" })
	if es.Generation > 1 {
		t.Errorf("the object is at generation %d, want 1: it must not be written in a loop", es.Generation)
	}
}

// TestFanOutBackoff changes a child repeatedly. It is restored, after a while with back-off, and the parent reports
// that.
func TestFanOutBackoff(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("one"))
	e.CreateNamespace("one", e.team())
	parent := e.fanOut()
	e.Create(parent)
	e.wantMade(parent, []string{"one"}, nil)
	right := func(es *v1alpha1.ExternalSecret) string {
		if es.Spec.Suspend {
			return "the child is not restored"
		}
		return ""
	}
	reported := func() bool {
		if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(parent), parent); err != nil {
			t.Fatal(err)
		}
		return len(parent.Status.FailedNamespaces) > 0
	}
	for n := 0; !reported(); n++ {
		if n > 20 {
			t.Fatal("the child was restored twenty times, and that is not reported")
		}
		es := e.child("one", "db", right)
		testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true })
		e.child("one", "db", func(es *v1alpha1.ExternalSecret) string {
			if reported() {
				return ""
			}
			return right(es)
		})
	}
	if r := parent.Status.FailedNamespaces[0].Message; !strings.Contains(r, "another client keeps changing") {
		t.Errorf("the reason is %q", r)
	}
	e.child("one", "db", right)
	e.wantMade(parent, []string{"one"}, nil)
}
