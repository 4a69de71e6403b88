package pushsecret

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
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
			Module: fakev1.Group, Kinds: run.Store.Kinds(op), Times: setup.Times{CallTimeout: time.Minute, RemoveDelay: RemoveDelay}, Now: time.Now,
			Random: func() float64 { return 0.5 }, Suspect: func(provider.Kind, types.NamespacedName) {},
		}
		routes, err := resolve.NewResolver(op.Cache, simulation.Scheme(), o.Kinds, "", false)
		if err != nil {
			panic(err)
		}
		watched := simulation.NewWatches()
		mem := newMemory()
		stores := storeReader{client: op.Live, cache: op.Cache, scheme: simulation.Scheme(), routes: routes}
		r := &reconciler{
			claim: claimOf(o.Module, "", routes), client: op.Live, cache: op.Cache, memory: mem, peers: mem, stores: stores, wake: op.Enqueue,
			follow: follower{watches: watched, wake: op.Enqueue},
			runner: &runner{
				pool:       dispatch.NewPool(op.Live, watched, credentials.Rules{Ambient: credentials.AmbientNone}, dispatch.Options{}, nil),
				incomplete: incomplete, timeout: o.CallTimeout,
			},
			events: &reports{run: run}, opts: o,
		}
		r.start = starts(op, r)
		for _, f := range change {
			f(r)
		}
		op.Reconcile = r.Reconcile
		op.End = func() {
			for _, key := range mem.Keys(nil) {
				watched.Remove(owner(key))
			}
		}
		op.Cache.Watch(&fakev1.FakeStore{}, nil, nil, nil)
		op.Cache.Watch(&fakev1.ClusterFakeStore{}, nil, nil, nil)
		op.Cache.Watch(&corev1.Namespace{}, nil, nil, nil)
		op.Cache.Watch(&v1alpha1.PushSecret{}, nil, nil, r.objectEvents())
	}
}

// starts returns a function that starts walks over objects at their stores, one at a time for each.
func starts(op *simulation.Operator, r *reconciler) func(unit, int) {
	var mu sync.Mutex
	again := map[unit]bool{} // for those that are running
	var walk func(unit)
	walk = func(u unit) {
		res, err := r.Push(op.Context, u)
		switch {
		case op.Context.Err() != nil:
			return
		case err != nil:
			op.EnqueueAfter(u.NamespacedName, time.Second)
		case res.RequeueAfter > 0:
			op.EnqueueAfter(u.NamespacedName, res.RequeueAfter)
		}
		mu.Lock()
		defer mu.Unlock()
		if again[u] {
			again[u] = false
			go walk(u)
			return
		}
		delete(again, u)
	}
	return func(u unit, _ int) {
		mu.Lock()
		defer mu.Unlock()
		if _, runs := again[u]; runs {
			again[u] = true
			return
		}
		again[u] = false
		go walk(u)
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
	run.Add(pushes("old", "db"))
	setUpEmpty(run, leaders, change...)
}

// setUpEmpty is setUp without the object.
func setUpEmpty(run *simulation.Run, leaders int, change ...func(*reconciler)) {
	run.Add(simulation.FakeStore("main"))
	run.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: simulation.Namespace}})
	run.Add(&corev1.Secret{ObjectMeta: simulation.Meta("source"), Data: map[string][]byte{"password": []byte("one"), "other": []byte("two")}})
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
			if is, there := run.Store.Value("db"); there && !isReported(run, "db") {
				return errors.Errorf("the run has ended without objects, the remote secret still holds %q, and no event names it", is)
			}
			return nil
		}
	}
}

