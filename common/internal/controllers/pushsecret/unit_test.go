package pushsecret

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestPushNeedsFinalizer starts a push whose object has just got deletionPolicy Delete. Nothing is created before the
// object has the finalizer: otherwise its deletion would leave the secret behind.
func TestPushNeedsFinalizer(t *testing.T) {
	c := simulation.NewClient(simulation.NewProjectServer(), simulation.AtOnce)
	server := fake.NewServer()
	backend := server.Backend("main")
	ps := pushes("db", "db")
	for _, o := range []client.Object{
		&fakev1.FakeStore{ObjectMeta: simulation.Meta("main"), Spec: fakev1.FakeStoreSpec{Backend: "main"}}, ps,
		&corev1.Secret{ObjectMeta: simulation.Meta("source"), Data: map[string][]byte{"password": []byte("one")}},
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	o := setup.Options{Module: fakev1.Group, Kinds: server.Kinds(), CallTimeout: time.Minute, Now: time.Now, Random: half}
	routes, err := resolve.NewResolver(c, simulation.Scheme(), o.Kinds, "", false)
	if err != nil {
		t.Fatal(err)
	}
	mem, watched, stores, woken := newMemory(), simulation.NewWatches(), storeReader{client: c, routes: routes}, func(types.NamespacedName) {}
	r := &reconciler{
		claim: claimOf(o.Module, "", routes), client: c, cache: c, memory: mem, peers: mem, stores: stores, wake: woken,
		follow: follower{watches: watched, wake: woken},
		runner: &runner{
			pool:       dispatch.NewPool(c, watched, credentials.Rules{Ambient: credentials.AmbientNone}, dispatch.Options{}, nil),
			incomplete: incomplete, timeout: o.CallTimeout, waits: waitsFor,
		},
		events: simulation.Silent{}, opts: o,
	}
	t.Cleanup(func() { r.follow.forget(client.ObjectKeyFromObject(ps)) })
	obj, _ := mem.Get(client.ObjectKeyFromObject(ps), ps.UID)
	push := func() (there bool) {
		t.Helper()
		u := unit{client.ObjectKeyFromObject(ps), storeID{fakev1.GroupVersion.String(), "FakeStore", "main"}}
		if _, err := r.Push(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		b, err := backend.Connect(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Get(t.Context(), provider.Ref{Key: "db"})
		return err == nil
	}
	if push() {
		t.Error("a secret was created before the object has the finalizer")
	}
	obj.held.Store(true)
	if !push() {
		t.Error("no secret was created although the object has the finalizer")
	}
}
