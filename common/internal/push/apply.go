package push

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// maxTries is how often a write is decided anew when somebody else has written in between.
const maxTries = 5

// A Pusher writes to one store for one object.
type Pusher struct {
	Policies
	// Kind is the store's, for metrics.
	Kind   string
	Writer provider.Writer
	// Others are nil if there are no other objects.
	Others Others
	// Current returns ErrOld if what is wanted is no longer what the object wants. It is asked before each write; again is
	// true if somebody else has written meanwhile, and then no former answer counts. It is nil for values that never
	// change.
	Current func(ctx context.Context, again bool) error
}

// Others are the other objects that push to a store.
type Others interface {
	// InUse returns what they push to a remote secret. id is that of the secret as it was seen. It is asked before anything
	// is removed.
	InUse(ctx context.Context, key, id string) ([]Use, error)
	// Bequeath has them know what they take over of a remote secret, before its mark becomes that of heir, if that is not
	// empty. It is Conflict if any of them is not there any more.
	Bequeath(ctx context.Context, key string, bequests []Bequest, heir string) error
}

// An Outcome is what came of one remote secret.
type Outcome struct {
	// Entries of the status.
	Entries []v1alpha1.PushEntryStatus
	// Exists are the properties that IfNotExists left alone, "" for the whole secret.
	Exists []string
	// Left are entries that this object created and that stay, because somebody else changed them.
	Left []v1alpha1.PushEntryStatus
	// Released are entries that this object created and that stay, because other objects push there, none of which removes
	// them later.
	Released []v1alpha1.PushEntryStatus
	// Wrote and Deleted say what was done.
	Wrote, Deleted bool
	// Err says why the secret is not as the spec wants it.
	Err error
}

// Apply brings one remote secret in step. known are the entries of the status for it, and want is nil for
// one that the spec names no more.
func (p *Pusher) Apply(ctx context.Context, t provider.Target, want []Value, known []v1alpha1.PushEntryStatus) Outcome {
	var o Outcome
	for try := 1; ; try++ {
		o = p.try(ctx, t, want, known, try > 1)
		if provider.ClassOf(o.Err) != provider.Conflict || !errors.Is(o.Err, errMoved) || try == maxTries {
			break
		}
	}
	for i := range o.Entries {
		o.Entries[i].RemoteKey = t.Key
	}
	return o
}

// ErrOld is in the chain of an error that says that what was to be written is too old: the object or what it pushes has
// changed since it was read. It is to be read again.
var ErrOld = errors.New("what is pushed has changed meanwhile")

// errMoved is in the chain of an error that says that the secret changed between two calls.
var errMoved = errors.New("the secret has changed meanwhile")

// failed is the outcome where nothing is known to have been done: the status stays as it was, for what
// is still wanted and for what may have to be removed later.
func failed(known []v1alpha1.PushEntryStatus, err error) Outcome {
	return Outcome{Entries: known, Err: err}
}

func (p *Pusher) try(ctx context.Context, t provider.Target, want []Value, known []v1alpha1.PushEntryStatus, again bool) Outcome {
	s, err := p.gather(ctx, t, want, known)
	if err != nil {
		return failed(known, err)
	}
	seen, d := s.Seen, Decide(s)
	if d.Action != Nothing {
		if err := p.current(ctx, again); err != nil {
			return failed(known, err)
		}
	}
	var now provider.Written
	if seen != nil {
		now.Version, now.ID = seen.Version, seen.ID
	}
	out := Outcome{Exists: d.Exists, Left: d.Left, Released: d.Released, Err: errors.Join(d.Errs...)}
	switch d.Action {
	case Nothing:
	case Create:
		w, err := provider.Create(ctx, p.Kind, p.Writer, t, d.Data, p.Mark)
		if err != nil {
			return failed(known, moved(err))
		}
		now, out.Wrote = w, true
		if w.Lost != nil {
			s.Seen = &provider.Observed{Mark: p.Mark}
			return p.restore(ctx, t, s, d, w)
		}
	case Update:
		w, err := provider.Update(ctx, p.Kind, p.Writer, t, *seen, d.Data)
		if err != nil {
			return failed(known, moved(err))
		}
		now, out.Wrote = w, true
		if w.Lost != nil {
			return p.restore(ctx, t, s, d, w)
		}
	case Delete:
		if err := provider.Delete(ctx, p.Kind, p.Writer, t, *seen); err != nil {
			return failed(known, moved(err))
		}
		out.Deleted = true
	}
	out.Entries = versioned(d.Then, now)
	return p.bequeath(ctx, t, s, d, now, out)
}

// bequeath leaves to others what stays of an object, if anything does. The secret is as it was written now, and out is what came of that.
func (p *Pusher) bequeath(ctx context.Context, t provider.Target, s State, d Decision, now provider.Written, out Outcome) Outcome {
	if len(d.Bequests) == 0 && d.Heir == "" {
		return out
	}
	err := p.Others.Bequeath(ctx, t.Key, d.Bequests, d.Heir)
	if err == nil && d.Heir != "" {
		is := *s.Seen
		is.Version, is.ID = now.Version, now.ID
		err = provider.Mark(ctx, p.Kind, p.Writer, t, is, d.Heir)
	}
	switch c := provider.ClassOf(err); {
	case err == nil:
	case c == provider.Denied, c == provider.Invalid: // Who may not change marks is not held for that.
		out.Released = append(out.Released, d.bequeathed(s.Known)...)
	default:
		return failed(s.Known, moved(err))
	}
	return out
}

// current returns an error if what is wanted is not known to be what the object wants still.
func (p *Pusher) current(ctx context.Context, again bool) error {
	if p.Current == nil {
		return nil
	}
	return p.Current(ctx, again)
}

// gather reads what a decision about one remote secret rests on.
func (p *Pusher) gather(ctx context.Context, t provider.Target, want []Value, known []v1alpha1.PushEntryStatus) (State, error) {
	s := State{Policies: p.Policies, Want: want, Known: known, Former: p.former(ctx, t.Key)}
	switch o, err := provider.Observe(ctx, p.Kind, p.Writer, t); {
	case err == nil:
		s.Seen = &o
	case provider.IsNotFound(err):
		return s, nil
	default:
		return s, err
	}
	if p.Others == nil || !p.Deletes || len(s.obsolete()) == 0 {
		return s, nil
	}
	var err error
	s.InUse, err = p.Others.InUse(ctx, t.Key, s.Seen.ID)
	return s, err
}

// moved marks the error of a write that found the secret changed.
func moved(err error) error {
	if provider.ClassOf(err) != provider.Conflict {
		return err
	}
	return &movedError{err}
}

type movedError struct{ error }

// Is reports that the error is errMoved.
func (e *movedError) Is(target error) bool { return target == errMoved }

// Unwrap returns the error of the Writer.
func (e *movedError) Unwrap() error { return e.error }

func versioned(entries []v1alpha1.PushEntryStatus, now provider.Written) []v1alpha1.PushEntryStatus {
	for i := range entries {
		if entries[i].Version == "" {
			entries[i].Version, entries[i].ID = now.Version, now.ID
		}
	}
	return entries
}

// former reads earlier versions, each at most once.
func (p *Pusher) former(ctx context.Context, key string) func(string) ([]byte, bool) {
	read := map[string][]byte{}
	return func(version string) ([]byte, bool) {
		data, ok := read[version]
		if !ok {
			v, err := provider.Get(ctx, p.Kind, p.Writer, provider.Ref{Key: key, Version: version})
			if err == nil {
				data = nonNil(v.Data)
			}
			read[version] = data
		}
		return data, data != nil
	}
}