// rename makes an object push to another key, which the store denies.
func rename(leaders, crashes int, change ...func(*reconciler)) func(*simulation.Run) {
	return func(run *simulation.Run) {
		run.Crashes = crashes
		run.Store.Refuse = func(_, verb, key string) error {
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

// rewrites has an object push another value. The older value never replaces the newer one.
func rewrites(leaders, crashes int) func(*simulation.Run) {
	return func(run *simulation.Run) {
		run.Crashes = crashes
		setUp(run, leaders)
		run.Script("user", changes(run)...)
		values, seen := []string{"", "one", "two"}, 0
		run.Digest = func() string { return fmt.Sprint(seen) }
		run.Check = func() error {
			is, _ := run.Store.Value("db")
			i := slices.Index(values, is)
			if i < seen {
				return errors.Errorf("the remote secret held %q and now holds %q", values[seen], is)
			}
			seen = i
			return nil
		}
		run.Final = func() error {
			if is := values[seen]; is != "two" {
				return errors.Errorf("at the end the remote secret holds %q", is)
			}
			return nil
		}
	}
}

// reports is a recorder of events. Each run has one, whichever operator emits the event.
type reports struct{ run *simulation.Run }

// reported are the remote secrets that events of a run have reported as left behind, by run.
var reported sync.Map

// Eventf implements events.EventRecorder.
func (r *reports) Eventf(_, _ runtime.Object, _, reason, _, _ string, args ...any) {
	if reason == "LeftBehind" || reason == "Released" {
		was, _ := reported.Load(r.run)
		all, _ := was.(string)
		reported.Store(r.run, all+fmt.Sprint(args...))
	}
}

// isReported reports whether an event says that a remote secret was left behind.
func isReported(run *simulation.Run, key string) bool {
	all, _ := reported.LoadAndDelete(run)
	text, _ := all.(string)
	return strings.Contains(text, fmt.Sprintf("%q", key))
}

// through returns a change of an object that pushes through another store.
func through(kind, store string) func(*v1alpha1.PushSecret) {
	return func(ps *v1alpha1.PushSecret) { ps.Spec.StoreRefs[0] = v1alpha1.PushStoreRef{Kind: kind, Name: store} }
}

// gitOps replaces an object by another one that pushes to the same remote secret, in one commit: both requests come before the
// operator has seen one of them, or not. If the new object is created first, the secret must exist at all times. Afterwards the new
// object is deleted, too, and the secret must be deleted, or its name reported.
func gitOps(createFirst bool, leaders, crashes int, change func(*v1alpha1.PushSecret)) func(*simulation.Run) {
	return func(run *simulation.Run) {
		run.Crashes = crashes
		setUp(run, leaders)
		run.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
		run.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "source"}, Data: map[string][]byte{"password": []byte("one")}})
		second := pushes("new", "db")
		change(second)
		run.Add(simulation.FakeStore("twin"))
		run.Add(&fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: "twin"}})
		made, replaced := false, false
		there := func() bool {
			_, there := run.Store.Value("db")
			return there
		}
		create := simulation.Step{Label: "create another PushSecret", When: there, Do: func() error {
			made = true
			return run.User().Create(context.Background(), second.DeepCopy(), client.FieldOwner("user"))
		}}
		remove := simulation.Step{Label: "delete the first", When: there, Do: func() error {
			return run.User().Delete(context.Background(), &v1alpha1.PushSecret{ObjectMeta: simulation.Meta("old")})
		}}
		steps := []simulation.Step{create, remove}
		if !createFirst {
			create.When = nil
			steps = []simulation.Step{remove, create}
		}
		run.Script("user", append(steps, simulation.Step{Label: "delete the second", When: func() bool { return there() && exists(run, second) && !exists(run, pushes("old", "")) }, Do: func() error {
			replaced = true
			return run.User().Delete(context.Background(), second.DeepCopy())
		}})...)
		run.Digest = func() string { return fmt.Sprint(made, replaced) }
		run.Check = func() error {
			if createFirst && made && !replaced && !there() {
				return errors.New("the remote secret was deleted although an object pushes it")
			}
			return nil
		}
		run.Final = func() error {
			named := isReported(run, "db")
			switch {
			case !replaced:
				return errors.New("the second object has never replaced the first")
			case there() && !named:
				return errors.New("the remote secret is left, and no event names it")
			}
			return nil
		}
	}
}

// early deletes an object as soon as another one pushes to its remote secret, which must exist at all times.
func early(guards ...func(*reconciler)) func(*simulation.Run) {
	return func(run *simulation.Run) {
		setUp(run, 1, guards...)
		there := func() bool {
			_, there := run.Store.Value("db")
			return there
		}
		made := false
		run.Script("user",
			simulation.Step{Label: "create another PushSecret, and delete the first", When: there, Do: func() error {
				made = true
				if err := run.User().Create(context.Background(), pushes("new", "db"), client.FieldOwner("user")); err != nil {
					return err
				}
				return run.User().Delete(context.Background(), &v1alpha1.PushSecret{ObjectMeta: simulation.Meta("old")})
			}})
		run.Digest = func() string { return fmt.Sprint(made) }
		run.Check = func() error {
			if made && !there() {
				return errors.New("the remote secret was deleted although an object pushes it")
			}
			return nil
		}
	}
}

