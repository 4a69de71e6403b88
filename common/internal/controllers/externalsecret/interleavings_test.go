package externalsecret

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/controllers/contribution"
	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// simulated runs the ExternalSecret controller in an operator of a simulation. change can disable parts of it.
func simulated(run *simulation.Run, change ...func(*Reconciler)) func(*simulation.Operator) {
	return func(op *simulation.Operator) {
		kinds := run.Store.Kinds(op)
		refs, err := referrers.New(op.Cache, simulation.Scheme(), kinds, fakeGroup, "", false)
		if err != nil {
			panic(err)
		}
		if err := errors.Join(refs.Index(op.Context, op.Cache), indexMarks(op.Cache, resolve.SecretMetadata())); err != nil {
			panic(err)
		}
		o := Options{
			Module: fakeGroup, Kinds: kinds, Board: &presence.Board{}, Now: time.Now, Random: func() float64 { return 0.5 },
			Suspect: func(provider.Kind, types.NamespacedName) {},
		}
		watches := simulation.NewWatches()
		r := newReconciler(Reconciler{
			referrers: refs, opts: o,
			cache: op.Cache, live: target.Quiet(op.Live), events: simulation.Silent{}, watches: watches,
			pool:    dispatch.NewPool(op.Live, watches, credentials.Rules{Ambient: credentials.AmbientNone}, dispatch.Options{}, nil),
			enqueue: func(key types.NamespacedName, _ int) { op.Enqueue(key) },
		})
		for _, f := range change {
			f(r)
		}
		walks := kit.NewController(kit.NewWalks(&quota.Quotas{}, kit.InFlight), r.Reconcile)
		op.Reconcile = walks.Walk
		elected := make(chan struct{})
		close(elected)
		h := handlers{referrers: refs, objects: r.objects, elected: elected, now: time.Now, interrupt: walks.Interrupt}
		op.Cache.Watch(&fakev1.FakeStore{}, nil, nil, nil)
		op.Cache.Watch(&v1alpha1.ExternalSecret{}, nil, nil, h.objectEvents())
		op.Cache.Watch(resolve.SecretMetadata(), func(o *simulation.Object) bool {
			return o.GetLabels()[target.ManagedLabel(fakeGroup)] == "true"
		}, func(o client.Object) {
			if m, ok := o.(*metav1.PartialObjectMetadata); ok {
				target.Reduce(m)
			}
		}, h.secretEvents())
	}
}

// twoLeaders has two operators serve an object while the provider's values change, with a refresh request after each
// change.
type twoLeaders struct {
	policy   v1alpha1.RefreshPolicy
	deletion v1alpha1.DeletionPolicy
	// values are the values of the provider, in order; empty means that the secret does not exist.
	values  []string
	crashes int
	// dropped is true if a user deletes the Secret at the end.
	dropped bool
	// merge is true if the object merges into the Secret of a user, whose own key must stay.
	merge bool
}

// reads returns an object that reads the value of a remote secret of its name.
func reads(name string, p v1alpha1.RefreshPolicy) *v1alpha1.ExternalSecret {
	return &v1alpha1.ExternalSecret{ObjectMeta: simulation.Meta(name), Spec: v1alpha1.ExternalSecretSpec{
		RefreshPolicy: p,
		StoreRef:      &v1alpha1.StoreRef{Kind: "FakeStore", Name: "main"},
		Data:          []v1alpha1.DataEntry{{SecretKey: "value", RemoteRef: v1alpha1.RemoteRef{Key: name}}},
	}}
}

func (w twoLeaders) scenario(change ...func(*Reconciler)) func(*simulation.Run) {
	return func(run *simulation.Run) {
		run.Crashes = w.crashes
		put := func(i int) {
			if run.Store.Remove("db"); w.values[i] != "" {
				run.Store.Put("db", w.values[i])
			}
		}
		put(0)
		es := reads("db", w.policy)
		es.Spec.Target.DeletionPolicy = w.deletion
		if w.merge {
			es.Spec.Target.CreationPolicy = v1alpha1.CreateMerge
			run.Add(&corev1.Secret{ObjectMeta: simulation.Meta("db"), Data: map[string][]byte{"foreign": []byte("keep")}})
		}
		run.Add(simulation.FakeStore("main"))
		run.Add(es)
		run.Operator("A", simulated(run, change...))
		run.Operator("B", simulated(run, change...))
		var steps []simulation.Step
		for i := 1; i < len(w.values); i++ {
			steps = append(steps, simulation.Step{Label: fmt.Sprintf("the value becomes %q", w.values[i]), Do: func() error {
				put(i)
				return nil
			}}, simulation.Step{Label: "ask for a refresh", Do: func() error {
				return simulation.Update(run, &v1alpha1.ExternalSecret{ObjectMeta: simulation.Meta("db")}, func(es *v1alpha1.ExternalSecret) {
					es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: fmt.Sprint(i)}
				})
			}})
		}
		if w.dropped {
			steps = append(steps, simulation.Step{Label: "delete the Secret", Do: func() error { return w.drop(run) }})
		}
		run.Script("user", steps...)
		w.watch(run)
	}
}

