package push

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// maxTries is how many times a write is attempted when another writer changed the secret in between. Each attempt reads
// the secret and decides again.
const maxTries = 5

// A Pusher writes the values of one PushSecret to one store.
type Pusher struct {
	Policies
	// Store is a store that can be written.
	Store *provider.Link
	// Others looks up the other objects that push to this store; nil if there are none.
	Others Others
	// List records the wanted values in the status before anything is created. It is nil if that is not needed.
	List func(ctx context.Context) error
	// Current returns ErrOld if the object or its source has changed since the wanted values were computed. It is
	// called before each write. An answer younger than age may be reused. It is nil for values that never change.
	Current func(ctx context.Context, age time.Duration) error
	// Unrecorded are values that an interrupted push may have written, see State.
	Unrecorded []Value
	// DryRun is true if Apply only reports its decision. It then reads, and writes nothing.
	DryRun bool
}

// updateAge is how old the last check of the object may be when a secret is updated.
const updateAge = 2 * time.Second

// Others are the other objects that push to a store.
type Others interface {
	// InUse returns what the other objects push to a remote secret, and of which objects that is not known yet. It is called before
	// anything is removed.
	InUse(ctx context.Context, r Removal) ([]Use, Behind, error)
	// HandedOver is called after this object has cleared its mark for that of another object.
	HandedOver(mark string)
	// Claims returns the values that other objects want in a remote secret.
	Claims(key, id string) []Claim
}

// A Removal is from one remote secret.
type Removal struct {
	// Key names the secret, and ID identifies it as observed.
	Key, ID string
	// Mine is true if this object owns the secret.
	Mine bool
	// Paths are those of the properties that this object owns and no longer wants, "" for the whole secret.
	Paths []string
	// Path returns the path of a property in the secret as observed. Spellings of one member have the same path.
	Path func(property string) string
}

// An Outcome is the result of one Apply to one remote secret.
type Outcome struct {
	// Entries are the entries for the status of the PushSecret. One without a version might not exist.
	Entries []v1alpha1.PushEntryStatus
	// Exists are the properties that IfNotExists left unchanged, "" for the whole secret.
	Exists []string
	// Left are entries that this object created and did not remove, because another writer has changed them since.
	Left []v1alpha1.PushEntryStatus
	// Released are entries that this object created and did not remove, because other objects push there. None of those
	// objects removes them later.
	Released []v1alpha1.PushEntryStatus
	// Postponed is true if a removal waits for other objects.
	Postponed bool
	// Held is true if another object holds a wanted value. Err says which.
	Held bool
	// Used are entries that this object created and leaves to another object, which By names.
	Used []v1alpha1.PushEntryStatus
	By   string
	// Ownerless are entries for a secret without a mark, which this object was not allowed to mark.
	Ownerless []v1alpha1.PushEntryStatus
	// Wrote and Deleted report whether the secret was written or deleted.
	Wrote, Deleted bool
	// Changes are what a push would do. Only a dry run reports them.
	Changes []Change
	// Err is why the secret does not match the spec; nil if it does.
	Err error
}

// Apply brings one remote secret in sync with the spec. known are the status entries for this secret. want is nil if
// the spec no longer names it.
func (p *Pusher) Apply(ctx context.Context, t provider.Target, want []Value, known []v1alpha1.PushEntryStatus) Outcome {
	var o Outcome
	for try := 1; ; try++ {
		o = p.try(ctx, t, want, known, try > 1)
		if provider.ClassOf(o.Err) != provider.Conflict || !errors.Is(o.Err, errMoved) || try == maxTries {
			break
		}
	}
	if p.DryRun && o.Err != nil && o.Changes == nil {
		o.Changes = Failing(want)
	}
	for i := range o.Entries {
		o.Entries[i].RemoteKey = t.Key
	}
	return o
}

// ErrOld is in the error chain if the object or its source has changed since the value to write was computed. The
// caller must read both again.
var ErrOld = errors.New("the values to push changed meanwhile")

// errMoved is in the error chain if the secret changed between two calls.
var errMoved = errors.New("the remote secret changed meanwhile")

// failed returns the outcome if it is unknown whether anything was written. The status entries stay as they were, both
// for wanted values and for those that may have to be removed later.
func failed(known []v1alpha1.PushEntryStatus, err error) Outcome {
	return Outcome{Entries: known, Err: err}
}

