package generated

import (
	"context"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// drop takes out what nobody wants any more.
func (p *pass) drop(t todo, d *draft) {
	for _, id := range t.dropped {
		d.rec.Retire(id)
		delete(d.data, id)
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

// value makes or renews the values of one generator. A failure leaves those in place as they are.
func (p *pass) value(ctx context.Context, id string, s step, d *draft) {
	e, known := d.rec.Entries[id]
	var err error
	if s.action == handoff.Renew {
		err = p.renew(ctx, s, &e)
	} else {
		e, err = p.renewed(ctx, id, s, d)
	}
	switch {
	case errors.Is(err, errBusy):
		p.again(lastBackoff) // Whose turn it is may be gone by then, and nobody else be named.
	case err != nil:
		p.again(p.obj.fail(id, s.spec, p.user.facts.request, p.now, err, p.opts.Random()))
		p.fault(s.ref, err)
	default:
		p.obj.succeed(id)
		d.rec.Entries[id] = e
		if known && s.action == handoff.Make {
			d.rotated[id] = s.why
		}
	}
}

// renew has values live longer. Where that is not possible they are replaced in the next pass.
func (p *pass) renew(ctx context.Context, s step, e *handoff.Entry) error {
	var got provider.Generated
	err := p.call(ctx, s.ref, func(ctx context.Context, kind string, g provider.Generator) (err error) {
		got, err = provider.Renew(ctx, kind, g, e.State)
		return err
	})
	if errors.Is(err, provider.ErrNotRenewable) || provider.IsNotFound(err) {
		e.Final = true
		p.soon()
		return nil
	}
	if err == nil {
		e.State, e.Expires, e.Renewed = got.State, got.Expires, p.now
	}
	return err
}

// renewed puts new values into a draft, and returns their entry.
func (p *pass) renewed(ctx context.Context, id string, s step, d *draft) (handoff.Entry, error) {
	m, err := p.make(ctx, id, s)
	if err != nil {
		return handoff.Entry{}, err
	}
	e := handoff.Entry{
		Generator: m.generator, Version: m.version, Spec: m.spec, Request: p.user.facts.request,
		Made: m.at, Expires: m.Expires, State: m.State, Clean: m.State != "" && m.cleans,
	}
	v := handoff.Values{Current: m.Values}
	if was, ok := handoff.Decode(d.data, id); ok && p.keepsPrevious(ctx, m.generator) {
		v.Previous, e.Previous = was.Current, d.rec.Entries[id].Version
	}
	raw, err := v.Encode()
	if err != nil {
		return handoff.Entry{}, err
	}
	d.rec.Retire(id)
	d.data[id], d.used = raw, append(d.used, id)
	return e, nil
}

// make has new values made, unless there are some that no part holds yet.
func (p *pass) make(ctx context.Context, id string, s step) (made, error) {
	p.obj.mu.Lock()
	m, ok := p.obj.made[id]
	p.obj.mu.Unlock()
	if ok && m.spec == s.spec && handoff.CheckValues(m.Values) == nil && !expired(m.Expires, p.now.Add(p.now.Sub(m.at))) {
		return m, nil
	}
	if ok {
		if err := p.abandon(ctx, id, m); err != nil {
			return made{}, err
		}
	}
	m = made{generator: generatorOf(s.ref), version: handoff.NewVersion(), spec: s.spec, at: p.now}
	err := p.call(ctx, s.ref, func(ctx context.Context, kind string, g provider.Generator) (err error) {
		_, m.cleans = g.(provider.Cleaner)
		m.Generated, err = provider.Generate(ctx, kind, g)
		return err
	})
	if err != nil {
		return made{}, err
	}
	p.obj.mu.Lock()
	p.obj.made[id] = m
	p.obj.mu.Unlock()
	if err := handoff.CheckValues(m.Values); err != nil {
		return made{}, errors.Join(err, p.abandon(ctx, id, m))
	}
	return m, nil
}

// abandon revokes values that no part will hold.
func (p *pass) abandon(ctx context.Context, id string, m made) error {
	if m.cleans && m.State != "" && !expired(m.Expires, p.now) {
		if err := p.cleanup(ctx, m.generator, m.State); err != nil {
			return err
		}
	}
	p.obj.mu.Lock()
	defer p.obj.mu.Unlock()
	delete(p.obj.made, id)
	return nil
}

// discard revokes values that were made for nothing: another process was first.
func (p *pass) discard(ctx context.Context, t todo) {
	p.obj.mu.Lock()
	all := maps.Clone(p.obj.made)
	p.obj.mu.Unlock()
	for id, m := range all {
		if _, wanted := t.values[id]; wanted || p.obj.wait(id, m.spec, p.user.facts.request, p.now) > 0 {
			continue
		}
		p.tryAbandon(ctx, id, m)
	}
}

// tryAbandon is abandon that is tried again.
func (p *pass) tryAbandon(ctx context.Context, id string, m made) {
	what := "made " + id
	if wait := p.obj.wait(what, "", "", p.now); wait > 0 {
		p.again(wait)
		return
	}
	if err := p.abandon(ctx, id, m); err != nil {
		p.again(p.obj.fail(what, "", "", p.now, err, p.opts.Random()))
	}
}

// revoke revokes what nobody holds any more, when its time has come.
func (p *pass) revoke(ctx context.Context, t todo, d *draft) {
	for _, c := range slices.Concat(t.freed, t.revoked) {
		i := slices.IndexFunc(d.rec.Retired, func(r handoff.Retired) bool { return r.Version == c.Version && r.State == c.State })
		if i < 0 {
			continue
		}
		if c.UID != "" && !expired(c.Expires, p.now) {
			if used, err := p.inUse(ctx, p.req.Name, c.UID); err != nil || used {
				p.again(holdInterval)
				continue
			}
		}
		if c.Release.IsZero() && !expired(c.Expires, p.now) {
			linger, err := p.linger(ctx, c.Generator)
			if err != nil {
				p.again(p.obj.fail("retired "+c.Version, "", "", p.now, err, p.opts.Random()))
				continue
			}
			if linger > 0 {
				d.rec.Retired[i].Release = p.now.Add(linger)
				p.again(linger)
				continue
			}
		}
		if err := p.end(ctx, c); err != nil {
			continue
		}
		d.rec.Retired = slices.Delete(d.rec.Retired, i, i+1)
	}
}

// end revokes a credential, unless it has expired.
func (p *pass) end(ctx context.Context, c handoff.Retired) error {
	if expired(c.Expires, p.now) {
		return nil
	}
	what := "retired " + c.Version
	if wait := p.obj.wait(what, "", "", p.now); wait > 0 {
		p.again(wait)
		return p.obj.failed(what)
	}
	err := p.cleanup(ctx, c.Generator, c.State)
	switch {
	case errors.Is(err, errBusy):
		p.again(lastBackoff)
	case err != nil:
		p.again(p.obj.fail(what, "", "", p.now, err, p.opts.Random()))
		safe := provider.Safe(err)
		p.warn(c.Generator, "a credential that was replaced could not be revoked yet: "+string(safe.Class)+": "+safe.Message)
	default:
		p.obj.succeed(what)
	}
	return err
}
