package generation

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// terminatingTimeout is how long a part with credentials to revoke is kept in a terminating namespace.
const terminatingTimeout = 5 * time.Minute

// holdInterval is the time between two checks of a part that is kept because of a Secret.
const holdInterval = time.Minute

// revoker revokes credentials of one object.
type revoker struct {
	generators *generators
	parts      *parts
	req        request
	obj        *object
	now        time.Time
	out        *outcome
	// warn reports a problem with a credential.
	warn func(of handoff.Generator, message string)
}

// revoke revokes the credentials that no consumer holds any longer and that are due.
func (r *revoker) revoke(ctx context.Context, t todo, d *draft) {
	for _, c := range slices.Concat(t.freed, t.revoked) {
		i := slices.IndexFunc(d.rec.Retired, func(r handoff.Retired) bool { return r.Version == c.Version && r.State == c.State })
		if i < 0 {
			continue
		}
		var done bool
		if d.rec.Retired[i].Release, done = r.step(ctx, c); done {
			d.rec.Retired = slices.Delete(d.rec.Retired, i, i+1)
		}
	}
}

// step starts the revocation delay of a credential or revokes it. release is when it is due, if it is not done.
func (r *revoker) step(ctx context.Context, c handoff.Retired) (release time.Time, done bool) {
	if expired(c.Expires, r.now) {
		return c.Release, true
	}
	if r.generators.opts.NoRemoteChanges {
		return c.Release, r.end(ctx, c) == nil // It is refused and reported, and stays in the record.
	}
	if c.UID != "" {
		if used, err := r.parts.inUse(ctx, r.req.Namespace, r.req.Name, c.UID); err != nil || used {
			r.out.again(holdInterval)
			return c.Release, false
		}
	}
	if c.Release.IsZero() {
		linger, err := r.generators.linger(ctx, r.req, c.Generator)
		if errors.Is(err, kit.ErrParked) {
			return c.Release, false
		}
		if err != nil {
			r.out.again(r.obj.fail("retired "+c.Version, cause{}, r.now, err))
			return c.Release, false
		}
		if linger > 0 {
			r.out.again(linger)
			return r.now.Add(linger), false
		}
	}
	return c.Release, r.end(ctx, c) == nil
}

// end revokes a credential, unless it has expired.
func (r *revoker) end(ctx context.Context, c handoff.Retired) error {
	if expired(c.Expires, r.now) {
		return nil
	}
	what := "retired " + c.Version
	if wait := r.obj.wait(what, cause{}, r.now); wait > 0 {
		r.out.again(wait)
		return r.obj.failed(what)
	}
	err := r.generators.cleanup(ctx, r.req, lease{c.Generator, c.State, c.Proof})
	switch {
	case errors.Is(err, errUnproven):
		r.warn(c.Generator, unproven)
		r.obj.succeed(what)
		return nil
	case errors.Is(err, kit.ErrParked): // The object is queued when there is a place at the generator.
	case err != nil:
		r.out.again(r.obj.fail(what, cause{}, r.now, err))
		safe := provider.Safe(err)
		r.warn(c.Generator, "cannot revoke a replaced credential, retrying: "+string(safe.Class)+": "+safe.Message)
	default:
		r.obj.succeed(what)
	}
	return err
}

// carried revokes the credentials of a part that a user deleted, after their object is deleted, too.
func (r *revoker) carried(ctx context.Context) error {
	if len(r.obj.carried) == 0 {
		return nil
	}
	r.out.moved = true
	used, err := r.parts.inUse(ctx, r.req.Namespace, r.req.Name, holders(r.obj.uid, r.obj.carried, r.now)...)
	if err == nil && !used {
		r.obj.carried = slices.DeleteFunc(r.obj.carried, func(c handoff.Retired) bool { return r.end(ctx, c) == nil })
	}
	return err
}

// finish revokes all credentials of a part that is being deleted, and removes its finalizer.
func (r *revoker) finish(ctx context.Context, live *corev1.Secret, rec handoff.Record) error {
	if !r.parts.bears(live) {
		return nil
	}
	retireAll(&rec)
	if r.generators.opts.NoRemoteChanges {
		return r.releaseUnrevoked(ctx, live, rec)
	}
	used, err := r.parts.inUse(ctx, r.req.Namespace, rec.Name, holders(rec.UID, rec.Retired, r.now)...)
	if err != nil || used {
		r.out.again(holdInterval) // The deletion of that Secret requeues it.
		return err
	}
	left := 0
	for _, c := range rec.Retired {
		if err := r.end(ctx, c); err != nil {
			left++
			if !c.Expires.IsZero() {
				r.out.again(c.Expires.Sub(r.now) + time.Second)
			}
		}
	}
	if left > 0 {
		phase, err := r.parts.phase(ctx, live.Namespace)
		late := phase == absent || phase == terminating && r.out.due(live.DeletionTimestamp.Add(terminatingTimeout), r.now)
		if err != nil || !late {
			return err
		}
		r.warn(rec.Retired[0].Generator, "the namespace is being deleted; credentials that could not be revoked stay valid until they expire")
	}
	return r.letGo(ctx, live)
}

// replace handles a part that a user deleted while its values are in use: the next pass makes a new one. The former
// credentials are revoked like replaced ones: when the new values are delivered, and no Secret of a former object holds
// them. uid is that of the object.
func (r *revoker) replace(ctx context.Context, live *corev1.Secret, rec handoff.Record, uid types.UID) error {
	r.out.moved = true
	if !r.parts.bears(live) {
		return nil // Only the finalizer of another controller is left.
	}
	retireAll(&rec)
	if r.generators.opts.NoRemoteChanges {
		return r.releaseUnrevoked(ctx, live, rec)
	}
	if rec.UID != uid {
		for i := range rec.Retired {
			rec.Retired[i].UID = cmp.Or(rec.Retired[i].UID, rec.UID)
		}
	}
	r.obj.carried = rec.Retired
	return r.letGo(ctx, live)
}

func (r *revoker) letGo(ctx context.Context, live *corev1.Secret) error {
	moved, err := r.parts.letGo(ctx, live)
	r.out.moved = r.out.moved || moved
	return err
}

func retireAll(rec *handoff.Record) {
	for id := range maps.Clone(rec.Entries) {
		rec.Retire(id)
	}
}

// holders returns the uids of the objects that may hold credentials that have not expired. uid stands for those without
// a recorded former object.
func holders(uid types.UID, of []handoff.Retired, now time.Time) []types.UID {
	var all []types.UID
	for _, c := range of {
		if holder := cmp.Or(c.UID, uid); !expired(c.Expires, now) && !slices.Contains(all, holder) {
			all = append(all, holder)
		}
	}
	return all
}
