package cutover

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// journalNamespace is a namespace in which tenants cannot write.
const journalNamespace = "operators"

// A recorder is a cluster in memory that records the writes.
type recorder struct {
	client.Client

	writes []string
}

func newRecorder(t *testing.T, objects ...client.Object) *recorder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	r := &recorder{}
	record := func(verb string, o client.Object) {
		r.writes = append(r.writes, fmt.Sprintf("%s %T %s", verb, o, o.GetName()))
	}
	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, o := range objects { // The fake sets a resourceVersion, and other tests use the object, too.
		b = b.WithRuntimeObjects(o.DeepCopyObject())
	}
	r.Client = interceptor.NewClient(b.Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			record("create", o)
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			record("update", o)
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			record("patch", o)
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			record("delete", o)
			return c.Delete(ctx, o, opts...)
		},
	})
	return r
}

// movedObject returns an object of direct-secrets after a move: of which its operator reports that it is in sync.
func movedObject[O client.Object](o O) O {
	o.SetNamespace("shop")
	o.SetName("db")
	o.SetUID("ours")
	o.SetGeneration(2)
	o.SetAnnotations(map[string]string{fromAnnotation: "eso"})
	return o
}

func conditions(status metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: "why", ObservedGeneration: 2}}
}

// TestMovedIsFinal runs the command again for objects that are moved, and of which something has changed since. The only
// write is the removal of the object of External Secrets Operator.
func TestMovedIsFinal(t *testing.T) {
	t.Parallel()
	external := func(change func(*v1alpha1.ExternalSecret)) client.Object {
		o := movedObject(&v1alpha1.ExternalSecret{})
		o.Status.ObservedGeneration, o.Status.Conditions = 2, conditions(metav1.ConditionTrue, "SecretSynced")
		change(o)
		return o
	}
	push := func(change func(*v1alpha1.PushSecret)) client.Object {
		o := movedObject(&v1alpha1.PushSecret{})
		o.Status.Conditions = conditions(metav1.ConditionTrue, "SecretSynced")
		change(o)
		return o
	}
	converted := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "ExternalSecret", "spec": map[string]any{"storeRef": map[string]any{"kind": "VaultKV", "name": "kv"}}}}
	for name, tc := range map[string]struct {
		reason string
		push   bool
		to     client.Object
		secret string
		// lost is true if the object cannot be converted any more.
		lost bool
	}{
		"Edited": {reason: "entries that a user added to a PushSecret stay", push: true, secret: "secret", to: push(func(o *v1alpha1.PushSecret) {
			o.Spec.AdoptionPolicy = v1alpha1.AdoptionOwn
			o.Finalizers = []string{"direct-secrets.io/push"}
		})},
		"DryRun":       {reason: "a dryRun that a user set holds back the push", push: true, secret: "secret", to: push(func(o *v1alpha1.PushSecret) { o.Spec.DryRun = true })},
		"AppliedAgain": {reason: "an ExternalSecret without the annotation is not deleted", secret: "secret", to: external(func(o *v1alpha1.ExternalSecret) { o.Annotations = nil })},
		"SecretAgain":  {reason: "a Secret that was created again is no reason to give it back", secret: "another", to: external(func(*v1alpha1.ExternalSecret) {})},
		"StoreNotReady": {reason: "a store that is not ready is no reason to give it back", secret: "secret", to: external(func(o *v1alpha1.ExternalSecret) {
			o.Status.Conditions = conditions(metav1.ConditionFalse, "StoreNotReady")
		})},
		"NotConverted": {reason: "an object that cannot be converted any more does not end the command", secret: "secret", lost: true, to: external(func(*v1alpha1.ExternalSecret) {})},
	} {
		for _, remove := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/remove=%v", name, remove), func(t *testing.T) {
				t.Parallel()
				from := esoObject(stoppedSpec())
				if tc.push {
					from = esoPush(map[string]any{"refreshInterval": "0s", "deletionPolicy": "None"}, "3-a")
				}
				from.SetFinalizers([]string{"keep"}) // A test can still read it once it is deleted.
				cluster := newRecorder(t, from, tc.to.DeepCopyObject().(client.Object), movedEntry(t, from),
					&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "another"}})
				if tc.secret == "secret" {
					cluster = newRecorder(t, from, tc.to.DeepCopyObject().(client.Object), movedEntry(t, from),
						&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "secret"}})
				}
				c := &Cutover{Client: cluster, Options: Options{Remove: remove, JournalNamespace: journalNamespace, Timeout: 400 * time.Millisecond}, Report: func(Result) {}}
				u := Unit{From: from, To: converted}
				if tc.lost {
					u.To = nil
				}
				results := c.Move(t.Context(), []Unit{u})
				var want []string
				if remove {
					want = []string{"delete *unstructured.Unstructured db"}
				}
				if diff := cmp.Diff(want, cluster.writes); diff != "" || results[0].Outcome != Moved {
					t.Errorf("%s: %+v; writes: -want, +got:\n%s", tc.reason, results[0], diff)
				}
			})
		}
	}
}