// drop deletes the Secret, if there is one.
func (w twoLeaders) drop(run *simulation.Run) error {
	return client.IgnoreNotFound(run.User().Delete(context.Background(), &corev1.Secret{ObjectMeta: simulation.Meta("db")}))
}

// watch sets the checks of a run: no older value replaces a later one, and at the end the Secret holds the last
// value. An empty value stands for no Secret. After a deletion the Secret may come back with an older value for a
// short time. A late operator creates it by a request that has no precondition.
func (w twoLeaders) watch(run *simulation.Run) {
	seen, made, absent := 0, false, false
	run.Digest = func() string { return fmt.Sprint(seen, made, absent) }
	run.Check = func() error {
		if foreign, _ := run.Secret("db", "foreign"); w.merge && foreign != "keep" {
			return errors.Errorf("the key of the user now holds %q", foreign)
		}
		is, _ := run.Secret("db", "value")
		if made = made || is != ""; !made {
			return nil
		}
		for i := seen; i < len(w.values); i++ {
			if w.values[i] == is {
				seen, absent = i, is == ""
				return nil
			}
		}
		if absent = absent || is == "" && w.dropped; absent {
			return nil
		}
		return errors.Errorf("the Secret held %q and now holds %q", w.values[seen], is)
	}
	run.Final = func() error {
		es := &v1alpha1.ExternalSecret{}
		if err := run.User().Get(context.Background(), simulation.Name("db"), es); err != nil {
			return err
		}
		is, _ := run.Secret("db", "value")
		if want := w.values[len(w.values)-1]; is != want || !meta.IsStatusConditionTrue(es.Status.Conditions, v1alpha1.ConditionReady) {
			return errors.Errorf("at the end the Secret holds %q, want %q; conditions %v", is, want, es.Status.Conditions)
		}
		return nil
	}
}

// renames has an object write another Secret. The old one stays until the new one exists, and is deleted then.
func renames(leaders, crashes int) func(*simulation.Run) {
	return func(run *simulation.Run) {
		run.Crashes = crashes
		run.Store.Put("db", "v1")
		run.Add(simulation.FakeStore("main"))
		run.Add(reads("db", v1alpha1.RefreshOnChange))
		for _, name := range []string{"A", "B"}[:leaders] {
			run.Operator(name, simulated(run))
		}
		holds := func(name string) bool {
			is, _ := run.Secret(name, "value")
			return is == "v1"
		}
		renamed := false
		run.Script("user", simulation.Step{Label: "change target.name", When: func() bool { return holds("db") }, Do: func() error {
			renamed = true
			return simulation.Update(run, reads("db", ""), func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "new" })
		}})
		run.Digest = func() string { return fmt.Sprint(renamed) }
		run.Check = func() error {
			if renamed && !holds("db") && !holds("new") {
				return errors.New("the old Secret was deleted, and there is no new one")
			}
			return nil
		}
		run.Final = func() error {
			if holds("db") || !holds("new") {
				return errors.Errorf("at the end the old Secret exists: %t, the new one: %t", holds("db"), holds("new"))
			}
			return nil
		}
	}
}

const otherGroup = "other.direct-secrets.io"

// contributes runs the controller that reads for the ExternalSecrets of another module in an operator of a
// simulation.
func contributes(run *simulation.Run) func(*simulation.Operator) {
	return func(op *simulation.Operator) {
		kinds := run.Store.OtherKinds(op)
		refs, err := referrers.New(op.Cache, simulation.Scheme(), kinds, otherGroup, "", false)
		if err != nil {
			panic(err)
		}
		if err := refs.Index(op.Context, op.Cache); err != nil {
			panic(err)
		}
		pool := dispatch.NewPool(op.Live, simulation.NewWatches(), credentials.Rules{Ambient: credentials.AmbientNone}, dispatch.Options{}, nil)
		r := contribution.New(op.Cache, op.Live, pool, refs, Options{
			Module: otherGroup, Kinds: kinds, Board: &presence.Board{}, Now: time.Now, Random: func() float64 { return 0.5 },
			Suspect: func(provider.Kind, types.NamespacedName) {},
		})
		walks := kit.NewController(kit.NewWalks(&quota.Quotas{}, kit.InFlight), r.Reconcile)
		op.Reconcile = walks.Walk
		objects, parts := r.Events(walks.Interrupt)
		op.Cache.Watch(&fakev1.OtherFakeStore{}, nil, nil, nil)
		op.Cache.Watch(&v1alpha1.ExternalSecret{}, nil, nil, objects)
		op.Cache.Watch(resolve.SecretMetadata(), func(o *simulation.Object) bool {
			return o.GetLabels()[target.ManagedLabel(otherGroup)] == "true"
		}, nil, parts)
	}
}

