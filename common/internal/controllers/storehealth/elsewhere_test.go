package storehealth

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1alpha1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// book is a ledger whose content a test can read.
type book map[types.NamespacedName]metrics.State

func (b book) Set(key types.NamespacedName, s metrics.State) { b[key] = s }
func (b book) Forget(key types.NamespacedName)               { delete(b, key) }

// running is a board of operators that serve the Kind; self is the index of the operator under test.
type running struct {
	self int
	all  []presence.Member
	wait time.Duration
	// known is true if the operator has known the store for an hour.
	known bool
}

func (r running) Self() presence.Member { return r.all[r.self] }

func (r running) Serving(*v1alpha1.StoreRef, string) []presence.Member { return r.all }

func (r running) MissingClass(_ *v1alpha1.StoreRef, class, _ string, _ time.Time) (missing bool, wait time.Duration) {
	for _, m := range r.all {
		if m.Class == class {
			return false, 0
		}
	}
	return r.wait == 0, r.wait
}

func TestElsewhere(t *testing.T) {
	none, a := presence.Member{Module: "fake"}, presence.Member{Module: "fake", Class: "a"}
	shop, team := presence.Member{Module: "fake", Namespaces: []string{"shop"}}, presence.Member{Module: "fake", Namespaces: []string{"shop", "team"}}
	const message = `no running operator serves the class "b" of FakeStore "s"; correct its spec.controller, or start an operator with --controller-class=b (global.controllerClass in the chart)`
	type want struct {
		// Counted is the reason under which the store is counted; OnObjects the message on its objects; Ready the message of the
		// condition that is written to the store.
		Counted, OnObjects, Ready string
		After                     time.Duration
	}
	reported := want{"ProviderNotRunning", message, message, time.Minute}
	cases := map[string]struct {
		reason string
		board  running
		class  string
		// observed is the generation that an operator has observed; the store has the generation 2.
		observed int64
		deleted  bool
		err      error
		want     want
	}{
		"Served":     {"A store of another class is counted by the operator of that class.", running{all: []presence.Member{none, a}}, "a", 0, false, nil, want{After: time.Minute}},
		"NotRunning": {"A store of a class without running operator is counted and reported here.", running{all: []presence.Member{none, a}}, "b", 0, false, nil, reported},
		"Changed": {
			"An operator whose Leases are in another namespace may be slow to observe a change.", running{all: []presence.Member{none, a}}, "b", 1, false, nil,
			want{Counted: "ProviderNotRunning", After: time.Minute},
		},
		"ChangedBefore": {"A store is reported if no operator observes a change for long.", running{all: []presence.Member{none, a}, known: true}, "b", 1, false, nil, reported},
		"Observed": {
			"An operator whose Leases are in another namespace may serve the store, so it is only counted.", running{all: []presence.Member{none, a}}, "b", 2, false, nil,
			want{Counted: "ProviderNotRunning", After: time.Minute},
		},
		"Raced": {
			"The operator that serves the store may have written its status meanwhile.", running{all: []presence.Member{none, a}}, "b", 0, false,
			kerrors.NewConflict(schema.GroupResource{}, "s", nil), want{Counted: "ProviderNotRunning", Ready: message, After: time.Minute},
		},
		"NotKnown": {"While the running operators are not known yet, the store is not counted, but checked again.", running{all: []presence.Member{none}, wait: time.Second}, "b", 0, false, nil, want{After: time.Second}},
		"Second":   {"Only the first of two operators counts the store.", running{all: []presence.Member{none, a}, self: 1}, "b", 0, false, nil, want{After: time.Minute}},
		"Scoped":   {"Only the first of two operators of one class counts the store, also if they serve different namespaces.", running{all: []presence.Member{shop, team}, self: 1}, "b", 0, false, nil, want{After: time.Minute}},
		"Deleted":  {"A deleted store is no longer counted or reported.", running{all: []presence.Member{none}}, "b", 0, true, nil, want{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			key := types.NamespacedName{Namespace: "shop", Name: "s"}
			counted := book{key: {Status: "True", Reason: "Valid"}}
			var classes presence.MissingClasses
			store := v1alpha1.StoreRef{APIVersion: "fake.direct-secrets.io/v1alpha1", Kind: "FakeStore", Name: "s"}
			classes.Set(store, "shop", "b", "before")
			var got want
			r := &Reconciler{
				known: &kit.Memory[types.NamespacedName, validated]{}, kind: fake.NewServer().Kinds()[0], board: tc.board, classes: &classes, ledger: counted, events: events.NewFakeRecorder(1),
				pool: &dispatch.Pool{}, opts: setup.Options{ControllerClass: tc.board.Self().Class, Now: time.Now}, anyStore: v1alpha1.StoreRef{APIVersion: "fake.direct-secrets.io/v1alpha1", Kind: "FakeStore"},
				client: &test.MockClient{MockStatusPatch: func(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
					raw, err := p.Data(o)
					var patch fakev1alpha1.FakeStore
					if err = errors.Join(err, json.Unmarshal(raw, &patch)); err == nil {
						got.Ready = meta.FindStatusCondition(patch.Status.Conditions, v1alpha1.ConditionReady).Message
					}
					return errors.Join(err, tc.err)
				}},
				cache: &test.MockClient{MockGet: func(_ context.Context, key client.ObjectKey, o client.Object) error {
					if tc.deleted {
						return kerrors.NewNotFound(schema.GroupResource{}, key.Name)
					}
					*o.(*fakev1alpha1.FakeStore) = fakev1alpha1.FakeStore{
						ObjectMeta:        metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 2},
						Spec:              fakev1alpha1.FakeStoreSpec{StoreSpec: v1alpha1.StoreSpec{SourceSpec: v1alpha1.SourceSpec{Controller: tc.class}}},
						StatusSubresource: v1alpha1.StatusSubresource{Status: v1alpha1.StoreStatus{ObservedGeneration: tc.observed}},
					}
					return nil
				}},
			}
			if tc.board.known {
				known, _ := r.known.Get(key, "")
				known.skipped = skipped{2, time.Now().Add(-time.Hour)}
			}
			res, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if err != nil {
				t.Fatal(err)
			}
			_, got.OnObjects = classes.Find(store, "shop")
			got.Counted, got.After = counted[key].Reason, res.RequeueAfter
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nReconcile(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
