package pushsecret

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// scenario is an API server with one object, its store and its Secret, and a reconciler whose walks a test starts.
type scenario struct {
	*reconciler

	api     client.Client
	backend *fake.Backend
	ps      *v1alpha1.PushSecret
	obj     *object
	unit    unit
}

func scenarioOf(t *testing.T, ps *v1alpha1.PushSecret) *scenario {
	t.Helper()
	c := simulation.NewClient(simulation.NewProjectServer(), simulation.AtOnce)
	server := fake.NewServer()
	for _, o := range []client.Object{
		&fakev1.FakeStore{ObjectMeta: simulation.Meta("main"), Spec: fakev1.FakeStoreSpec{Backend: "main"}}, ps,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: simulation.Namespace}},
		&corev1.Secret{ObjectMeta: simulation.Meta("source"), Data: map[string][]byte{"password": []byte("one")}},
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	o := setup.Options{
		Module: fakev1.Group, Kinds: server.Kinds(), Times: setup.Times{CallTimeout: time.Minute}, Now: time.Now, Random: half,
		Suspect: func(provider.Kind, types.NamespacedName) {},
	}
	routes, err := resolve.NewResolver(c, simulation.Scheme(), o.Kinds, "", false)
	if err != nil {
		t.Fatal(err)
	}
	mem, watched, woken := newMemory(), simulation.NewWatches(), func(types.NamespacedName) {}
	r := &reconciler{
		claim: claimOf(o.Module, "", routes), client: c, cache: c, memory: mem, peers: mem, stores: storeReader{client: c, cache: c, scheme: simulation.Scheme(), routes: routes}, wake: woken,
		start:  func(unit, int) {},
		follow: follower{watches: watched, wake: woken},
		runner: &runner{
			pool:       dispatch.NewPool(c, watched, credentials.Rules{Ambient: credentials.AmbientNone}, dispatch.Options{}, nil),
			incomplete: incomplete, timeout: o.CallTimeout,
		},
		events: simulation.Silent{}, opts: o,
	}
	t.Cleanup(func() { r.follow.forget(client.ObjectKeyFromObject(ps)) })
	obj, _ := mem.Get(client.ObjectKeyFromObject(ps), ps.UID)
	obj.show(ps)
	return &scenario{r, c, server.Backend("main"), ps, obj, unit{client.ObjectKeyFromObject(ps), storeID{fakev1.GroupVersion.String(), "FakeStore", "main"}}}
}

// newObject returns the memory of an object.
func newObject() *object {
	o, _ := newMemory().Get(types.NamespacedName{Name: "db"}, "uid")
	return o
}

// push walks over the object at its store.
func (w *scenario) push(t *testing.T) {
	t.Helper()
	if _, err := w.Push(t.Context(), w.unit); err != nil {
		t.Fatal(err)
	}
}

// walk walks over the object.
func (w *scenario) walk(t *testing.T) {
	t.Helper()
	if _, err := w.Reconcile(t.Context(), requestFor(w.unit.NamespacedName)); err != nil {
		t.Fatal(err)
	}
}

// there reports whether the remote secret exists.
func (w *scenario) there(t *testing.T) bool {
	t.Helper()
	b, err := w.backend.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Get(t.Context(), provider.Ref{Key: "db"})
	return err == nil
}

// recorded records entries in the status, as a former process did.
func (w *scenario) recorded(t *testing.T, entries ...v1alpha1.PushEntryStatus) {
	t.Helper()
	stores := []v1alpha1.PushStoreStatus{{APIVersion: w.unit.store.apiVersion, Kind: w.unit.store.kind, Name: w.unit.store.name, Entries: entries}}
	if _, err := status.Apply(t.Context(), w.api, "PushSecret", w.ps, w.manager, map[string]any{"stores": stores}, &v1alpha1.PushSecret{}, nil); err != nil {
		t.Fatal(err)
	}
	w.refresh(t)
}

// deleted records entries in the status, as a former process did, and deletes the object.
func (w *scenario) deleted(t *testing.T, entries ...v1alpha1.PushEntryStatus) {
	t.Helper()
	w.recorded(t, entries...)
	if err := w.api.Delete(t.Context(), w.ps); err != nil {
		t.Fatal(err)
	}
	w.refresh(t)
}

// refresh shows the object as it is at the API server.
func (w *scenario) refresh(t *testing.T) {
	t.Helper()
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(w.ps), w.ps); err != nil {
		t.Fatal(err)
	}
	w.obj.show(w.ps)
}

