package pushsecret

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
	"github.com/direct-secrets/direct-secrets/common/provider"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// listing counts the lists of stores at the API server.
type listing struct {
	client.Client
	stores int
	err    error
}

func (l *listing) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if list.GetObjectKind().GroupVersionKind().Group == fakev1.Group || list.GetObjectKind().GroupVersionKind().Kind == "" {
		l.stores++
		if l.err != nil {
			return l.err
		}
	}
	return l.Client.List(ctx, list, opts...)
}

// TestSelectedStores walks over an object with ten references that select stores by labels, while the cache may be behind. The cache
// answers, except before a walk drops what it knows about a store.
func TestSelectedStores(t *testing.T) {
	entries := []v1alpha1.PushEntryStatus{{RemoteKey: "db", ID: "1", Created: true}}
	selected, other := map[string]string{"env": "prod"}, map[string]string{"env": "test"}
	type state struct {
		// cached and live are the labels of the store; nil if it does not exist there.
		cached, live map[string]string
	}
	cases := map[string]struct {
		reason string
		state
		entries []v1alpha1.PushEntryStatus
		err     error
		dryRun  bool
		// lists are the lists of stores at the API server, and kept is true if the status still has the store with its entries.
		lists int
		kept  bool
	}{
		"Selected":   {"The cache shows it.", state{selected, selected}, entries, nil, false, 0, true},
		"Behind":     {"The cache shows former labels.", state{other, selected}, entries, nil, false, 1, true},
		"Missing":    {"The cache does not show the store.", state{nil, selected}, entries, nil, false, 1, true},
		"Deselected": {"A user has changed the labels.", state{other, other}, entries, nil, false, 1, false},
		"Deleted":    {"A user has deleted the store.", state{nil, nil}, entries, nil, false, 1, false},
		"NoEntries":  {"Nothing would be forgotten.", state{other, selected}, nil, nil, false, 0, false},
		"DryRun":     {"A dry run forgets nothing.", state{other, other}, entries, nil, true, 0, true},
		"Fails":      {"It is not known what is selected.", state{other, other}, entries, provider.NewError(provider.Unavailable, "no"), false, 1, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := scenarioOf(t, finalized(func(ps *v1alpha1.PushSecret) {
				ps.Spec.DryRun = tc.dryRun
				ps.Spec.StoreRefs = nil
				for range 10 {
					ps.Spec.StoreRefs = append(ps.Spec.StoreRefs, v1alpha1.PushStoreRef{Kind: "FakeStore", LabelSelector: &metav1.LabelSelector{MatchLabels: selected}})
				}
			}))
			show := func(c client.Client, labels map[string]string) client.Client {
				store := &fakev1.FakeStore{ObjectMeta: simulation.Meta("main"), Spec: fakev1.FakeStoreSpec{Backend: "main"}}
				if store.Labels = labels; labels != nil {
					if err := c.Create(t.Context(), store); err != nil {
						t.Fatal(err)
					}
				}
				return c
			}
			if err := w.api.Delete(t.Context(), &fakev1.FakeStore{ObjectMeta: simulation.Meta("main")}); err != nil {
				t.Fatal(err)
			}
			live := &listing{Client: show(w.api, tc.live), err: tc.err}
			w.client, w.stores.client = live, live
			w.stores.cache = show(simulation.NewClient(simulation.NewProjectServer(), simulation.AtOnce), tc.cached)
			w.recorded(t, tc.entries...)
			_, err := w.Reconcile(t.Context(), requestFor(w.unit.NamespacedName))
			if (err != nil) != (tc.err != nil) {
				t.Fatal(err)
			}
			is := &v1alpha1.PushSecret{}
			if err := w.api.Get(t.Context(), w.unit.NamespacedName, is); err != nil {
				t.Fatal(err)
			}
			kept := len(is.Status.Stores) == 1 && cmp.Equal(tc.entries, is.Status.Stores[0].Entries)
			if diff := cmp.Diff([]any{tc.lists, tc.kept}, []any{live.stores, kept}); diff != "" {
				t.Errorf("%s\nlists of stores, and whether the status has the entries: -want, +got:\n%s\n%+v", tc.reason, diff, is.Status.Stores)
			}
		})
	}
}

// TestRemovalFromSelectedStore takes a key out of the spec while the cache shows that the store is selected.
func TestRemovalFromSelectedStore(t *testing.T) {
	selected := map[string]string{"env": "prod"}
	cases := map[string]struct {
		reason string
		live   map[string]string
		stays  bool
	}{
		"Selected":   {"The store is still selected.", selected, false},
		"Deselected": {"Remote secrets stay in a store that is no longer selected.", nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := scenarioOf(t, finalized(func(ps *v1alpha1.PushSecret) {
				ps.Spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "FakeStore", LabelSelector: &metav1.LabelSelector{MatchLabels: selected}}}
			}))
			cached := &fakev1.FakeStore{ObjectMeta: simulation.Meta("main")}
			cached.Labels = selected
			w.stores.cache = simulation.NewClient(simulation.NewProjectServer(), simulation.AtOnce)
			if err := w.stores.cache.(client.Client).Create(t.Context(), cached); err != nil {
				t.Fatal(err)
			}
			store := &fakev1.FakeStore{}
			if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: simulation.Namespace, Name: "main"}, store); err != nil {
				t.Fatal(err)
			}
			store.Labels = tc.live
			if err := w.api.Update(t.Context(), store); err != nil {
				t.Fatal(err)
			}
			w.walk(t)
			if w.push(t); !w.there(t) {
				t.Fatal("nothing was pushed")
			}
			w.refresh(t)
			w.ps.Spec.Data[0].Match.RemoteRef.RemoteKey = "other"
			if err := w.api.Update(t.Context(), w.ps); err != nil {
				t.Fatal(err)
			}
			w.refresh(t)
			w.walk(t)
			w.push(t)
			w.refresh(t)
			if w.push(t); w.there(t) != tc.stays {
				t.Errorf("%s The remote secret stays: %t, want %t", tc.reason, w.there(t), tc.stays)
			}
		})
	}
}
