package pushsecret

import (
	"context"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
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
	"github.com/direct-secrets/direct-secrets/common/provider"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// simulated returns a setup that turns a simulated operator into one that pushes. change may disable a guard.
func simulated(run *simulation.Run, change ...func(*reconciler)) func(*simulation.Operator) {
	return func(op *simulation.Operator) {
		o := setup.Options{
			Module: fakev1.Group, Kinds: run.Store.Kinds(op), CallTimeout: time.Minute, Now: time.Now,
			Random: func() float64 { return 0.5 }, Suspect: func(provider.Kind, types.NamespacedName) {},
		}
		routes, err := resolve.NewResolver(op.Cache, simulation.Scheme(), o.Kinds, "", false)
		if err != nil {
			panic(err)
		}
		watched := simulation.NewWatches()
		mem := newMemory()
		stores := storeReader{client: op.Live, routes: routes}
		r := &reconciler{
			claim: claimOf(o.Module, "", routes), client: op.Live, cache: op.Cache, memory: mem, peers: mem, stores: stores, wake: op.Enqueue,
			crowded: func(unit) bool { return false },
			follow:  follower{watches: watched, wake: op.Enqueue},
			runner: &runner{
				pool:       dispatch.NewPool(op.Live, watched, credentials.Rules{Ambient: credentials.AmbientNone}, dispatch.Options{}, nil),
				incomplete: incomplete, timeout: o.CallTimeout,
			},
			events: simulation.Silent{}, opts: o,
		}
		r.start = func(u unit, _ int) {
			go func() {
				if _, err := r.Push(op.Context, u); err != nil && op.Context.Err() == nil {
					op.Enqueue(u.NamespacedName)
				}
			}()
		}
		for _, f := range change {
			f(r)
		}
		op.Reconcile = r.Reconcile
		op.End = func() {
			for _, key := range mem.Keys(nil) {
				watched.Remove(owner(key))
			}
		}
		w := &watches{claim: r.claim, memory: mem}
		op.Cache.Watch(&fakev1.FakeStore{}, nil, nil, nil)
		op.Cache.Watch(&v1alpha1.PushSecret{}, nil, nil, w.objectEvents())
	}
}

// pushes returns an object that pushes to a remote secret, and removes the secret when it is deleted.
func pushes(name, key string) *v1alpha1.PushSecret {
	return &v1alpha1.PushSecret{ObjectMeta: simulation.Meta(name), Spec: v1alpha1.PushSecretSpec{
		StoreRefs: []v1alpha1.PushStoreRef{{Kind: "FakeStore", Name: "main"}}, RefreshInterval: "0",
		DeletionPolicy: v1alpha1.PushDeletionDelete,
		Selector:       v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: "source"}},
		Data:           []v1alpha1.PushData{{Match: v1alpha1.PushMatch{SecretKey: "password", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: key}}}},
	}}
}

// setUp adds a store, a Secret, an object that pushes it, and one or two operators.
func setUp(run *simulation.Run, leaders int, change ...func(*reconciler)) {
	run.Add(simulation.FakeStore("main"))
	run.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: simulation.Namespace}})
	run.Add(&corev1.Secret{ObjectMeta: simulation.Meta("source"), Data: map[string][]byte{"password": []byte("one"), "other": []byte("two")}})
	run.Add(pushes("old", "db"))
	for _, name := range []string{"A", "B"}[:leaders] {
		run.Operator(name, simulated(run, change...))
	}
}

// handOver lets another object push to a remote secret before the object that created it is deleted.
func handOver(leaders, crashes int, change ...func(*reconciler)) func(*simulation.Run) {
	return func(run *simulation.Run) {
		run.Crashes = crashes
		setUp(run, leaders, change...)
		run.Script("user",
			simulation.Step{Label: "create another PushSecret", Do: func() error {
				return run.User().Create(context.Background(), pushes("new", "db"), client.FieldOwner("user"))
			}},
			simulation.Step{Label: "delete the first", Do: func() error {
				return run.User().Delete(context.Background(), &v1alpha1.PushSecret{ObjectMeta: simulation.Meta("old")})
			}},
		)
		run.Final = func() error {
			if is, there := run.Store.Value("db"); !there || is != "one" {
				return errors.Errorf("the run has ended, and the remote secret that an object pushes holds %q (exists: %t)", is, there)
			}
			return nil
		}
	}
}