// twoModules has the operators of two modules write one Secret. Both values change, and the user requests a refresh
// after each change.
func twoModules(crashes int, change ...func(*Reconciler)) func(*simulation.Run) {
	return func(run *simulation.Run) {
		run.Crashes = crashes
		values := map[string][]string{"own": {"own-1", "own-2"}, "other": {"other-1", "other-2"}}
		for key, all := range values {
			run.Store.Put(key, all[0])
		}
		run.Add(simulation.FakeStore("main"))
		run.Add(&fakev1.OtherFakeStore{ObjectMeta: simulation.Meta("side")})
		run.Add(&v1alpha1.ExternalSecret{ObjectMeta: simulation.Meta("db"), Spec: v1alpha1.ExternalSecretSpec{
			RefreshPolicy: v1alpha1.RefreshOnChange,
			StoreRef:      &v1alpha1.StoreRef{Kind: "FakeStore", Name: "main"},
			Data: []v1alpha1.DataEntry{
				{SecretKey: "own", RemoteRef: v1alpha1.RemoteRef{Key: "own"}},
				{SecretKey: "other", RemoteRef: v1alpha1.RemoteRef{Key: "other"}, SourceRef: &v1alpha1.DataSourceRef{StoreRef: v1alpha1.StoreRef{Kind: "OtherFakeStore", Name: "side"}}},
			},
		}})
		run.Operator("A", simulated(run, change...))
		run.Operator("B", contributes(run))
		var steps []simulation.Step
		for _, key := range []string{"other", "own"} {
			steps = append(steps, simulation.Step{Label: "change " + key, Do: func() error {
				run.Store.Put(key, values[key][1])
				return nil
			}}, simulation.Step{Label: "ask for a refresh", Do: func() error {
				return simulation.Update(run, &v1alpha1.ExternalSecret{ObjectMeta: simulation.Meta("db")}, func(es *v1alpha1.ExternalSecret) {
					es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: key}
				})
			}})
		}
		run.Script("user", steps...)
		seen := map[string]int{"own": -1, "other": -1}
		run.Digest = func() string { return fmt.Sprint(seen) }
		run.Check = func() error {
			for key, all := range values {
				is, _ := run.Secret("db", key)
				i := slices.Index(all, is)
				if i < seen[key] {
					return errors.Errorf("%s was %q and is now %q", key, all[seen[key]], is)
				}
				seen[key] = i
			}
			return nil
		}
		run.Final = func() error {
			if seen["own"] != 1 || seen["other"] != 1 {
				return errors.Errorf("at the end the Secret holds the values %v", seen)
			}
			return nil
		}
	}
}

// TestModules explores the interleavings of two modules that contribute to one Secret.
func TestModules(t *testing.T) {
	for name, build := range map[string]func(*simulation.Run){"Calm": twoModules(0), "Crash": twoModules(1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simulation.Holds(t, build, bounds)
		})
	}
}

// TestInterleavings explores the interleavings of two leaders that overlap.
func TestInterleavings(t *testing.T) {
	cases := map[string]twoLeaders{
		"OneChange":  {policy: v1alpha1.RefreshOnChange, values: []string{"v1", "v2"}},
		"TwoChanges": {policy: v1alpha1.RefreshOnChange, values: []string{"v1", "v2", "v3"}},
		"Crash":      {policy: v1alpha1.RefreshOnChange, values: []string{"v1", "v2"}, crashes: 1},
		"GoneAndBack": {
			policy: v1alpha1.RefreshOnChange, deletion: v1alpha1.DeletionDelete, values: []string{"v1", "", "v3"},
		},
		"Gone":    {policy: v1alpha1.RefreshOnChange, deletion: v1alpha1.DeletionDelete, values: []string{"v1", ""}},
		"Dropped": {policy: v1alpha1.RefreshOnChange, values: []string{"v1", "v2"}, dropped: true},
		"Merge":   {policy: v1alpha1.RefreshOnChange, values: []string{"v1", "v2"}, crashes: 1, merge: true},
	}
	for name, leaders := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simulation.Holds(t, leaders.scenario(), bounds)
		})
	}
}

// TestRenames explores the interleavings while an object changes its target.
func TestRenames(t *testing.T) {
	for name, build := range map[string]func(*simulation.Run){"Crash": renames(1, 1), "TwoLeaders": renames(2, 0)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simulation.Holds(t, build, bounds)
		})
	}
}

// TestFindsFaults disables a guard, and expects the simulation to find a failing run.
func TestFindsFaults(t *testing.T) {
	leaders := twoLeaders{policy: v1alpha1.RefreshOnChange, values: []string{"v1", "v2"}}
	simulation.Breaks(t, leaders.scenario(func(r *Reconciler) {
		r.overtaken = func(writeDecision, *answer) bool { return false }
	}))
}