// slowly replaces an object in one commit by another one whose store does not answer until the removal by the first is long due.
func slowly(guards ...func(*reconciler)) func(*simulation.Run) {
	return func(run *simulation.Run) {
		setUp(run, 1, guards...)
		run.Add(simulation.FakeStore("twin"))
		var since time.Time
		run.Store.Login = func(store string) error {
			if store == "twin" && (since.IsZero() || time.Since(since) < RemoveDelay+push.Far) {
				return provider.NewError(provider.Unavailable, "no")
			}
			return nil
		}
		there := func() bool {
			_, there := run.Store.Value("db")
			return there
		}
		run.Script("user", simulation.Step{Label: "replace the object", When: there, Do: func() error {
			since = time.Now()
			ps := pushes("new", "db")
			through("FakeStore", "twin")(ps)
			if err := run.User().Create(context.Background(), ps, client.FieldOwner("user")); err != nil {
				return err
			}
			return run.User().Delete(context.Background(), &v1alpha1.PushSecret{ObjectMeta: simulation.Meta("old")})
		}})
		run.Digest = func() string { return fmt.Sprint(since.IsZero()) }
		run.Check = func() error {
			if !since.IsZero() && !there() {
				return errors.New("the remote secret was deleted although an object pushes it")
			}
			return nil
		}
	}
}

// generates returns an object that pushes a value of a generator unless the remote secret exists.
func generates(name string) *v1alpha1.PushSecret {
	ps := pushes(name, "db")
	ps.Spec.UpdatePolicy = v1alpha1.UpdateIfNotExists
	ps.Spec.Selector = v1alpha1.PushSelector{GeneratorRef: &v1alpha1.StoreRef{Kind: "FakeGenerator", Name: "gen"}}
	return ps
}

// generator returns the step in which another module hands over a value for an object.
func generator(run *simulation.Run, name, value string) simulation.Step {
	return simulation.Step{Label: "make a value for " + name, When: func() bool { return exists(run, generates(name)) }, Do: func() error {
		ctx, ps := context.Background(), &v1alpha1.PushSecret{}
		if err := run.User().Get(ctx, simulation.Name(name), ps); err != nil {
			return err
		}
		ref := *ps.Spec.Selector.GeneratorRef
		data, err := handoff.Values{Current: map[string][]byte{"password": []byte(value)}}.Encode()
		if err != nil {
			return err
		}
		part, err := handoff.Part{
			Record: handoff.Record{Kind: "PushSecret", Name: name, UID: ps.UID, Entries: map[string]handoff.Entry{handoff.ID(ref): {Version: value}}},
			Data:   map[string][]byte{handoff.ID(ref): data},
		}.Write(ctx, run.User(), simulation.Name("part-"+name), nil)
		if err != nil {
			return err
		}
		ps.Status.Parts = []v1alpha1.PartStatus{{Module: "generator", Name: part.Name, UID: part.UID}}
		return run.User().Status().Update(ctx, ps)
	}}
}

// generated replaces an object that pushes a generated value unless there is one by another such object, in one commit. From then
// on the remote secret must keep the first value, until the second object is deleted, too.
func generated(leaders, crashes int, guards ...func(*reconciler)) func(*simulation.Run) {
	return func(run *simulation.Run) {
		run.Crashes = crashes
		setUpEmpty(run, leaders, guards...)
		run.Add(generates("old"))
		made, replaced := false, false
		value := func() string {
			is, _ := run.Store.Value("db")
			return is
		}
		run.Script("generator", generator(run, "old", "one"), generator(run, "new", "two"))
		run.Script("user",
			simulation.Step{Label: "create another PushSecret, and delete the first", When: func() bool { return value() != "" }, Do: func() error {
				made = true
				if err := run.User().Create(context.Background(), generates("new"), client.FieldOwner("user")); err != nil {
					return err
				}
				return run.User().Delete(context.Background(), generates("old"))
			}},
			simulation.Step{Label: "delete the second", When: func() bool { return !exists(run, generates("old")) }, Do: func() error {
				replaced = true
				return run.User().Delete(context.Background(), generates("new"))
			}})
		run.Digest = func() string { return fmt.Sprint(made, replaced) }
		run.Check = func() error {
			if is := value(); made && !replaced && is != "one" || is == "two" {
				return errors.Errorf("the remote secret held %q and now holds %q", "one", is)
			}
			return nil
		}
		run.Final = func() error {
			if is := value(); !replaced || is != "" && !isReported(run, "db") {
				return errors.Errorf("the remote secret holds %q, and no event names it (the second object was deleted: %t)", is, replaced)
			}
			return nil
		}
	}
}

