package metrics

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	source "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// pushSecret returns a PushSecret with a deletion timestamp some time after the start; 0 is none.
func pushSecret(name string, deleted time.Duration) *v1alpha1.PushSecret {
	ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	if deleted > 0 {
		at := metav1.NewTime(start.Add(deleted))
		ps.DeletionTimestamp = &at
	}
	return ps
}

func TestDeletions(t *testing.T) {
	const m = time.Minute
	cases := map[string]struct {
		reason string
		events func(d *deletions)
		want   time.Duration
	}{
		"None":    {"No object is being deleted.", func(*deletions) {}, 0},
		"Alive":   {"An object that is not being deleted does not count.", func(d *deletions) { d.see(pushSecret("a", 0)) }, 0},
		"One":     {"A deletion counts from its timestamp, not from when it was seen.", func(d *deletions) { d.see(pushSecret("a", m)) }, 59 * m},
		"Longest": {"The oldest deletion counts.", func(d *deletions) { d.see(pushSecret("a", 20*m)); d.see(pushSecret("b", 10*m)) }, 50 * m},
		"Deleted": {"A deleted object does not count.", func(d *deletions) { d.see(pushSecret("a", m)); d.forget(pushSecret("a", m)) }, 0},
		"OneDeleted": {"The other objects still count.", func(d *deletions) {
			d.see(pushSecret("a", m))
			d.see(pushSecret("b", 2*m))
			d.forget(pushSecret("a", m))
		}, 58 * m},
		"Replaced": {"An object created again under the same name does not count.", func(d *deletions) { d.see(pushSecret("a", m)); d.see(pushSecret("a", 0)) }, 0},
		"Unseen": {
			"An object deleted during a broken watch is dropped by its key.",
			func(d *deletions) {
				d.see(pushSecret("a", m))
				d.forget(toolscache.DeletedFinalStateUnknown{Key: "team/a"})
			},
			0,
		},
		"NoObject": {"Anything that is not an object is ignored.", func(d *deletions) { d.see("a"); d.forget(1); d.see(pushSecret("a", m)) }, 59 * m},
		"Ahead":    {"A timestamp in the future counts as 0.", func(d *deletions) { d.see(pushSecret("a", 100*m)) }, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &deletions{}
			tc.events(d)
			if diff := cmp.Diff(tc.want.String(), d.longest(start.Add(time.Hour)).String()); diff != "" {
				t.Errorf("\n%s\nlongest(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// watching is a cache with one informer.
type watching struct {
	cache.Cache

	informer toolscache.SharedIndexInformer
	err      error
}

func (w *watching) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return w.informer, w.err
}

// leading is a manager that runs each added Runnable at once.
type leading struct {
	manager.Manager
	ctx   context.Context //nolint:containedctx // It is the context of the test.
	cache cache.Cache
	ended chan error
}

func (l *leading) GetCache() cache.Cache { return l.cache }

func (l *leading) Add(r manager.Runnable) error {
	go func() { l.ended <- r.Start(l.ctx) }()
	return nil
}

// TestFollowing uses a real informer. The Ledger has a Kind of its own, so that no other test counts in it.
func TestFollowing(t *testing.T) {
	objects := source.NewFakeControllerSource()
	objects.Add(pushSecret("before", time.Minute))
	w := &watching{informer: toolscache.NewSharedIndexInformer(objects, &v1alpha1.PushSecret{}, 0, toolscache.Indexers{})}
	go w.informer.RunWithContext(t.Context())
	mgr := &leading{ctx: t.Context(), cache: w, ended: make(chan error, 1)}
	after := WithClock(func() time.Time { return start.Add(time.Hour) })
	if _, err := New(mgr, "Followed", after, Following(&v1alpha1.PushSecret{})); err != nil {
		t.Fatal(err)
	}
	shows := func(reason, want string) {
		t.Helper()
		controlplane.Eventually(t, func() string {
			got := ""
			for _, line := range gather(t, every) {
				if line == "directsecrets_deletion_pending_seconds{Followed} "+want {
					return ""
				}
				got += line + "\n"
			}
			return reason + ": want " + want + " of:\n" + got
		})
	}
	shows("an object in deletion at the start counts", "3540")
	objects.Add(pushSecret("lives", 0))
	objects.Delete(pushSecret("before", time.Minute))
	shows("it is deleted", "0")
	objects.Modify(pushSecret("lives", 10*time.Minute))
	shows("another object is being deleted", "3000")

	boom := errors.New("boom")
	w.err = boom
	if _, err := New(mgr, "Unwatched", Following(&v1alpha1.PushSecret{})); err != nil {
		t.Fatal(err)
	}
	if err := <-mgr.ended; !errors.Is(err, boom) {
		t.Errorf("a failed watch returns %v, want %v", err, boom)
	}
}
