package generation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// terminatingTimeout is how long a part with credentials to revoke is kept in a terminating namespace.
const terminatingTimeout = 5 * time.Minute

// holdInterval is the time between two checks of a part that is kept because of a Secret.
const holdInterval = time.Minute

// revokeDue revokes the credentials that no consumer holds any longer and that are due.
func revokeDue(ctx context.Context, p *pass, t todo, d *draft) {
	for _, c := range slices.Concat(t.freed, t.revoked) {
		i := slices.IndexFunc(d.rec.Retired, func(r handoff.Retired) bool { return r.Version == c.Version && r.State == c.State })
		if i < 0 {
			continue
		}
		var done bool
		if d.rec.Retired[i].Release, done = delayOrRevoke(ctx, p, c); done {
			d.rec.Retired = slices.Delete(d.rec.Retired, i, i+1)
		}
	}
}

// delayOrRevoke starts the revocation delay of a credential or revokes it. release is when it is due, if it is not done.
func delayOrRevoke(ctx context.Context, p *pass, c handoff.Retired) (release time.Time, done bool) {
	if expired(c.Expires, p.now) {
		return c.Release, true
	}
	if p.generators.opts.NoRemoteChanges {
		return c.Release, revoke(ctx, p, c) == nil // It is refused and reported, and stays in the record.
	}
	if c.UID != "" {
		if used, err := p.inUse(ctx, p.req.Namespace, p.req.Name, c.UID); err != nil || used {
			p.out.again(holdInterval)
			return c.Release, false
		}
	}
	if c.Release.IsZero() {
		linger, err := p.generators.linger(ctx, p.req, c.Generator)
		if errors.Is(err, kit.ErrParked) {
			return c.Release, false
		}
		if err != nil {
			p.out.again(p.obj.fail("retired "+c.Version, "", p.now, err))
			return c.Release, false
		}
		if linger > 0 {
			p.out.again(linger)
			return p.now.Add(linger), false
		}
	}
	return c.Release, revoke(ctx, p, c) == nil
}

// revoke revokes a credential, unless it has expired.
func revoke(ctx context.Context, p *pass, c handoff.Retired) error {
	if expired(c.Expires, p.now) {
		return nil
	}
	what := "retired " + c.Version
	if wait := p.obj.wait(what, "", p.now); wait > 0 {
		p.out.again(wait)
		return p.obj.failed(what)
	}
	err := p.generators.cleanup(ctx, p.req, c)
	switch {
	case errors.Is(err, errUnproven):
		p.warn(c.Generator, unproven)
		p.obj.succeed(what)
		return nil
	case errors.Is(err, kit.ErrParked): // The object is queued when there is a place at the generator.
	case err != nil:
		p.out.again(p.obj.fail(what, "", p.now, err))
		safe := provider.Safe(err)
		p.warn(c.Generator, "cannot revoke a replaced credential, retrying: "+string(safe.Class)+": "+safe.Message)
	default:
		p.obj.succeed(what)
	}
	return err
}

// revokeCarried revokes the credentials of a part that a user deleted, after their object is deleted, too.
func revokeCarried(ctx context.Context, p *pass) error {
	if len(p.obj.carried) == 0 {
		return nil
	}
	p.out.moved = true
	used, err := p.inUse(ctx, p.req.Namespace, p.req.Name, holders(p.obj.uid, p.obj.carried, p.now)...)
	if err == nil && !used {
		p.obj.carried = slices.DeleteFunc(p.obj.carried, func(c handoff.Retired) bool { return revoke(ctx, p, c) == nil })
	}
	return err
}

// finishPart revokes all credentials of a part that is being deleted, and removes its finalizer.
func finishPart(ctx context.Context, p *pass, live *corev1.Secret, rec handoff.Record) error {
	if !p.bears(live) {
		return nil
	}
	retireAll(&rec)
	if p.generators.opts.NoRemoteChanges {
		return releaseUnrevoked(ctx, p, live, rec)
	}
	used, err := p.inUse(ctx, p.req.Namespace, rec.Name, holders(rec.UID, rec.Retired, p.now)...)
	if err != nil || used {
		p.out.again(holdInterval) // The deletion of that Secret requeues it.
		return err
	}
	left := 0
	for _, c := range rec.Retired {
		if err := revoke(ctx, p, c); err != nil {
			left++
			if !c.Expires.IsZero() {
				p.out.again(c.Expires.Sub(p.now) + time.Second)
			}
		}
	}
	if left > 0 {
		exists, terminating, err := p.namespace(ctx, live.Namespace)
		late := !exists || terminating && p.out.due(live.DeletionTimestamp.Add(terminatingTimeout), p.now)
		if err != nil || !late {
			return err
		}
		p.warn(rec.Retired[0].Generator, "the namespace is being deleted; credentials that could not be revoked stay valid until they expire")
	}
	return letGo(ctx, p, live)
}

// replacePart handles a part that a user deleted while its values are in use: the next pass makes a new one. The former
// credentials are revoked like replaced ones: when the new values are delivered, and no Secret of a former object holds
// them. uid is that of the object.
func replacePart(ctx context.Context, p *pass, live *corev1.Secret, rec handoff.Record) error {
	p.out.moved = true
	if !p.bears(live) {
		return nil // Only the finalizer of another controller is left.
	}
	retireAll(&rec)
	if p.generators.opts.NoRemoteChanges {
		return releaseUnrevoked(ctx, p, live, rec)
	}
	if rec.UID != p.user.GetUID() {
		heldBy(rec.UID, rec.Retired)
	}
	p.obj.carried = rec.Retired
	return letGo(ctx, p, live)
}

// letGo removes the finalizer of a part.
func letGo(ctx context.Context, p *pass, live *corev1.Secret) error {
	next := live.DeepCopy()
	controllerutil.RemoveFinalizer(next, p.finalizer())
	err := p.client.Patch(ctx, next, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}))
	if kerrors.IsConflict(err) || kerrors.IsNotFound(err) {
		p.out.moved = true // The part was changed meanwhile.
		return nil
	}
	return errors.Wrap(err, "cannot remove the finalizer from the Secret of the contribution")
}

func retireAll(rec *handoff.Record) {
	for id := range maps.Clone(rec.Entries) {
		rec.Retire(id)
	}
}

// heldBy records a former object for the credentials that have none recorded.
func heldBy(uid types.UID, of []handoff.Retired) {
	for i := range of {
		of[i].UID = cmp.Or(of[i].UID, uid)
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

// releaseUnrevoked releases a part that is being deleted while the operator changes nothing outside the cluster. Its
// credentials are not revoked later. All of them must be retired.
func releaseUnrevoked(ctx context.Context, p *pass, live *corev1.Secret, rec handoff.Record) error {
	var stays []string
	for _, c := range rec.Retired {
		if !expired(c.Expires, p.now) {
			stays = append(stays, lifetime(c))
		}
	}
	if len(stays) > 0 {
		p.warn(rec.Retired[0].Generator, "--no-remote-changes is set, so these credentials were not revoked; revoke them at the provider if they are not in use: "+strings.Join(stays, ", "))
	}
	return letGo(ctx, p, live)
}

// lifetime describes a credential that stays valid.
func lifetime(c handoff.Retired) string {
	if c.Expires.IsZero() {
		return fmt.Sprintf("%s %q without expiry", c.Generator.Kind, c.Generator.Name)
	}
	return fmt.Sprintf("%s %q until %s", c.Generator.Kind, c.Generator.Name, c.Expires.UTC().Format(time.RFC3339))
}
