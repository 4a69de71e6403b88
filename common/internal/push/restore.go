package push

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// maxRestores is the maximum number of writes that restore a value replaced at the same time.
const maxRestores = 20

// lostVersion stands for the version of a replaced value; no status entry has it.
const lostVersion = "?"

// restore handles a write that replaced a value of another writer, made at the same time. It decides again as if the
// lost value had been observed, and writes the result if it differs from the stored value. That write may again replace
// another value, so it repeats, and keeps what it restored before.
func (p *Pusher) restore(ctx context.Context, t provider.Target, s State, made Decision, w provider.Written) Outcome {
	base, written, mark := s.Seen.Data, made.Data, s.Seen.Mark
	if s.Adoption == v1alpha1.AdoptionOwn {
		s.Adoption = v1alpha1.AdoptionAdopt // The next comparison marks the secret.
	}
	first := true
	var last error
	for n := range maxRestores {
		if n > 0 { // Back-off and jitter part writers that replace each other's values.
			provider.Sleep(ctx, provider.Retries{Interval: 2 * time.Second}.Wait(n-1))
		}
		lost := w.Lost
		if !s.whole() {
			lost = merged(base, written, w.Lost, first)
		}
		clear(s.paths)
		s.Seen = &provider.Observed{Data: lost, Version: lostVersion, ID: w.ID, Mark: mark}
		d := Decide(s)
		if err := p.current(ctx, true); err != nil { // The object changed, so the lost value may be newer: restore it.
			d = Decision{Then: slices.Clone(s.Known), Errs: []error{err}}
		}
		want := d.Data
		if d.Action != Update {
			want = lost
		}
		out := Outcome{Exists: d.Exists, Left: d.Left, Released: d.Released, Err: errors.Join(d.Errs...), Wrote: true, Entries: versioned(d.Then, w)}
		if bytes.Equal(want, written) {
			return out
		}
		next, err := p.Store.Update(ctx, t, provider.Observed{Data: written, Version: w.Version, ID: w.ID, Mark: mark}, want)
		switch {
		case err == nil && next.Lost == nil:
			out.Entries = versioned(d.Then, next)
			return out
		case err == nil:
			base, written, w, first = written, want, next, false
		case passes(err) && ctx.Err() == nil:
			last = err // The write may have succeeded nevertheless; repeating it is harmless.
		default:
			return unrestored(s.Known, t, err)
		}
	}
	if last == nil {
		last = provider.NewError(provider.Conflict, "other clients keep writing to it")
	}
	return unrestored(s.Known, t, last)
}

// unrestored is the outcome if the lost value exists only as an earlier version. The next comparison brings this
// object's own values in sync.
func unrestored(known []v1alpha1.PushEntryStatus, t provider.Target, err error) Outcome {
	return failed(known, errors.Wrapf(moved(err), "a concurrent write of another client to %q was overwritten and could not be restored", t.Key))
}

// passes reports whether the same write may succeed when it is repeated shortly after.
func passes(err error) bool {
	c := provider.ClassOf(err)
	return c == provider.Unavailable || c == provider.Throttled
}

// merged joins two JSON objects that were both made from base. Changes and additions of theirs win. A member that
// theirs lacks counts as removed if theirs was made with knowledge of base (hadSeen); otherwise it is kept. If either
// value is no object, the result is theirs.
func merged(base, ours, theirs []byte, hadSeen bool) []byte {
	was, have, got := objectOf(base), objectOf(ours), objectOf(theirs)
	if have == nil || got == nil {
		return theirs
	}
	changed := false
	for k, v := range got {
		mine, both := have[k]
		if both && bytes.Equal(was[k], v) {
			continue
		}
		if both {
			v = merged(was[k], mine, v, hadSeen)
		}
		if !both || !bytes.Equal(mine, v) {
			have[k], changed = v, true
		}
	}
	for k, v := range was {
		if _, left := got[k]; hadSeen && !left && bytes.Equal(have[k], v) {
			delete(have, k)
			changed = true
		}
	}
	if !changed {
		return ours
	}
	out, err := render.Marshal(have)
	if err != nil {
		return theirs
	}
	return out
}

// objectOf returns the members of a JSON object; nil if data is none.
func objectOf(data []byte) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(data, &m) != nil {
		return nil
	}
	return m
}
