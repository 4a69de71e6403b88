package generation

import (
	"context"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// draft is the wanted state of a part.
type draft struct {
	rec  handoff.Record
	data map[string][]byte
	// used are the IDs of values made for this part. rotated holds the reasons why former values are replaced, by ID.
	used    []string
	rotated map[string]string
}

// newDraft returns the present state of the part; live is nil if there is none. The owner in its record changes only
// when the part is written: until then, fence must see if the part may be of another object.
func newDraft(rec handoff.Record, live *corev1.Secret, carried []handoff.Retired) *draft {
	d := &draft{rec: rec, data: map[string][]byte{}, rotated: map[string]string{}}
	d.rec.Entries = maps.Clone(rec.Entries)
	if d.rec.Entries == nil {
		d.rec.Entries = map[string]handoff.Entry{}
	}
	d.rec.Retired = slices.Clone(rec.Retired)
	if live != nil {
		maps.Copy(d.data, live.Data)
	}
	for id := range rec.Entries {
		if _, ok := handoff.Decode(d.data, id); !ok {
			d.retire(id) // A user has removed the values.
		}
	}
	d.rec.Retired = append(d.rec.Retired, carried...)
	return d
}

// retire removes the values of a generator.
func (d *draft) retire(id string) {
	d.rec.Retire(id)
	delete(d.data, id)
}

// drop removes values that are no longer wanted.
func (d *draft) drop(t todo) {
	for _, id := range t.dropped {
		d.retire(id)
	}
	for _, id := range t.unkept {
		v, ok := handoff.Decode(d.data, id)
		if !ok {
			continue
		}
		v.Previous = nil
		e := d.rec.Entries[id]
		e.Previous, e.Version = "", handoff.NewVersion()
		if raw, err := v.Encode(); err == nil {
			d.data[id], d.rec.Entries[id] = raw, e
		}
	}
}

// put adds new values of a generator. refresh is the refresh request that they serve.
func (d *draft) put(id string, s step, m made, refresh string) error {
	e := m.Entry
	e.Request = refresh
	was, replaces := d.rec.Entries[id]
	v := handoff.Values{Current: m.values}
	if before, ok := handoff.Decode(d.data, id); ok && s.keepPrevious {
		v.Previous, e.Previous = before.Current, was.Version
	}
	raw, err := v.Encode()
	if err != nil {
		return err
	}
	d.rec.Retire(id)
	d.data[id], d.rec.Entries[id], d.used = raw, e, append(d.used, id)
	if replaces {
		d.rotated[id] = s.why
	}
	return nil
}

// takeStep makes or renews the values of one generator. After a failure, the present values stay.
func takeStep(ctx context.Context, p *pass, id string, s step, d *draft) {
	var err error
	if s.why == whyRenew {
		err = renew(ctx, p, id, s, d)
	} else {
		var v made
		if v, err = makeValues(ctx, p, id, s); err == nil {
			err = d.put(id, s, v, p.user.refresh)
		}
	}
	p.conclude(id, s, err)
}

// conclude records how a step ended.
func (p *pass) conclude(id string, s step, err error) {
	switch {
	case errors.Is(err, kit.ErrParked): // The object is queued when there is a place at the generator.
		p.out.parked = true
		p.out.fault(s.ref, p.obj.failedFor(id, s.spec))
	case err != nil:
		p.out.again(p.obj.fail(id, causeOf(s.spec, p.user.refresh), p.now, err))
		p.out.fault(s.ref, err)
	default:
		p.obj.succeed(id)
	}
}

// renew extends the lifetime of values. If that is not possible, the next reconcile replaces them.
func renew(ctx context.Context, p *pass, id string, s step, d *draft) error {
	e := d.rec.Entries[id]
	got, proof, err := p.generators.renew(ctx, p.req, s.ref, e)
	switch {
	case errors.Is(err, errUnproven):
		p.warn(e.Generator, unproven)
		e.Final, p.out.moved = true, true
	case errors.Is(err, provider.ErrNotRenewable) || provider.IsNotFound(err):
		e.Final, p.out.moved = true, true
	case err != nil:
		return err
	default:
		e.State, e.Proof, e.Expires, e.Replace, e.Renewed = got.State, proof, got.Expires, got.Replace, p.now
	}
	d.rec.Entries[id] = e
	return nil
}

// makeValues makes new values, unless there are values that are not stored in a part yet.
func makeValues(ctx context.Context, p *pass, id string, s step) (made, error) {
	v, ok := p.obj.made[id]
	signed := v.State == "" || v.Proof != ""
	if ok && signed && v.Spec == s.spec && handoff.CheckValues(v.values) == nil && !expired(v.Expires, p.now.Add(p.now.Sub(v.Made))) {
		return v, nil
	}
	if ok {
		if err := abandon(ctx, p, id, v); err != nil {
			return made{}, err
		}
	}
	v = made{Entry: handoff.Entry{Generator: generatorOf(s.ref), Version: handoff.NewVersion(), Spec: s.spec, Made: p.now}}
	err := p.generators.generate(ctx, p.req, s.ref, &v)
	unfit := handoff.CheckValues(v.values)
	if len(v.values) > 0 {
		if unfit != nil {
			v.values = nil // They can be large, and are only revoked.
		}
		p.obj.made[id] = v // Also if they could not be signed: they must be revoked then.
	}
	switch {
	case err != nil:
		return made{}, err
	case unfit != nil:
		return made{}, errors.Join(unfit, abandon(ctx, p, id, v))
	}
	return v, nil
}

// abandon revokes values that no part will hold.
func abandon(ctx context.Context, p *pass, id string, v made) error {
	if v.Clean && !expired(v.Expires, p.now) {
		if err := p.generators.revoke(ctx, p.req, v.Generator, v.State); err != nil {
			return err
		}
	}
	delete(p.obj.made, id)
	return nil
}

// discard revokes values that are not needed because another process was first. Values with an ID in steps are still
// wanted.
func discard(ctx context.Context, p *pass, steps map[string]step) {
	for id, v := range p.obj.made {
		if _, wanted := steps[id]; wanted || p.obj.wait(id, causeOf(v.Spec, p.user.refresh), p.now) > 0 {
			continue
		}
		tryAbandon(ctx, p, id, v)
	}
}

// tryAbandon is abandon with back-off.
func tryAbandon(ctx context.Context, p *pass, id string, v made) {
	what := "made " + id
	if wait := p.obj.wait(what, "", p.now); wait > 0 {
		p.out.again(wait)
	} else if err := abandon(ctx, p, id, v); err != nil && !errors.Is(err, kit.ErrParked) {
		p.out.again(p.obj.fail(what, "", p.now, err))
	}
}
