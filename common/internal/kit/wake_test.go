package kit

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestWake has a controller with three objects: a new one, one that is not in sync, and one in sync.
func TestWake(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fakev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	resolver, err := resolve.NewResolver(nil, scheme, fake.NewServer().Kinds(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	kind := func(cluster bool) resolve.Route {
		return resolver.Kinds[slices.IndexFunc(resolver.Kinds, func(k resolve.Route) bool { return k.Cluster == cluster })]
	}
	labelled := func(o client.Object, value string) client.Object {
		o.SetNamespace("shop")
		o.SetLabels(map[string]string{"team": value})
		return o
	}
	type want struct {
		Queued, Freed []string
		// Namespace is the one whose objects were looked for.
		Namespace string
	}
	waiting := []string{"new", "failed"}
	cases := map[string]struct {
		reason string
		event  func(w *Wake[string])
		want   want
	}{
		"Changed": {
			"A store that changes wakes the objects that wait, new ones first.",
			func(w *Wake[string]) {
				w.stores(kind(false)).Update(t.Context(), event.UpdateEvent{ObjectOld: labelled(&fakev1.FakeStore{}, "a"), ObjectNew: labelled(&fakev1.FakeStore{}, "b")}, nil)
			}, want{waiting, waiting, "shop"},
		},
		"ClusterChanged": {
			"A cluster store that changes also lets the others check whether it admits them, without a read.",
			func(w *Wake[string]) {
				w.stores(kind(true)).Update(t.Context(), event.UpdateEvent{ObjectOld: labelled(&fakev1.ClusterFakeStore{}, "a"), ObjectNew: labelled(&fakev1.ClusterFakeStore{}, "b")}, nil)
			}, want{[]string{"new", "failed", "synced"}, waiting, ""},
		},
		"Unchanged": {
			"A store whose status is written wakes no object.",
			func(w *Wake[string]) {
				w.stores(kind(true)).Update(t.Context(), event.UpdateEvent{ObjectOld: labelled(&fakev1.ClusterFakeStore{}, "a"), ObjectNew: labelled(&fakev1.ClusterFakeStore{}, "a")}, nil)
			}, want{},
		},
		"Namespace": {
			"A namespace whose labels change lets all objects check whether cluster stores admit them, those in sync without a read.",
			func(w *Wake[string]) {
				w.namespaces().Update(t.Context(), event.UpdateEvent{ObjectOld: &metav1.PartialObjectMetadata{}, ObjectNew: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"a": "b"}}}}, nil)
			}, want{[]string{"failed", "synced", "new"}, []string{"failed", "new"}, "shop"},
		},
		"Credentials": {
			"Credentials of a namespace wake its objects that wait.",
			func(w *Wake[string]) {
				w.credentials(t.Context(), refresh.Event{Kind: kind(true).Kind, Store: types.NamespacedName{Name: "s"}, Namespace: "shop"})
			}, want{waiting, waiting, "shop"},
		},
		"OtherKind": {
			"Credentials for a Kind of another module wake no object.",
			func(w *Wake[string]) {
				w.credentials(t.Context(), refresh.Event{Kind: fake.NewServer().GeneratorKinds()[0], Namespace: "shop"})
			}, want{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			w := &Wake[string]{
				Resolver: resolver,
				Referrers: func(_ context.Context, _ resolve.Route, _ types.NamespacedName, namespace string) []Referrer[string] {
					got.Namespace = namespace
					return []Referrer[string]{{Object: "failed", Waits: true}, {Object: "synced"}, {Object: "new", New: true, Waits: true}}
				},
				Enqueue: func(o string, _ int, _ time.Duration) {
					if !slices.Contains(got.Queued, o) {
						got.Queued = append(got.Queued, o)
					}
				},
				Free: func(o string) {
					if !slices.Contains(got.Freed, o) {
						got.Freed = append(got.Freed, o)
					}
				},
			}
			tc.event(w)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
