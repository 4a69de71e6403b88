package generation

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// maxRetired is how many credentials of an object may wait for revocation, because each is stored in an annotation.
const maxRetired = 20

// view is the input of decide.
type view struct {
	now  time.Time
	user user
	// generators are the generators of user.generators, in the same order.
	generators []found
	// finalizer and labels are those that the part must have; the finalizer only if there is something to revoke.
	finalizer string
	labels    []string
	// target is the uid of the Secret that the object wrote; empty if the cache shows none.
	target types.UID
	// attempts holds the back-offs.
	attempts *attempts
	// part is nil if there is none; rec is its record.
	part metav1.Object
	rec  handoff.Record
}

// todo is the work to do for a part.
type todo struct {
	// values are the steps for the values of generators, by ID.
	values map[string]step
	// current are the IDs of generators whose values are up to date.
	current []string
	// dropped are the IDs of values that neither the spec nor the status names any more.
	dropped []string
	// unkept are the IDs of values whose previous version must be removed.
	unkept []string
	// freed are retired credentials that no consumer holds any longer. revoked are those that are due for revocation.
	freed, revoked []handoff.Retired
	// owners is true if the owner references must change, and adopt if the part is of a former object.
	owners, adopt bool
	// labels is true if labels are missing.
	labels bool
	// leftover is true if the part is being deleted.
	leftover bool
}

// step is the work to do for the values of one generator.
type step struct {
	ref v1alpha1.StoreRef
	// why is one of the reasons in due.go.
	why  string
	spec string
	// keepPrevious is true if the replaced values are kept together with the new ones.
	keepPrevious bool
}

func (t todo) empty() bool {
	return len(t.values)+len(t.dropped)+len(t.unkept)+len(t.freed)+len(t.revoked) == 0 && !t.owners && !t.labels && !t.adopt && !t.leftover
}

// outcome is the result of a reconcile.
type outcome struct {
	// wait is the time until the next reconcile; 0 for never.
	wait time.Duration
	// moved is true if caches were outdated. The object is then reconciled again soon.
	moved bool
	// parked is true if a step waits for a place at its generator.
	parked bool
	// failure is why values are missing or could not be replaced; without a message if there is no failure.
	failure provider.Error
	// window is when the sync window opens that a replacement waits for; nil if none does.
	window *metav1.Time
	// reason is the reason of the Ready condition for the failure; empty for the default.
	reason string
}

// again plans the next reconcile after a time, or earlier.
func (o *outcome) again(wait time.Duration) {
	if o.wait == 0 || wait < o.wait {
		o.wait = wait
	}
}

// due reports whether a time has passed, and otherwise plans a reconcile at that time.
func (o *outcome) due(at, now time.Time) bool {
	if wait := at.Sub(now); wait > 0 {
		o.again(wait)
		return false
	}
	return true
}

// fault records why the values of a generator are not up to date. Only the first fault counts.
func (o *outcome) fault(ref v1alpha1.StoreRef, err error) {
	var refused *kit.RefusedError
	switch {
	case err == nil || o.failure.Message != "":
	case errors.As(err, &refused):
		o.reason, o.failure = refused.Verdict.Reason, *provider.Safe(err)
	default:
		safe := provider.Safe(err)
		o.failure = *provider.NewError(safe.Class, "%s %q: %s", ref.Kind, ref.Name, safe.Message)
		if errors.Is(err, provider.ErrNoRemoteChanges) {
			o.reason, o.failure.Class = v1alpha1.ReasonNoRemoteChanges, ""
		}
	}
}

// decide returns the work to do for a part. It is pure: also the time comes from view.
func decide(v view) (t todo, out outcome) {
	t.values = map[string]step{}
	held := v.user.holds(v.rec)
	if v.part != nil {
		t.leftover = v.part.GetDeletionTimestamp() != nil
		t.adopt = v.rec.UID != v.user.GetUID()
		t.owners = !v.owned(&out) || v.rec.Cleans() != slices.Contains(v.part.GetFinalizers(), v.finalizer)
		t.labels = !handoff.Labelled(v.part, v.labels)
	}
	for _, f := range v.generators {
		switch {
		case f.err != nil:
			out.fault(f.ref, f.err) // The creation of the generator requeues the object.
		case f.object != nil:
			v.decideValues(f, held, &t, &out)
		}
	}
	t.dropped, t.unkept = v.leftovers()
	for _, c := range v.rec.Retired {
		switch {
		case expired(c.Expires, v.now), !c.Release.IsZero() && out.due(c.Release, v.now):
			t.revoked = append(t.revoked, c)
		case c.Release.IsZero() && held && !v.user.named[c.Version] && !v.rec.Kept(c):
			t.freed = append(t.freed, c)
		}
	}
	return t, out
}

