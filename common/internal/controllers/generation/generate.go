package generation

import (
	"context"
	"maps"
	"slices"
	"time"

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
	e := handoff.Entry{
		Generator: m.generator, Version: m.version, Spec: m.spec, Request: refresh,
		Made: m.at, Expires: m.Expires, State: m.State, Proof: m.proof, Clean: m.State != "" && m.cleans,
	}
	was, replaces := d.rec.Entries[id]
	v := handoff.Values{Current: m.Values}
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

// maker asks generators to make and renew the values of one object.
type maker struct {
	generators *generators
	req        request
	// refresh is the refresh request that the values serve.
	refresh string
	obj     *object
	now     time.Time
	out     *outcome
	// warn reports a problem with a credential.
	warn func(of handoff.Generator, message string)
}

// value makes or renews the values of one generator. After a failure, the present values stay.
func (m *maker) value(ctx context.Context, id string, s step, d *draft) {
	var err error
	if s.action == doRenew {
		err = m.renew(ctx, id, s, d)
	} else {
		var v made
		if v, err = m.make(ctx, id, s); err == nil {
			err = d.put(id, s, v, m.refresh)
		}
	}
	switch {
	case errors.Is(err, kit.ErrParked): // The object is queued when there is a place at the generator.
	case err != nil:
		m.out.again(m.obj.fail(id, m.cause(s.spec), m.now, err))
		m.out.fault(s.ref, err)
	default:
		m.obj.succeed(id)
	}
}

func (m *maker) cause(spec string) cause { return cause{spec, m.refresh} }

// renew extends the lifetime of values. If that is not possible, the next reconcile replaces them.
func (m *maker) renew(ctx context.Context, id string, s step, d *draft) error {
	e := d.rec.Entries[id]
	got, proof, err := m.generators.renew(ctx, m.req, s.ref, lease{generatorOf(s.ref), e.State, e.Proof})
	switch {
	case errors.Is(err, errUnproven):
		m.warn(e.Generator, unproven)
		e.Final, m.out.moved = true, true
	case errors.Is(err, provider.ErrNotRenewable) || provider.IsNotFound(err):
		e.Final, m.out.moved = true, true
	case err != nil:
		return err
	default:
		e.State, e.Proof, e.Expires, e.Renewed = got.State, proof, got.Expires, m.now
	}
	d.rec.Entries[id] = e
	return nil
}

// make makes new values, unless there are values that are not stored in a part yet.
func (m *maker) make(ctx context.Context, id string, s step) (made, error) {
	v, ok := m.obj.made[id]
	signed := v.State == "" || v.proof != ""
	if ok && signed && v.spec == s.spec && handoff.CheckValues(v.Values) == nil && !expired(v.Expires, m.now.Add(m.now.Sub(v.at))) {
		return v, nil
	}
	if ok {
		if err := m.abandon(ctx, id, v); err != nil {
			return made{}, err
		}
	}
	v = made{generator: generatorOf(s.ref), version: handoff.NewVersion(), spec: s.spec, at: m.now}
	err := m.generators.generate(ctx, m.req, s.ref, &v)
	if len(v.Values) > 0 {
		m.obj.made[id] = v // Also if they could not be signed: they must be revoked then.
	}
	if err != nil {
		return made{}, err
	}
	if err := handoff.CheckValues(v.Values); err != nil {
		return made{}, errors.Join(err, m.abandon(ctx, id, v))
	}
	return v, nil
}

// abandon revokes values that no part will hold.
func (m *maker) abandon(ctx context.Context, id string, v made) error {
	if v.cleans && v.State != "" && !expired(v.Expires, m.now) {
		if err := m.generators.revoke(ctx, m.req, v.generator, v.State); err != nil {
			return err
		}
	}
	delete(m.obj.made, id)
	return nil
}

// discard revokes values that are not needed because another process was first. Values with an ID in steps are still
// wanted.
func (m *maker) discard(ctx context.Context, steps map[string]step) {
	for id, v := range m.obj.made {
		if _, wanted := steps[id]; wanted || m.obj.wait(id, m.cause(v.spec), m.now) > 0 {
			continue
		}
		m.tryAbandon(ctx, id, v)
	}
}

// tryAbandon is abandon with back-off.
func (m *maker) tryAbandon(ctx context.Context, id string, v made) {
	what := "made " + id
	if wait := m.obj.wait(what, cause{}, m.now); wait > 0 {
		m.out.again(wait)
	} else if err := m.abandon(ctx, id, v); err != nil && !errors.Is(err, kit.ErrParked) {
		m.out.again(m.obj.fail(what, cause{}, m.now, err))
	}
}
