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

// maxRestores is how often a write is made again that has covered another.
const maxRestores = 20

// lostVersion stands for the version of a value that was covered, which no status holds.
const lostVersion = "?"

// restore brings back what a write has covered that somebody else made at the same time. It decides as if
// that had been seen, and writes what comes of it where that is not what stands there now. Such a write may
// cover another one, so what was brought back once is kept.
func (p *Pusher) restore(ctx context.Context, t provider.Target, s State, made Decision, w provider.Written) Outcome {
	base, written, mark := s.Seen.Data, made.Data, s.Seen.Mark
	first := true
	var last error
	for n := range maxRestores {
		pause(ctx, n)
		lost := w.Lost
		if !s.whole() {
			lost = merged(base, written, w.Lost, first)
		}
		s.Seen = &provider.Observed{Data: lost, Version: lostVersion, ID: w.ID, Mark: mark}
		d := Decide(s)
		if err := p.current(ctx, true); err != nil { // Then what was covered may be newer.
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
		next, err := provider.Update(ctx, p.Kind, p.Writer, t, provider.Observed{Data: written, Version: w.Version, ID: w.ID, Mark: mark}, want)
		switch {
		case err == nil && next.Lost == nil:
			out.Entries = versioned(d.Then, next)
			return out
		case err == nil:
			base, written, w, first = written, want, next, false
		case passes(err) && ctx.Err() == nil:
			last = err // If it was done after all then the next one covers it, which is no harm.
		default:
			return unrestored(s.Known, t, err)
		}
	}
	if last == nil {
		last = provider.NewError(provider.Conflict, "others write all the time")
	}
	return unrestored(s.Known, t, last)
}

// unrestored is the outcome where what was covered is still there as an earlier version only. The next
// comparison finds what is this object's own.
func unrestored(known []v1alpha1.PushEntryStatus, t provider.Target, err error) Outcome {
	return failed(known, errors.Wrapf(moved(err), "what somebody else wrote to %q at the same time was covered and could not be brought back", t.Key))
}

// passes reports whether the same write may succeed a moment later.
func passes(err error) bool {
	c := provider.ClassOf(err)
	return c == provider.Unavailable || c == provider.Throttled
}

// pause waits a moment, longer each time and by chance, so that those who cover each other get out of step.
func pause(ctx context.Context, n int) {
	if n == 0 {
		return
	}
	t := time.NewTimer(provider.Retries{Interval: 2 * time.Second}.Wait(n - 1))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// merged joins two JSON objects that were both made from base: ours, and theirs. What they changed or added
// is taken over. What they lack they have removed, if they had seen base; else it stays, for they may never
// have known it. What is no object cannot be joined, and is theirs.
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

// objectOf returns the members of a JSON object; nil if it is none.
func objectOf(data []byte) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(data, &m) != nil {
		return nil
	}
	return m
}
