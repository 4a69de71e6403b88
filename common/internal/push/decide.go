package push

import (
	"bytes"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Policies of a PushSecret, and what the store can promise.
type Policies struct {
	Update   v1alpha1.PushUpdatePolicy
	Adoption v1alpha1.PushAdoptionPolicy
	// Deletes is true if entries that are not wanted any more are removed.
	Deletes bool
	// Later is true if what is not wanted any more is removed by another Apply, once all that is wanted is written.
	Later bool
	// Mark names the object at the provider.
	Mark string
	// Settled is true if nothing that the values are made from has changed since the store was in step. Then
	// a template that yields another value each time is no reason to write one.
	Settled bool
	provider.Features
}

// Action is what is to be done to a remote secret.
type Action string

// The actions.
const (
	Nothing Action = ""
	Create  Action = "create"
	Update  Action = "update"
	Delete  Action = "delete"
)

// A Decision says what is to be done, and what is then true.
type Decision struct {
	Action Action
	// Data is the value for Create and Update; nil has Update bring the metadata in line only.
	Data []byte
	// Then are the entries of the status once the action is done. Those without a version get the one that
	// is then current.
	Then []v1alpha1.PushEntryStatus
	// Exists are the properties, or "" for the whole secret, that IfNotExists leaves alone.
	Exists []string
	// Left are the entries that this object created and that are not removed, because somebody else has
	// changed them since.
	Left []v1alpha1.PushEntryStatus
	// Released are the entries that this object created and that are not removed, because other objects push there, none of
	// which removes them later.
	Released []v1alpha1.PushEntryStatus
	// Bequests are what this object created and leaves to others, which remove it later.
	Bequests []Bequest
	// Heir is the mark that the secret gets after the action, of who takes it over; empty for none.
	Heir string
	// Errs say which values are not written, and why.
	Errs []error
}

// A State is all that a decision about one remote secret rests on.
type State struct {
	Policies
	// Want is nil for a secret that the spec names no more.
	Want []Value
	// Known are the entries of the status for this secret.
	Known []v1alpha1.PushEntryStatus
	// Seen is nil if the secret does not exist.
	Seen *provider.Observed
	// InUse is what other objects push there.
	InUse []Use
	// Former returns the value of an earlier version; false if it cannot be had.
	Former func(version string) ([]byte, bool)
}

// A Use is what another object pushes to a remote secret.
type Use struct {
	// Property is "" for the whole secret.
	Property string
	// Heir is the mark of the object, if it removes what it has created; empty if it never does.
	Heir string
}

// A Bequest is a property that another object takes over, "" for the whole secret.
type Bequest Use

// Decide says what is to be done to one remote secret.
func Decide(s State) Decision {
	d := &decider{State: s}
	if err := s.unable(); err != nil {
		for _, v := range s.Want {
			d.keep(v)
		}
		d.Errs = append(d.Errs, err)
	} else {
		d.decide()
	}
	if d.postpones() && s.Seen != nil {
		d.Then = append(d.Then, d.untouchedNow()...)
	}
	d.Heir = heirOf(d)
	return d.Decision
}

// unable says which of the policies the store cannot keep.
func (s State) unable() error {
	switch {
	case len(s.Want) == 0:
		return nil
	case !s.Exclusive && s.Update == v1alpha1.UpdateIfNotExists:
		return provider.NewError(provider.Invalid, "not implemented: this store cannot write only what does not exist; use spec.updatePolicy: Replace, or another store")
	case !s.Exclusive && s.Adoption == v1alpha1.AdoptionRefuse:
		return provider.NewError(provider.Invalid, "not implemented: this store cannot tell who created a secret; use spec.adoptionPolicy: Adopt, or another store")
	case !s.Guarded && !s.whole():
		return provider.NewError(provider.Invalid, "not implemented: this store cannot write a property without risk to the others; push the whole secret, or use another store")
	}
	return nil
}

// whole reports whether the spec wants one value as the whole secret.
func (s State) whole() bool { return len(s.Want) == 1 && s.Want[0].Property == "" }

// mine reports whether this object created the secret.
func (s State) mine() bool { return s.Exclusive && s.Seen.Mark == s.Mark }

// entry returns what the status says of a property.
func (s State) entry(property string) v1alpha1.PushEntryStatus {
	for _, e := range s.Known {
		if e.Property == property {
			return e
		}
	}
	return v1alpha1.PushEntryStatus{Property: property}
}

type decider struct {
	State
	Decision
}

func (d *decider) decide() {
	switch {
	case d.Seen == nil:
		d.absent()
	case d.whole():
		d.value(d.Want[0])
	default:
		d.properties()
	}
}

// fail notes that a value is not written. What the status says of it stays.
func (d *decider) fail(v Value, err error) {
	d.Errs = append(d.Errs, err)
	d.keep(v)
}

func (d *decider) keep(v Value) {
	if e := d.entry(v.Property); e.Version != "" {
		d.Then = append(d.Then, e)
	}
}

// leave notes that IfNotExists leaves a value alone that is another than the one wanted. What this object
// created of it is what it last saw in step.
func (d *decider) leave(v Value) {
	d.Exists = append(d.Exists, v.Property)
	if e := d.entry(v.Property); e.Version != "" {
		d.Then = append(d.Then, e)
		return
	}
	d.done(v.Property, false)
}

// done notes that a value is in step, or will be.
func (d *decider) done(property string, created bool) {
	e := v1alpha1.PushEntryStatus{Property: property, Created: created}
	for _, v := range d.Want {
		if v.Property == property {
			e.Source = v.Source
		}
	}
	d.Then = append(d.Then, e)
}

// absent decides about a secret that does not exist.
func (d *decider) absent() {
	doc := document(emptyObject)
	for _, v := range d.Want {
		switch next, err := doc.set(v.Property, v.Data); {
		case v.Err != nil:
			d.fail(v, v.Err)
			continue
		case v.Property == "":
			d.Data = nonNil(v.Data)
		case err != nil:
			d.fail(v, err)
			continue
		default:
			doc = next
			d.Data = doc
		}
		d.Action = Create
		d.done(v.Property, d.Exclusive)
	}
}

// nonNil is a value that is not mistaken for none.
func nonNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// value decides about a secret that exists and that the spec wants as one value.
func (d *decider) value(v Value) {
	e := d.entry("")
	switch {
	case v.Err != nil:
		d.fail(v, v.Err)
		return
	case d.Seen.Data != nil && (bytes.Equal(d.Seen.Data, v.Data) || d.settled(e)):
		d.done("", d.mine())
		d.metadata()
		return
	case d.Update == v1alpha1.UpdateIfNotExists && d.Seen.Version != "":
		d.leave(v)
		return
	}
	if err := d.refuses(); err != nil {
		d.fail(v, err)
		return
	}
	if d.Adoption == v1alpha1.AdoptionRefuse && d.Seen.Version != "" && (e.Version != d.Seen.Version || e.ID != d.Seen.ID) {
		d.fail(v, errForeign)
		return
	}
	d.Action, d.Data = Update, nonNil(v.Data)
	d.done("", d.mine())
}

var errForeign = provider.NewError(provider.Conflict, "somebody else has changed it since this object wrote it, and spec.adoptionPolicy is Refuse; restore it, or set Adopt to overwrite it")

// settled reports whether a value is the one that was pushed last, and none other is wanted since.
func (d *decider) settled(e v1alpha1.PushEntryStatus) bool {
	return d.Settled && e.Version != "" && e.Version == d.Seen.Version && e.ID == d.Seen.ID
}

// refuses says why a secret that exists must not be touched.
func (d *decider) refuses() error {
	if d.Adoption == v1alpha1.AdoptionRefuse && !d.mine() {
		return provider.NewError(provider.Conflict, "it exists and this object did not create it, and spec.adoptionPolicy is Refuse; push to another key, or set Adopt")
	}
	return nil
}

// metadata has the settings of a secret brought in line whose value is.
func (d *decider) metadata() {
	if d.Action == Nothing && len(d.Seen.Drift) > 0 && d.Update != v1alpha1.UpdateIfNotExists && d.refuses() == nil {
		d.Action = Update
	}
}

// properties decides about a secret of which the spec wants properties, or nothing any more.
func (d *decider) properties() {
	doc, err := d.document()
	if err != nil {
		for _, v := range d.Want {
			d.fail(v, err)
		}
		if len(d.Want) == 0 {
			d.removeWhole()
		}
		return
	}
	before := doc
	for _, v := range d.Want {
		doc = d.property(doc, v)
	}
	doc = d.remove(doc)
	switch {
	case d.Action == Delete:
	case len(d.Want) == 0 && d.emptied(doc):
		d.Action = Delete
	case bytes.Equal(before, doc):
		if len(d.Want) > len(d.Errs) {
			d.metadata()
		}
	default:
		d.Action, d.Data = Update, doc
	}
}

// document returns what the secret holds as a JSON object. One that has no value yet has no properties.
func (d *decider) document() (document, error) {
	if d.Seen.Version == "" {
		return emptyObject, nil
	}
	return parse(d.Seen.Data)
}

// property decides about one property that is wanted.
func (d *decider) property(doc document, v Value) document {
	if v.Err != nil {
		d.fail(v, v.Err)
		return doc
	}
	e := d.entry(v.Property)
	current, exists := doc.has(v.Property)
	switch {
	case exists && (bytes.Equal(current, v.Data) || d.settled(e)):
		d.done(v.Property, e.Created)
		return doc
	case exists && d.Update == v1alpha1.UpdateIfNotExists:
		d.leave(v)
		return doc
	}
	ours := e.Created && d.untouched(e, current)
	next, err := d.replace(doc, v, exists && !ours)
	if err != nil {
		d.fail(v, err)
		return doc
	}
	// Somebody may have removed ours and made another of the name: then it is not ours to delete.
	d.done(v.Property, !exists && d.Guarded || exists && ours)
	return next
}

// replace returns a document with a value, which is foreign if this object has not written the one before it.
func (d *decider) replace(doc document, v Value, foreign bool) (document, error) {
	if err := d.refuses(); err != nil {
		return doc, err
	}
	if foreign && d.Adoption == v1alpha1.AdoptionRefuse {
		return doc, errForeign
	}
	return doc.set(v.Property, v.Data)
}

// untouched reports whether a property is as it was when it last was in step.
func (d *decider) untouched(e v1alpha1.PushEntryStatus, current []byte) bool {
	switch {
	case e.Version == "", e.ID != d.Seen.ID:
		return false
	case e.Version == d.Seen.Version:
		return true
	}
	data, ok := d.Former(e.Version)
	if !ok {
		return false
	}
	doc, err := parse(data)
	if err != nil {
		return false
	}
	was, existed := doc.has(e.Property)
	return existed && bytes.Equal(was, current)
}
