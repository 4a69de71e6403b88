package pushsecret

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// behind is a cache whose index does not have the last pushes yet.
type behind struct{ client.Reader }

func (b behind) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*v1alpha1.PushSecretList); ok {
		return nil
	}
	return b.Reader.List(ctx, list, opts...)
}

// TestNotifyAhead checks which events about a remote secret queue an object at its store before the cache shows that the object has
// pushed it.
func TestNotifyAhead(t *testing.T) {
	written := func(t *testing.T, w *scenario) {
		w.push(t)
	}
	cases := map[string]struct {
		reason string
		push   func(*testing.T, *scenario)
		key    string
		// version is that of the event; "own" is that of the push.
		version string
		// matched is true if the object pushes the secret, and queued if it is compared.
		matched, queued bool
	}{
		"Before":  {"It has pushed nothing.", func(*testing.T, *scenario) {}, "db", "2", false, false},
		"Written": {"The cache does not show the status yet.", written, "db", "2", true, true},
		"Unknown": {"The event has no version.", written, "db", "", true, true},
		"Own":     {"The event is that of the push.", written, "db", "own", true, false},
		"Other":   {"The event is about another secret.", written, "other", "2", false, false},
		"Shown": {"The index of the cache has it, so it is not searched for twice.", func(t *testing.T, w *scenario) {
			written(t, w)
			shows(t, w)
		}, "db", "2", false, false},
		"Deleted": {"The object is deleted.", func(t *testing.T, w *scenario) {
			written(t, w)
			w.forget(w.unit.NamespacedName)
		}, "db", "2", false, false},
		"Running": {"The call that writes it has not returned.", func(t *testing.T, w *scenario) {
			release := w.backend.Inject(fake.Fault{Call: fake.CallCreate, Hang: true})
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = w.Push(t.Context(), w.unit)
			}()
			t.Cleanup(func() {
				release()
				<-done
			})
			controlplane.Eventually(t, func() string {
				if w.backend.Count(fake.CallCreate) == 0 {
					return "the push has not begun"
				}
				return ""
			})
		}, "db", "2", true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := scenarioOf(t, finalized())
			w.walk(t)
			w.cache = behind{w.api}
			tc.push(t, w)
			queued := 0
			w.notified = func(unit, any, time.Duration) { queued++ }
			if tc.version == "own" {
				tc.version = w.backend.Versions("db")[0]
			}
			k, _ := w.route(w.ps.Spec.StoreRefs[0])
			c := &refresh.Change{
				Secrets: []refresh.Secret{{Keys: []string{tc.key}, Version: tc.version, MayBeOf: func(string) bool { return true }}},
				Stores:  map[types.NamespacedName]bool{k.Key(w.unit.store.name, w.unit.Namespace): true},
				Admits:  func(string) bool { return true },
			}
			w.notify(t.Context(), k, c)
			if diff := cmp.Diff([]bool{tc.matched, tc.queued}, []bool{c.Secrets[0].Matched, queued > 0}); diff != "" {
				t.Errorf("%s\nmatched, and queued: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// shows has the watch report an object as the API server has it.
func shows(t *testing.T, w *scenario) {
	t.Helper()
	is := &v1alpha1.PushSecret{}
	if err := w.api.Get(t.Context(), w.unit.NamespacedName, is); err != nil {
		t.Fatal(err)
	}
	w.note(is)
}