func (p *Pusher) try(ctx context.Context, t provider.Target, want []Value, known []v1alpha1.PushEntryStatus, again bool) Outcome {
	s, err := p.gather(ctx, t, want, known)
	if err != nil {
		return failed(known, err)
	}
	ownerless, err := p.succeed(ctx, t, s)
	if err != nil {
		return failed(known, err)
	}
	d := p.decide(&s, t.Key)
	if p.DryRun {
		return Outcome{Entries: known, Changes: d.changes(s), Err: errors.Join(d.Errs...)}
	}
	if err := p.prepare(ctx, s, d, again); err != nil {
		return failed(known, err)
	}
	now, err := p.write(ctx, t, s, d)
	switch {
	case err != nil && (d.Action == Create || d.creates(s) && provider.ClassOf(err) == provider.Unavailable):
		return failed(listed(want, known), moved(err)) // It may have been created.
	case err != nil:
		return failed(known, moved(err))
	case now.Lost != nil:
		if d.Action == Create {
			s.Seen = &provider.Observed{Mark: p.Mark}
		}
		return p.restore(ctx, t, s, d, now)
	}
	return p.handOver(ctx, t, s, d, now, Outcome{
		Entries: versioned(d.Then, now), Exists: d.Exists, Left: d.Left, Released: d.Released, Held: d.Holder != nil, Ownerless: ownerless, Postponed: d.Postponed,
		Wrote: d.Action == Create || d.Action == Update, Deleted: d.Action == Delete, Err: errors.Join(d.Errs...),
	})
}

// prepare lists the wanted values before anything is created, and returns an error unless the object still wants them.
func (p *Pusher) prepare(ctx context.Context, s State, d Decision, again bool) error {
	if !d.writes(s) {
		return nil
	}
	creates := d.creates(s)
	if p.List != nil && creates {
		if err := p.List(ctx); err != nil {
			return err
		}
	}
	return p.current(ctx, again || creates || !s.asLeft()) // After it is listed, so that no walk releases an object for which something is being created.
}

// write makes the call of a decision, and returns the version after it.
func (p *Pusher) write(ctx context.Context, t provider.Target, s State, d Decision) (provider.Written, error) {
	switch d.Action {
	case Create:
		return p.Store.Create(ctx, t, d.Data, p.Mark)
	case Update:
		return p.Store.Update(ctx, t, *s.Seen, d.Data)
	case Delete:
		return s.current(), p.Store.Delete(ctx, t, *s.Seen)
	case Nothing:
	}
	return s.current(), nil
}

// succeed marks a secret whose owner has cleared its mark, with the login of this object. It returns the entries for the secret if the
// login is not allowed to mark it: that must block neither this object nor its deletion. After the mark is set, the error is that
// the secret has changed.
func (p *Pusher) succeed(ctx context.Context, t provider.Target, s State) (ownerless []v1alpha1.PushEntryStatus, err error) {
	if p.DryRun || !s.succeeds() {
		return nil, nil
	}
	if err := p.current(ctx, true); err != nil {
		return nil, err
	}
	err = p.Store.Mark(ctx, t, *s.Seen, p.Mark)
	if err == nil {
		err = provider.NewError(provider.Conflict, "the mark is not visible yet; retrying")
	}
	if c := provider.ClassOf(err); c == provider.Denied || c == provider.Invalid {
		return slices.Clone(s.Known), nil
	}
	return nil, moved(err)
}

// decide decides about a secret. Before another value or settings are written, it looks up what other objects want.
func (p *Pusher) decide(s *State, key string) Decision {
	d := Decide(*s)
	if p.Others == nil || s.Seen == nil || d.Action != Update {
		return d
	}
	if s.Claims = p.Others.Claims(key, s.Seen.ID); len(s.Claims) == 0 {
		return d
	}
	return Decide(*s)
}

// writes reports whether the decision changes the secret or its mark.
func (d Decision) writes(s State) bool { return d.Action != Nothing || d.claims(s) }

// creates reports whether something may count as created by this object after the decision, and does not before.
func (d Decision) creates(s State) bool {
	return d.Action == Create || slices.ContainsFunc(d.Then, func(e v1alpha1.PushEntryStatus) bool { return e.Created && !s.entry(e.Property).Created })
}

// claims reports whether this object marks a secret that has no mark.
func (d Decision) claims(s State) bool { return d.Successor != "" && d.Successor == s.Mark }

// mark replaces the mark of a secret whose version is now.
func (p *Pusher) mark(ctx context.Context, t provider.Target, s State, now provider.Written, mark string) error {
	is := *s.Seen
	is.Version, is.ID = now.Version, now.ID
	return p.Store.Mark(ctx, t, is, mark)
}

// current returns the version of the secret as observed; the zero value if it does not exist.
func (s State) current() (now provider.Written) {
	if s.Seen != nil {
		now.Version, now.ID = s.Seen.Version, s.Seen.ID
	}
	return now
}