// finalized returns an object that pushes to a remote secret, with its finalizer.
func finalized(change ...func(*v1alpha1.PushSecret)) *v1alpha1.PushSecret {
	ps := pushes("db", "db")
	ps.Finalizers = []string{fakev1.Group + finalizerName}
	for _, f := range change {
		f(ps)
	}
	return ps
}

// TestPushNeedsFinalizer starts a push whose object has just got deletionPolicy Delete. Nothing is created before the
// object has the finalizer: otherwise its deletion would leave the secret behind.
func TestPushNeedsFinalizer(t *testing.T) {
	w := scenarioOf(t, pushes("db", "db"))
	if w.push(t); w.there(t) {
		t.Error("a secret was created before the object has the finalizer")
	}
	w.walk(t)
	w.refresh(t)
	if w.push(t); !w.there(t) {
		t.Error("no secret was created although the object has the finalizer")
	}
}

// TestInterruptedPush deletes an object whose operator was killed after it had created a secret, and before the status showed it.
// The object must not be released before the secret is deleted, also if a call fails.
func TestInterruptedPush(t *testing.T) {
	for name, call := range map[string]fake.Call{"Reads": fake.CallObserve, "Deletes": fake.CallDelete} {
		t.Run(name, func(t *testing.T) {
			w := scenarioOf(t, finalized())
			writer, err := w.backend.Writer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := writer.Create(t.Context(), provider.Target{Key: "db"}, []byte("one"), string(w.ps.UID)); err != nil {
				t.Fatal(err)
			}
			w.deleted(t, v1alpha1.PushEntryStatus{RemoteKey: "db", Source: "source"})
			w.backend.Inject(fake.Fault{Call: call, Times: 1, Err: provider.NewError(provider.Unavailable, "down")})
			for range 3 {
				w.walk(t)
				w.push(t)
				w.obj.stores.noWait()
				w.walk(t)
				err := w.api.Get(t.Context(), client.ObjectKeyFromObject(w.ps), &v1alpha1.PushSecret{})
				if err != nil && w.there(t) {
					t.Fatal("the object is released, and its secret is left")
				}
			}
			if w.there(t) {
				t.Error("the secret is never deleted")
			}
		})
	}
}

// TestRemadeSecretSurvivesDeletion deletes an object whose status records that the remote secret is another one, although it has
// the mark.
func TestRemadeSecretSurvivesDeletion(t *testing.T) {
	w := scenarioOf(t, finalized())
	writer, err := w.backend.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made, err := writer.Create(t.Context(), provider.Target{Key: "db"}, []byte("one"), string(w.ps.UID))
	if err != nil {
		t.Fatal(err)
	}
	w.deleted(t, v1alpha1.PushEntryStatus{RemoteKey: "db", Source: "source", Version: made.Version, ID: "the former one"})
	for range 3 {
		w.walk(t)
		w.push(t)
	}
	if !w.there(t) {
		t.Error("a secret with another ID than the recorded one was deleted")
	}
}

// TestFailingStoreKeepsNothing deletes an object that may have created something. Its store is down, so this cannot be checked. That
// must not keep the object for ever.
func TestFailingStoreKeepsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		after    time.Duration
		released bool
	}{"AtFirst": {0, false}, "Later": {releaseTimeout + time.Minute, true}} {
		t.Run(name, func(t *testing.T) {
			s := scenarioOf(t, finalized())
			s.deleted(t, v1alpha1.PushEntryStatus{RemoteKey: "db", Source: "source"})
			s.backend.Inject(fake.Fault{Call: fake.CallObserve, Err: provider.NewError(provider.Unavailable, "down")})
			s.opts.Now = func() time.Time { return time.Now().Add(tc.after) }
			s.walk(t)
			s.push(t)
			s.walk(t)
			released := s.api.Get(t.Context(), client.ObjectKeyFromObject(s.ps), &v1alpha1.PushSecret{}) != nil
			if diff := cmp.Diff(tc.released, released); diff != "" {
				t.Errorf("released: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestDryRunRemovesNothing starts a dry run of an object while a removal is due. It must not be made again and again.
func TestDryRunRemovesNothing(t *testing.T) {
	w := scenarioOf(t, finalized(func(ps *v1alpha1.PushSecret) { ps.Spec.DryRun = true }))
	w.recorded(t, v1alpha1.PushEntryStatus{RemoteKey: "former", Version: "1", ID: "1", Created: true, RemoveAfter: &metav1.Time{Time: time.Now().Add(-time.Minute)}})
	w.walk(t)
	for range 2 {
		if res, err := w.Push(t.Context(), w.unit); err != nil || res.RequeueAfter > 0 {
			t.Errorf("error %v, again after %s", err, res.RequeueAfter)
		}
	}
}