// goes lets objects push to a remote secret, and deletes them one after another, possibly before the operator sees them.
// The secret must be deleted with the last object.
func goes(names []string, change ...func(*reconciler)) func(*simulation.Run) {
	return ends(names, 1, 0, nil, change...)
}

// changes lets a user change the pushed value.
func changes(run *simulation.Run) []simulation.Step {
	return []simulation.Step{{Label: "push another value", Do: func() error {
		return simulation.Update(run, pushes("old", "db"), func(ps *v1alpha1.PushSecret) { ps.Spec.Data[0].Match.SecretKey = "other" })
	}}}
}

// ends lets objects push to a remote secret, and deletes them one after another, after the steps of first.
func ends(names []string, leaders, crashes int, first func(*simulation.Run) []simulation.Step, change ...func(*reconciler)) func(*simulation.Run) {
	return func(run *simulation.Run) {
		run.Crashes = crashes
		setUp(run, leaders, change...)
		for _, name := range names[1:] {
			run.Add(pushes(name, "db"))
		}
		var steps []simulation.Step
		if first != nil {
			steps = first(run)
		}
		for _, name := range names {
			steps = append(steps, simulation.Step{Label: "delete " + name, Do: func() error {
				return run.User().Delete(context.Background(), &v1alpha1.PushSecret{ObjectMeta: simulation.Meta(name)})
			}})
		}
		run.Script("user", steps...)
		run.Final = func() error {
			if is, there := run.Store.Value("db"); there {
				return errors.Errorf("the run has ended without objects, and the remote secret still holds %q", is)
			}
			return nil
		}
	}
}

// rename makes an object push to another key, which the store denies.
func rename(leaders, crashes int, change ...func(*reconciler)) func(*simulation.Run) {
	return func(run *simulation.Run) {
		run.Crashes = crashes
		run.Store.Refuse = func(verb, key string) error {
			if verb == "create" && key == "renamed" {
				return provider.NewError(provider.Denied, "not allowed")
			}
			return nil
		}
		setUp(run, leaders, change...)
		run.Script("user", simulation.Step{Label: "set another key, which the store denies", Do: func() error {
			return simulation.Update(run, pushes("old", "db"), func(ps *v1alpha1.PushSecret) {
				ps.Spec.Data[0].Match.RemoteRef.RemoteKey = "renamed"
			})
		}})
		made := false
		run.Digest = func() string {
			if made {
				return "made"
			}
			return ""
		}
		run.Check = func() error {
			_, there := run.Store.Value("db")
			if made && !there {
				return errors.New("the old remote secret was deleted, and there is no new one")
			}
			made = made || there
			return nil
		}
	}
}

// TestInterleavings explores hand-overs and renames of remote secrets.
func TestInterleavings(t *testing.T) {
	for name, build := range map[string]func(*simulation.Run){
		"HandOver": handOver(1, 1), "HandOverTwoLeaders": handOver(2, 0),
		"TakeOver": goes([]string{"old", "new"}), "Deleted": goes([]string{"old"}),
		"ChangedAndDeleted":        ends([]string{"old"}, 1, 1, changes),
		"ChangedAndDeletedLeaders": ends([]string{"old"}, 2, 0, changes),
		"Rename":                   rename(1, 1), "RenameTwoLeaders": rename(2, 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simulation.Holds(t, build, bounds)
		})
	}
}

// TestFindsFaults disables one guard at a time, and expects the simulation to find a run that fails.
func TestFindsFaults(t *testing.T) {
	for name, build := range map[string]func(*simulation.Run){
		"OtherUsers":       handOver(1, 0, func(r *reconciler) { r.peers = &memory{} }),
		"RemovalsComeLast": rename(1, 0, func(r *reconciler) { r.runner.incomplete = func(*carrying) bool { return false } }),
	} {
		t.Run(name, func(t *testing.T) { simulation.Breaks(t, build) })
	}
}