// movedEntry returns the entry of the journal of an object that is moved.
func movedEntry(t *testing.T, from *unstructured.Unstructured) *corev1.ConfigMap {
	t.Helper()
	e := entry{UID: "eso", Object: manifest(from), Secret: "db", SecretUID: "secret", Moved: true}
	m, err := Options{JournalNamespace: journalNamespace}.configMap(e)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRemoveOnlyStopped changes the object of External Secrets Operator after the move. It is not deleted: that would
// delete what it owns, or what another user has created since.
func TestRemoveOnlyStopped(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		push   bool
		change func(*unstructured.Unstructured)
		want   string
	}{
		"CreatedAgain": {
			reason: "an object that was created again is another one", change: func(o *unstructured.Unstructured) { o.SetUID("another") },
			want: "the object of External Secrets Operator was created again after the move; delete it by hand, or use --revert",
		},
		"Active": {
			reason: "an object that writes again may own the Secret", change: func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"refreshInterval": "1h"} },
			want: "the object of External Secrets Operator was changed after the move, so that it writes again; use --revert, or restore the fields that the move had set",
		},
		"Deletes": {
			reason: "the remote secrets would be deleted with the object", push: true, change: func(o *unstructured.Unstructured) { o.SetFinalizers([]string{pushFinalizer}) },
			want: "the object of External Secrets Operator was changed after the move, so that it writes again; use --revert, or restore the fields that the move had set",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := esoObject(stoppedSpec())
			if tc.push {
				from = esoPush(map[string]any{"refreshInterval": "0s", "deletionPolicy": "None"}, "3-a")
			}
			tc.change(from)
			cluster := newRecorder(t, from, movedEntry(t, from))
			c := &Cutover{Client: cluster, Options: Options{Remove: true, JournalNamespace: journalNamespace, Timeout: time.Second}, Report: func(Result) {}}
			got := c.Move(t.Context(), []Unit{{From: from}})[0]
			if len(cluster.writes) > 0 || got.Outcome != Left || got.Reason != tc.want {
				t.Errorf("%s: %+v; writes %q", tc.reason, got, cluster.writes)
			}
		})
	}
}

// TestLostHalfWay cannot convert an object any more of which the move has begun. It is given back.
func TestLostHalfWay(t *testing.T) {
	t.Parallel()
	from := esoObject(stoppedSpec())
	begun := entry{UID: "eso", Object: manifest(esoObject(map[string]any{"refreshInterval": "1h"})), Secret: "db", SecretUID: "secret"}
	m, err := Options{JournalNamespace: journalNamespace}.configMap(begun)
	if err != nil {
		t.Fatal(err)
	}
	cluster := newRecorder(t, from, m)
	c := &Cutover{Client: cluster, Options: Options{JournalNamespace: journalNamespace, Timeout: time.Second}, Report: func(Result) {}}
	got := c.Move(t.Context(), []Unit{{From: from}})[0]
	if got.Outcome != Left || got.Reason != notConverted {
		t.Errorf("%+v", got)
	}
	if now, err := c.readFrom(t.Context(), from); err != nil || field(now, "refreshInterval") != "1h" {
		t.Errorf("the object of External Secrets Operator is not restored: %v, %v", now, err)
	}
}

// TestStepsKeepOtherFields takes the steps that change an object of direct-secrets which a user has edited meanwhile.
func TestStepsKeepOtherFields(t *testing.T) {
	t.Parallel()
	to := movedObject(&v1alpha1.PushSecret{})
	to.Spec.DryRun, to.Spec.AdoptionPolicy, to.Spec.DeletionPolicy = true, v1alpha1.AdoptionOwn, v1alpha1.PushDeletionDelete
	to.Spec.Data = []v1alpha1.PushData{{ConversionStrategy: "None"}}
	to.Finalizers = []string{"direct-secrets.io/push"}
	from := esoPush(map[string]any{"refreshInterval": "0s", "deletionPolicy": "None"}, "3-a")
	cluster := newRecorder(t, from, to)
	converted := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"deletionPolicy": "Delete"}}}
	converted.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("PushSecret"))
	converted.SetName("db")
	m := &move{Cutover: &Cutover{Client: cluster}, unit: Unit{From: from, To: converted}, name: client.ObjectKeyFromObject(to), journal: entry{UID: "eso"}}
	for _, next := range []step{stepAdopt, stepFinish} {
		s := pushState{from: from, to: &v1alpha1.PushSecret{}, final: m.final(), journal: m.journal}
		if _, err := m.get(t.Context(), m.name, s.to); err != nil {
			t.Fatal(err)
		}
		if err := m.takePush(t.Context(), next, s); err != nil {
			t.Fatal(err)
		}
	}
	got := &v1alpha1.PushSecret{}
	if _, err := m.get(t.Context(), m.name, got); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.PushSecretSpec{DeletionPolicy: v1alpha1.PushDeletionDelete, Data: to.Spec.Data}
	if diff := cmp.Diff(want, got.Spec); diff != "" || len(got.Finalizers) != 1 {
		t.Errorf("finalizers %q; spec: -want, +got:\n%s", got.Finalizers, diff)
	}
}