// exists reports whether an object exists.
func exists(run *simulation.Run, ps *v1alpha1.PushSecret) bool {
	return run.User().Get(context.Background(), client.ObjectKeyFromObject(ps), &v1alpha1.PushSecret{}) == nil
}

// appears deletes an object, and creates another one for its remote secret a time later, which pushes it in the end.
func appears(after time.Duration) func(*simulation.Run) {
	return func(run *simulation.Run) {
		setUp(run, 1)
		var deleted time.Time
		run.Script("user",
			simulation.Step{Label: "delete the first", When: func() bool { _, there := run.Store.Value("db"); return there }, Do: func() error {
				deleted = time.Now()
				return run.User().Delete(context.Background(), pushes("old", ""))
			}},
			simulation.Step{Label: "create another PushSecret", When: func() bool {
				return time.Since(deleted) >= after || after > RemoveDelay && !exists(run, pushes("old", ""))
			}, Do: func() error {
				return run.User().Create(context.Background(), pushes("new", "db"), client.FieldOwner("user"))
			}})
		run.Digest = func() string { return fmt.Sprint(deleted.IsZero()) }
		run.Final = func() error {
			if is, there := run.Store.Value("db"); !there || is != "one" {
				return errors.Errorf("the remote secret that an object pushes holds %q (exists: %t)", is, there)
			}
			return nil
		}
	}
}

// jumps sets the clock of an operator to another time, after it was read some times.
func jumps(by time.Duration) func(*reconciler) {
	return func(r *reconciler) {
		var reads atomic.Int64
		now := r.opts.Now
		r.opts.Now = func() time.Time {
			if reads.Add(1) > 4 {
				return now().Add(by)
			}
			return now()
		}
	}
}

// elsewhere lets an object of another namespace push through a cluster store.
func elsewhere(ps *v1alpha1.PushSecret) {
	ps.Namespace = "other"
	through("ClusterFakeStore", "twin")(ps)
}

// keeps lets another object push to a remote secret, stops that object in some way, and deletes the first. The remote secret
// must stay.
func keeps(stop func(run *simulation.Run) error) func(*simulation.Run) {
	return func(run *simulation.Run) {
		setUp(run, 1)
		run.Add(simulation.FakeStore("twin"))
		second := pushes("new", "db")
		through("FakeStore", "twin")(second)
		run.Add(second)
		pushed := func() bool {
			ps := &v1alpha1.PushSecret{}
			return run.User().Get(context.Background(), simulation.Name("new"), ps) == nil && len(ps.Status.Stores) > 0 && len(ps.Status.Stores[0].Entries) > 0 && ps.Status.Stores[0].Entries[0].Version != ""
		}
		run.Script("user",
			simulation.Step{Label: "stop the second", When: pushed, Do: func() error { return stop(run) }},
			simulation.Step{Label: "delete the first", Do: func() error {
				return run.User().Delete(context.Background(), &v1alpha1.PushSecret{ObjectMeta: simulation.Meta("old")})
			}})
		run.Final = func() error {
			if _, there := run.Store.Value("db"); !there {
				return errors.New("the remote secret was deleted although another object uses it")
			}
			return nil
		}
	}
}

