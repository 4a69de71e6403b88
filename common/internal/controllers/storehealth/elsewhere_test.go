package storehealth

import (
	"context"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
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
	missing := book{{Namespace: "shop", Name: "s"}: {Status: "False", Reason: "ProviderNotRunning"}}
	before := book{{Namespace: "shop", Name: "s"}: {Status: "True", Reason: "Valid"}}
	type want struct {
		Ledger book
		After  time.Duration
	}
	cases := map[string]struct {
		reason  string
		board   running
		class   string
		deleted bool
		ledger  book
		want    want
	}{
		"Served":     {"A store of another class is counted by the operator of that class.", running{all: []presence.Member{none, a}}, "a", false, before, want{book{}, time.Minute}},
		"NotRunning": {"A store of a class without running operator is counted here.", running{all: []presence.Member{none, a}}, "b", false, before, want{missing, time.Minute}},
		"NotKnown":   {"While the running operators are not known yet, the store is not counted, but checked again.", running{all: []presence.Member{none}, wait: time.Hour}, "b", false, before, want{book{}, time.Hour}},
		"Second":     {"Only the first of two operators counts the store.", running{all: []presence.Member{none, a}, self: 1}, "b", false, book{}, want{book{}, time.Minute}},
		"Scoped":     {"Only the first of two operators of one class counts the store, also if they serve different namespaces.", running{all: []presence.Member{shop, team}, self: 1}, "b", false, book{}, want{book{}, time.Minute}},
		"Deleted":    {"A deleted store is no longer counted.", running{all: []presence.Member{none}}, "b", true, missing, want{book{}, 0}},
		"ServedNow":  {"A store whose operator runs again is no longer counted.", running{all: []presence.Member{none, a}}, "a", false, missing, want{book{}, time.Minute}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := want{Ledger: book{}}
			for key, s := range tc.ledger {
				got.Ledger[key] = s
			}
			r := &Reconciler{
				known: &kit.Memory[types.NamespacedName, validated]{}, kind: fake.NewServer().Kinds()[0], opts: setup.Options{ControllerClass: tc.board.Self().Class}, board: tc.board, ledger: got.Ledger,
				cache: &test.MockClient{MockGet: func(_ context.Context, key client.ObjectKey, o client.Object) error {
					if tc.deleted {
						return kerrors.NewNotFound(schema.GroupResource{}, key.Name)
					}
					*o.(*fakev1alpha1.FakeStore) = fakev1alpha1.FakeStore{
						ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
						Spec:       fakev1alpha1.FakeStoreSpec{StoreSpec: v1alpha1.StoreSpec{SourceSpec: v1alpha1.SourceSpec{Controller: tc.class}}},
					}
					return nil
				}},
			}
			res, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "s"}})
			if err != nil {
				t.Fatal(err)
			}
			got.After = res.RequeueAfter
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nReconcile(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
