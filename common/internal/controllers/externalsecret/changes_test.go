package externalsecret

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

func TestChanges(t *testing.T) {
	key, other := types.NamespacedName{Namespace: "team", Name: "a"}, types.NamespacedName{Namespace: "team", Name: "b"}
	first := time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)
	second := first.Add(time.Minute)
	cases := map[string]struct {
		reason string
		do     func(o *objects)
		at     int64
		want   time.Time
	}{
		"None":      {"Nothing has changed.", func(*objects) {}, 1, time.Time{}},
		"Changed":   {"A change is taken with its generation.", func(o *objects) { o.changed(key, 1, first) }, 1, first},
		"Later":     {"A change is taken with a later generation, too.", func(o *objects) { o.changed(key, 1, first) }, 2, first},
		"Earlier":   {"A change is not taken with an earlier generation.", func(o *objects) { o.changed(key, 2, first) }, 1, time.Time{}},
		"Again":     {"After two changes, the time of the first one counts.", func(o *objects) { o.changed(key, 1, first); o.changed(key, 2, second) }, 2, first},
		"Taken":     {"A change is taken only once.", func(o *objects) { o.changed(key, 1, first); o.taken(key, 1) }, 1, time.Time{}},
		"Other":     {"A change of another object does not count.", func(o *objects) { o.changed(other, 1, first) }, 1, time.Time{}},
		"Unchanged": {"A dropped change does not count.", func(o *objects) { o.changed(key, 1, first); o.unchanged(key) }, 1, time.Time{}},
		"Forgotten": {"A change is dropped with its object.", func(o *objects) { o.changed(key, 1, first); o.forget(key) }, 1, time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &objects{}
			tc.do(o)
			if got := o.taken(key, tc.at); !got.Equal(tc.want) {
				t.Errorf("\n%s\ntaken(): %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestChangesOfReplicas sends events of objects that no worker of this replica reconciles, for example because it is
// a standby replica or all workers are busy. Only changes that no replica has reconciled are kept.
func TestChangesOfReplicas(t *testing.T) {
	object := func(generation, observed int64, label string) *v1alpha1.ExternalSecret {
		return &v1alpha1.ExternalSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", UID: "u", Generation: generation, Labels: map[string]string{"label": label}},
			Spec:       v1alpha1.ExternalSecretSpec{StoreRef: &v1alpha1.StoreRef{Kind: "FakeStore", Name: "s"}},
			Status:     v1alpha1.ExternalSecretStatus{ObservedGeneration: observed},
		}
	}
	cases := map[string]struct {
		reason   string
		isLeader bool
		// versions of one object, of which the first is new.
		versions []*v1alpha1.ExternalSecret
		deleted  bool
		want     []int64
	}{
		"New":            {"A new object is kept: this replica may become the leader.", false, []*v1alpha1.ExternalSecret{object(1, 0, "")}, false, []int64{1}},
		"Synced":         {"The leader has synced the object, so a standby replica does not collect changes for years.", false, []*v1alpha1.ExternalSecret{object(1, 0, ""), object(1, 1, "")}, false, nil},
		"SyncedBefore":   {"The leader has synced the first generation, and not the change after it.", false, []*v1alpha1.ExternalSecret{object(1, 0, ""), object(2, 0, ""), object(2, 1, "")}, false, []int64{1}},
		"Changed":        {"A change of an object that was in sync is kept.", false, []*v1alpha1.ExternalSecret{object(1, 0, ""), object(1, 1, ""), object(2, 1, "")}, false, []int64{2}},
		"Labelled":       {"A change outside of the spec is kept, too.", false, []*v1alpha1.ExternalSecret{object(1, 0, ""), object(1, 1, ""), object(1, 1, "new")}, false, []int64{1}},
		"Gone":           {"A deleted object is dropped.", false, []*v1alpha1.ExternalSecret{object(1, 0, "")}, true, nil},
		"Leading":        {"The leader takes a change once the Secret is written; the status does not show that.", true, []*v1alpha1.ExternalSecret{object(1, 0, ""), object(1, 1, "")}, false, []int64{1}},
		"LeadingDeleted": {"The leader drops a deleted object, too.", true, []*v1alpha1.ExternalSecret{object(1, 0, "")}, true, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			elected := make(chan struct{})
			if tc.isLeader {
				close(elected)
			}
			all := handlers{referrers: fakeReferrers(t, nil, Options{}), objects: &objects{}, elected: elected, now: time.Now, interrupt: func(reconcile.Request) {}}
			h, ok := all.objectEvents().(handler.Funcs)
			if !ok {
				t.Fatal("the handler is not a handler.Funcs")
			}
			h.CreateFunc(context.Background(), event.CreateEvent{Object: tc.versions[0]}, q)
			for i, is := range tc.versions[1:] {
				h.UpdateFunc(context.Background(), event.UpdateEvent{ObjectOld: tc.versions[i], ObjectNew: is}, q)
			}
			if tc.deleted {
				h.DeleteFunc(context.Background(), event.DeleteEvent{Object: tc.versions[len(tc.versions)-1]}, q)
			}
			var got []int64
			for c := range maps.Values(all.objects.changes) {
				got = append(got, c.generation)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nchanges: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