// ownServer lets another object push the same key through a store that leads elsewhere, where secrets have the same IDs. It must
// not keep the secret of the first object.
func ownServer(run *simulation.Run) {
	setUp(run, 1)
	own := simulation.FakeStore("own")
	own.Spec.Backend = "own"
	run.Add(own)
	second := pushes("new", "db")
	through("FakeStore", "own")(second)
	run.Add(second)
	both := func() bool {
		_, there := run.Store.Value("db")
		_, elsewhere := run.Store.At("own").Value("db")
		return there && elsewhere
	}
	deleted := false
	run.Script("user", simulation.Step{Label: "delete the first", When: both, Do: func() error {
		deleted = true
		return run.User().Delete(context.Background(), &v1alpha1.PushSecret{ObjectMeta: simulation.Meta("old")})
	}})
	run.Final = func() error {
		_, there := run.Store.Value("db")
		if _, elsewhere := run.Store.At("own").Value("db"); deleted && (there || !elsewhere) {
			return errors.Errorf("the remote secret exists: %t, that of the other place: %t", there, elsewhere)
		}
		return nil
	}
}

// remade lets another tool delete a remote secret and create it again with an equal value. From then on it must stay, whatever
// the object does.
func remade(run *simulation.Run) {
	setUp(run, 1)
	theirs := false
	run.Script("user",
		simulation.Step{Label: "another tool creates the secret again", When: func() bool { _, there := run.Store.Value("db"); return there }, Do: func() error {
			run.Store.Remove("db")
			run.Store.Put("db", "one")
			theirs = true
			return nil
		}},
		simulation.Step{Label: "ask for a comparison", Do: func() error {
			return simulation.Update(run, pushes("old", "db"), func(ps *v1alpha1.PushSecret) {
				ps.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "now"}
			})
		}},
		simulation.Step{Label: "delete the object", Do: func() error {
			return run.User().Delete(context.Background(), &v1alpha1.PushSecret{ObjectMeta: simulation.Meta("old")})
		}})
	run.Digest = func() string { return fmt.Sprint(theirs) }
	run.Check = func() error {
		if is, there := run.Store.Value("db"); theirs && (!there || is != "one") {
			return errors.Errorf("the secret of the other tool holds %q (exists: %t)", is, there)
		}
		return nil
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
		"Rewrite": rewrites(1, 1), "RewriteTwoLeaders": rewrites(2, 0),
		"Early":             early(),
		"Slowly":            slowly(),
		"GitOps":            gitOps(true, 1, 1, func(*v1alpha1.PushSecret) {}),
		"GitOpsDeleteFirst": gitOps(false, 1, 1, func(*v1alpha1.PushSecret) {}),
		"GitOpsStore":       gitOps(true, 1, 0, through("FakeStore", "twin")),
		"GitOpsTwin":        gitOps(true, 1, 0, through("ClusterFakeStore", "twin")),
		"GitOpsLeaders":     gitOps(true, 2, 0, func(*v1alpha1.PushSecret) {}),
		"GitOpsNamespace":   gitOps(true, 1, 0, elsewhere),
		"ClockAhead":        early(jumps(time.Hour)),
		"ClockBack":         early(jumps(-time.Hour)),
		"AppearsDue":        appears(RemoveDelay), "AppearsLater": appears(RemoveDelay + push.Near),
		"Suspended": keeps(func(run *simulation.Run) error {
			return simulation.Update(run, pushes("new", "db"), func(ps *v1alpha1.PushSecret) { ps.Spec.Suspend = true })
		}),
		"LoginFails": keeps(func(run *simulation.Run) error {
			run.Store.Login = func(store string) error {
				if store == "twin" {
					return provider.NewError(provider.Denied, "no")
				}
				return nil
			}
			return nil
		}),
		"MayOnlyRead": keeps(func(run *simulation.Run) error {
			run.Store.Refuse = func(store, _, _ string) error {
				if store == "twin" {
					return provider.NewError(provider.Denied, "no")
				}
				return nil
			}
			return nil
		}),
		"OwnServer": ownServer, "Remade": remade,
		"Generated": generated(1, 1), "GeneratedTwoLeaders": generated(2, 0),
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
		"GeneratedUsers":   generated(1, 0, func(r *reconciler) { r.peers = &memory{} }),
		"Compared":         slowly(func(r *reconciler) { r.peers = &memory{} }),
		"RemovalsComeLast": rename(1, 0, func(r *reconciler) { r.runner.incomplete = func(*task) bool { return false } }),
	} {
		t.Run(name, func(t *testing.T) { simulation.Breaks(t, build) })
	}
}