// decideValues decides about the values of one generator. held is true if all consumers hold the present ones.
func (v view) decideValues(f found, held bool, t *todo, out *outcome) {
	id := handoff.ID(f.ref)
	in := input{
		Now: v.now, Suspended: v.user.suspended, Fixed: v.user.fixed, Rotates: v.user.rotates,
		Held: held, Request: v.user.refresh, Windows: v.user.windows, Spread: spread(v.user.GetUID(), id),
	}
	if e, ok := v.rec.Entries[id]; ok {
		in.Entry = &e
	}
	var err error
	if in.Spec, err = specHash(f.object); err == nil {
		in.Interval, err = f.object.GeneratorSpec().RotationInterval.Interval(0)
	}
	if err != nil {
		out.fault(f.ref, provider.NewError(provider.Invalid, "spec.rotationInterval: %s", err))
		return
	}
	why, next, hold := valuesDue(in)
	wait := v.attempts.wait(id, causeOf(in.Spec, in.Request), v.now)
	switch n := len(v.rec.Retired); {
	case why == "":
		t.current = append(t.current, id)
		out.window = cmp.Or(out.window, hold.Time())
		if !next.IsZero() {
			out.due(next, v.now)
		}
	case f.holdsBack:
		out.fault(f.ref, provider.ErrNoRemoteChanges)
	case f.refused != nil:
		out.moved = out.moved || errors.Is(f.refused, errLabels)
		out.fault(f.ref, f.refused)
	case why != whyRenew && n >= maxRetired:
		out.fault(f.ref, provider.NewError(provider.Conflict, "%d replaced credentials are waiting to be revoked, so no new one is generated; find out why the object is not in sync", n))
	case wait > 0:
		out.fault(f.ref, v.attempts.failed(id))
		out.again(wait)
	default:
		t.values[id] = step{ref: f.ref, why: why, spec: in.Spec, keepPrevious: f.object.GeneratorSpec().KeepPrevious}
	}
}

// leftovers returns the IDs of values that are no longer wanted, and of those whose previous values are not.
func (v view) leftovers() (dropped, unkept []string) {
	wanted, drops := map[string]bool{}, map[string]bool{}
	for _, f := range v.generators {
		id := handoff.ID(f.ref)
		wanted[id] = f.object != nil || f.err != nil
		drops[id] = f.object != nil && !f.object.GeneratorSpec().KeepPrevious
	}
	for _, id := range slices.Sorted(maps.Keys(v.rec.Entries)) {
		switch e := v.rec.Entries[id]; {
		case !wanted[id] && v.user.inSync && !v.user.named[e.Version]:
			dropped = append(dropped, id)
		case e.Previous != "" && drops[id]:
			unkept = append(unkept, id)
		}
	}
	return dropped, unkept
}

// owned reports whether the part is owned by the object and by the Secret written from it. Secrets that were written
// from it before may also be owners, because they may still hold its values. The garbage collector removes owners that
// no longer exist.
func (v view) owned(out *outcome) bool {
	owners := v.part.GetOwnerReferences()
	has := func(uid types.UID) bool {
		return slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == uid })
	}
	switch {
	case !has(v.user.GetUID()):
		return false
	case v.user.target == "":
		return true
	case v.target != "":
		return has(v.target)
	}
	// Another module writes the Secret, so it is not in this cache. The garbage collector removes an owner that does
	// not exist. A new Secret with the same name causes no event here, hence the periodic check.
	out.again(holdInterval)
	return slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.Kind == secretKind && o.Name == v.user.target })
}

func expired(at, now time.Time) bool { return !at.IsZero() && now.After(at) }

// spread returns a number in [0, 1) that is constant for the values of one generator.
func spread(uid types.UID, id string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(string(uid) + id))
	return float64(h.Sum32()) / (1 << 32)
}