// handOver writes the mark of the object that takes the secret over. now is the version just written, and out is the outcome
// so far, which it returns with the result.
func (p *Pusher) handOver(ctx context.Context, t provider.Target, s State, d Decision, now provider.Written, out Outcome) Outcome {
	if d.Successor == "" {
		return out
	}
	mark := d.Successor
	if mark != p.Mark {
		mark = "" // A mark is set only by the login of the object that it names.
	}
	err := p.mark(ctx, t, s, now, mark)
	switch c := provider.ClassOf(err); {
	case err == nil && d.Successor != p.Mark:
		p.Others.HandedOver(d.Successor)
		out.Used, out.By = d.Used, d.userOf(s)
	case err == nil:
	case d.Successor != p.Mark && (c == provider.Denied || c == provider.Invalid):
		// Missing permission to change marks must not keep the object from being deleted.
		out.Released = d.Used
	default: // Nothing counts as created by this object unless the mark is written.
		return failed(s.Known, moved(err))
	}
	return out
}

// userOf names the object for which this object clears its mark.
func (d Decision) userOf(s State) string {
	for _, u := range s.InUse {
		if u.Successor == d.Successor {
			return u.By
		}
	}
	return ""
}

// asLeft reports whether the secret is as this object last wrote it. If it is not, a new leader may have written a
// newer value, or have deleted the secret together with the object. The caller must then check the object live.
func (s State) asLeft() bool {
	return s.Seen != nil && len(s.Known) > 0 && !slices.ContainsFunc(s.Known, func(e v1alpha1.PushEntryStatus) bool {
		return e.Version != s.Seen.Version || e.ID != s.Seen.ID
	})
}

// current returns an error unless the object still wants these values. now asks for a live check.
func (p *Pusher) current(ctx context.Context, now bool) error {
	switch {
	case p.Current == nil:
		return nil
	case now:
		return p.Current(ctx, 0)
	}
	return p.Current(ctx, updateAge)
}

// gather reads everything that a decision about one remote secret needs.
func (p *Pusher) gather(ctx context.Context, t provider.Target, want []Value, known []v1alpha1.PushEntryStatus) (State, error) {
	s := State{Policies: p.Policies, Want: want, Known: known, Unrecorded: p.Unrecorded, Former: p.former(ctx, t.Key), paths: map[string]string{}}
	switch o, err := p.Store.Observe(ctx, t); {
	case err == nil:
		s.Seen = &o
	case provider.IsNotFound(err):
		s.Known = nil // They are of a secret that does not exist any more.
		return s, nil
	default:
		return s, err
	}
	if p.Others == nil || !p.Deletes || len(s.obsolete()) == 0 || len(want) > 0 && (p.Later || s.whole()) {
		return s, nil // Nothing is removed now.
	}
	r := Removal{Key: t.Key, ID: s.Seen.ID, Mine: s.mine(), Path: s.path}
	for _, e := range s.obsolete() {
		if s.created(e) && (e.Property != "" || r.Mine) {
			r.Paths = append(r.Paths, s.path(e.Property))
		}
	}
	var err error
	s.InUse, s.Behind, err = p.Others.InUse(ctx, r)
	return s, err
}

// listed returns entries for wanted values, without a version where none is known.
func listed(want []Value, known []v1alpha1.PushEntryStatus) []v1alpha1.PushEntryStatus {
	out := slices.Clone(known)
	for _, v := range want {
		if !slices.ContainsFunc(known, func(e v1alpha1.PushEntryStatus) bool { return e.Property == v.Property }) {
			out = append(out, v1alpha1.PushEntryStatus{Property: v.Property, Source: v.Source})
		}
	}
	return out
}

// moved adds errMoved to the error of a write that found the secret changed.
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
		if e := &entries[i]; e.Version == "" {
			e.Version, e.ID = now.Version, cmp.Or(e.ID, now.ID)
		}
	}
	return slices.DeleteFunc(entries, func(e v1alpha1.PushEntryStatus) bool { return e.Version == "" })
}

// former returns a function that reads earlier versions of a secret, each at most once.
func (p *Pusher) former(ctx context.Context, key string) func(string) ([]byte, bool) {
	read := map[string][]byte{}
	return func(version string) ([]byte, bool) {
		data, ok := read[version]
		if !ok {
			v, err := p.Store.Get(ctx, provider.Ref{Key: key, Version: version})
			if err == nil {
				data = nonNil(v.Data)
			}
			read[version] = data
		}
		return data, data != nil
	}
}
