package generation

import (
	"context"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// keeping is the key for failed writes of a part.
const keeping = "part"

// act does the necessary work, based on a live read of the part. v is the state of the cache.
func (p *pass) act(ctx context.Context, v view) error {
	live, err := p.parts.live(ctx, p.req)
	if err != nil {
		return err
	}
	var rec handoff.Record
	if live != nil {
		rec = handoff.RecordOf(live)
		p.obj.dropHeld(rec)
		p.obj.part.Set(live)
		if live.Type != handoff.Type || live.DeletionTimestamp != nil {
			return p.unusable(ctx, live, rec)
		}
	}
	d := newDraft(rec, live, p.obj.carried)
	v.rec, v.part = d.rec, nil
	if live != nil {
		v.part = live
	}
	t, out := decide(v)
	p.storeOutcome(t, out)
	if moved, err := p.fence(ctx, t, rec); moved || err != nil {
		p.out.moved = true
		return err
	}
	d.drop(t)
	for _, id := range slices.Sorted(maps.Keys(t.values)) {
		takeStep(ctx, p, id, t.values[id], d)
	}
	revokeDue(ctx, p, t, d)
	discard(ctx, p, t.values)
	// New values must be stored also while the operator shuts down.
	ctx, cancel := kit.Finish(ctx, p.generators.opts.CallTimeout)
	defer cancel()
	return p.keep(ctx, live, d)
}

// unusable handles a Secret with the name of the part that cannot store values: one of another type, or one being
// deleted.
func (p *pass) unusable(ctx context.Context, live *corev1.Secret, rec handoff.Record) error {
	if live.Type != handoff.Type {
		p.out.failure = *provider.NewError(provider.Invalid, "Secret %q uses the name of the Secret that stores generated values; delete it", live.Name)
		p.out.again(lastBackoff)
		return p.report(ctx, nil, false)
	}
	if rec.UID != p.user.GetUID() {
		// The part is of a former object with the same name. If a Secret still holds its values, that may be the Secret
		// that this object is about to write, so waiting for its deletion could block forever.
		used, err := p.parts.inUse(ctx, p.req.Namespace, rec.Name, append(holders(rec.UID, rec.Retired, p.now), rec.UID)...)
		if err != nil {
			return err
		}
		if !used {
			p.out.moved = true
			return finishPart(ctx, p, live, rec)
		}
	}
	return replacePart(ctx, p, live, rec)
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=get

// fence reads the object and its generators live if outdated caches could do harm: before values are replaced, before a
// part is given to another object, and before anything is revoked. moved is true if they differ from what this pass
// assumes.
func (p *pass) fence(ctx context.Context, t todo, rec handoff.Record) (moved bool, err error) {
	makes, moved, err := p.specsMoved(ctx, t)
	if moved || err != nil {
		return true, err
	}
	if replaces := makes || t.adopt || t.owners || len(t.freed) > 0 || len(t.dropped) > 0; !replaces {
		return false, nil
	}
	return p.userMoved(ctx, t, rec)
}

// userMoved reports whether the live object differs from the one decided about, or does not hold the values that allow
// the revocation.
func (p *pass) userMoved(ctx context.Context, t todo, rec handoff.Record) (bool, error) {
	o := p.req.empty()
	if err := p.parts.client.Get(ctx, p.req.NamespacedName, o); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	is := userOf(o, p.generators.resolver.Routes)
	if is.GetUID() != p.user.GetUID() || is.GetDeletionTimestamp() != nil ||
		is.generation != p.user.generation || is.facts.request != p.user.facts.request {
		return true, nil
	}
	return len(t.freed) > 0 && !is.holds(rec) || len(t.dropped) > 0 && !is.inSync, nil
}

// specsMoved reports whether values must be made, and whether the live spec of a generator differs from the one decided
// about.
func (p *pass) specsMoved(ctx context.Context, t todo) (makes, moved bool, err error) {
	for _, s := range t.values {
		if s.action != doMake {
			continue
		}
		if spec, err := p.generators.specNow(ctx, s.ref, p.req.Namespace); err != nil || spec != s.spec {
			return true, true, err
		}
		makes = true
	}
	return makes, false, nil
}

// keep writes the wanted state of the part if it differs, and records it in the status. Made values stay in memory
// until then.
func (p *pass) keep(ctx context.Context, live *corev1.Secret, d *draft) error {
	if len(d.rec.Entries)+len(d.rec.Retired) == 0 {
		if live != nil {
			if err := p.parts.remove(ctx, live); err != nil {
				return p.unkept(ctx, err)
			}
		}
		return p.report(ctx, nil, false)
	}
	owners, err := p.parts.owners(ctx, p.user, live)
	if err != nil {
		return err
	}
	d.rec.Kind, d.rec.Name, d.rec.UID, d.rec.Class = p.req.kind, p.req.Name, p.user.GetUID(), p.parts.contributor.Class
	part := handoff.Part{Record: d.rec, Data: d.data, Labels: p.parts.labels(p.user), Owners: owners, Finalizer: p.parts.finalizer()}
	next, err := part.Write(ctx, p.parts.client, p.parts.key(p.req), live)
	if err != nil {
		return p.unkept(ctx, err)
	}
	p.obj.succeed(keeping)
	p.obj.part.Set(next)
	p.obj.stored(d.used)
	for id, why := range d.rotated {
		of := d.rec.Entries[id].Generator
		p.events.Eventf(p.user.Object, nil, corev1.EventTypeNormal, "Rotated", "Generate", "the values of %s %q were replaced: %s", of.Kind, of.Name, why)
	}
	return p.report(ctx, next, len(d.used) > 0)
}

// unkept handles the error of a part that could not be written.
func (p *pass) unkept(ctx context.Context, err error) error {
	err = p.parts.contributor.WriteError(err)
	var denied *provider.Error
	switch {
	case errors.Is(err, target.ErrNamespaceTerminating):
		return nil
	case kerrors.IsConflict(err), kerrors.IsAlreadyExists(err), kerrors.IsNotFound(err):
		p.out.moved = true
		return nil
	case errors.As(err, &denied):
		p.out.again(p.obj.fail(keeping, "", p.now, err))
		p.out.failure = *denied
		return p.report(ctx, nil, false)
	}
	return errors.Wrap(err, "cannot write the Secret of the contribution")
}
