package push

import (
	"bytes"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Policies are the policies of a PushSecret, and the features of the store.
type Policies struct {
	Update   v1alpha1.PushUpdatePolicy
	Adoption v1alpha1.PushAdoptionPolicy
	// Deletes is true if entries that the spec no longer names are removed.
	Deletes bool
	// Later is true if a later Apply removes the obsolete entries, after all wanted values are written.
	Later bool
	// Mark identifies the object at the provider.
	Mark string
	// InputsUnchanged is true if no input of the values has changed since the store was in sync. A template whose output
	// differs on every run then causes no write.
	InputsUnchanged bool
	provider.Features
}

// Action is the call to make for a remote secret.
type Action string

// The actions.
const (
	Nothing Action = ""
	Create  Action = "create"
	Update  Action = "update"
	Delete  Action = "delete"
)

// A Decision is the call to make for a remote secret, and the status after it.
type Decision struct {
	Action Action
	// Data is the value for Create and Update. If nil, Update changes only the metadata.
	Data []byte
	// Then are the status entries after the action. Entries without a version get the version that is current after it.
	Then []v1alpha1.PushEntryStatus
	// Exists are the properties that IfNotExists leaves unchanged, "" for the whole secret.
	Exists []string
	// Left are the entries that this object created and does not remove, because another writer has changed them since.
	Left []v1alpha1.PushEntryStatus
	// Used are the entries that this object created and does not remove, because other objects push there.
	Used []v1alpha1.PushEntryStatus
	// Released are those of Used that no other object removes later.
	Released []v1alpha1.PushEntryStatus
	// Successor is the mark of the object that takes the secret over: another one, or this one. After the action, this object
	// writes its own mark, or clears it for another one, which then writes its mark itself. It is empty for none.
	Successor string
	// Holder is the object that holds a value which this object wants to be another one; nil for none.
	Holder *Claim
	// Postponed is true if a removal waits for other objects.
	Postponed bool
	// Errs are the errors of the values that are not written.
	Errs []error
	// Failed are the properties of the values that are not written, "" for the whole secret.
	Failed []string
}

// A State is the complete input of a decision about one remote secret.
type State struct {
	Policies
	// Want is nil for a secret that the spec no longer names.
	Want []Value
	// Known are the entries of the status for this secret. One without a version is not in the status: an interrupted push
	// may have written its value.
	Known []v1alpha1.PushEntryStatus
	// Unrecorded are the values of those entries.
	Unrecorded []Value
	// Seen is the secret as observed; nil if it does not exist.
	Seen *provider.Observed
	// InUse lists what other objects push to this secret, and Behind are those of which that is not known yet.
	InUse  []Use
	Behind Behind
	// Claims are the values that other objects want in this secret. They are looked up only for an update.
	Claims []Claim
	// Former returns the value of an earlier version; false if it cannot be read.
	Former func(version string) ([]byte, bool)

	// paths are those of properties in Seen that were looked up before. It may be nil.
	paths map[string]string
}

// A Use is what another object pushes to a remote secret.
type Use struct {
	// Property is "" for the whole secret.
	Property string
	// Successor is the mark of the other object if it can take the secret over and removes it later; otherwise empty.
	Successor string
	// By names the other object.
	By string
	// Unproven is true if it is not certain yet that the other object pushes it, or that it can take the secret over.
	Unproven bool
}

// Decide returns the call to make for one remote secret. It does no I/O.
func Decide(s State) Decision {
	d := &decider{State: s}
	if err := unable(s); err != nil {
		for _, v := range s.Want {
			d.Failed = append(d.Failed, v.Property)
			d.keep(v)
		}
		d.Errs = append(d.Errs, err)
	} else {
		d.decide()
	}
	if d.postpones() && s.Seen != nil {
		d.Then = append(d.Then, untouchedNow(d.State, d.obsolete())...)
	}
	d.Successor = successorOf(d)
	d.Released = d.released()
	if d.Successor == "" && d.owns() && d.Seen.Mark == "" && slices.ContainsFunc(d.Then, func(e v1alpha1.PushEntryStatus) bool { return e.Created }) {
		d.Successor = d.Mark
	}
	return d.Decision
}

// unable returns an error if the store cannot honor one of the policies.
func unable(s State) error {
	switch {
	case len(s.Want) == 0:
		return nil
	case !s.Exclusive && s.Update == v1alpha1.UpdateIfNotExists:
		return provider.NewError(provider.Invalid, "not implemented: this store does not support spec.updatePolicy: IfNotExists; use Replace, or another store")
	case !s.Exclusive && (s.Adoption == v1alpha1.AdoptionRefuse || s.Adoption == v1alpha1.AdoptionOwn):
		return provider.NewError(provider.Invalid, "not implemented: this store does not record who created a secret; use spec.adoptionPolicy: Adopt, or another store")
	case !s.Guarded && !s.whole():
		return provider.NewError(provider.Invalid, "not implemented: this store cannot write one property safely; push the whole secret, or use another store")
	}
	return nil
}

// whole reports whether the spec wants a single value as the whole secret.
func (s State) whole() bool { return len(s.Want) == 1 && s.Want[0].Property == "" }

// owns reports whether wanted values that exist in the secret count as created by this object. Those in a secret with the
// mark of another object do not.
func (s State) owns() bool {
	return s.Exclusive && s.Adoption == v1alpha1.AdoptionOwn && s.Seen != nil && len(s.Want) > 0 && (s.Seen.Mark == "" || s.mine())
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

// fail records the error of a value that is not written, and keeps its status entry.
func (d *decider) fail(v Value, err error) {
	d.Errs, d.Failed = append(d.Errs, err), append(d.Failed, v.Property)
	d.keep(v)
}

func (d *decider) keep(v Value) {
	if e := d.entry(v.Property); e.Version != "" {
		e.Property = v.Property
		d.Then = append(d.Then, e)
	}
}

// keepExisting records that IfNotExists leaves an existing value unchanged although it differs from the wanted one. An
// existing status entry stays: it describes what this object last had in sync.
func (d *decider) keepExisting(v Value) {
	d.Exists = append(d.Exists, v.Property)
	if e := d.entry(v.Property); e.Version != "" {
		e.Property, e.Owner = v.Property, d.owner()
		d.Then = append(d.Then, e)
		return
	}
	d.done(v.Property, false)
}

// done records that a value is in sync, or will be after the action.
func (d *decider) done(property string, created bool) {
	e := v1alpha1.PushEntryStatus{Property: property, Created: created, Owner: d.owner()}
	if d.Seen != nil && d.marked() && d.replaced() {
		e.ID = d.entry(property).ID // It stays proof that the secret is another one.
	}
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

// nonNil returns an empty slice for nil, because nil means "no value".
func nonNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// value decides about an existing secret that the spec wants as a single value.
func (d *decider) value(v Value) {
	e := d.entry("")
	switch {
	case v.Err != nil:
		d.fail(v, v.Err)
		return
	case d.Seen.Data != nil && (bytes.Equal(d.Seen.Data, v.Data) || d.isUnchanged(e)):
		d.done("", d.mine() || d.owns())
		d.metadata()
		return
	case d.Update == v1alpha1.UpdateIfNotExists && d.Seen.Version != "":
		d.keepExisting(v)
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
	if d.isHeld(v) {
		return
	}
	d.Action, d.Data = Update, nonNil(v.Data)
	d.done("", d.mine() || d.owns())
}

var errForeign = provider.NewError(provider.Conflict, "another client changed the remote secret after this object wrote it, and spec.adoptionPolicy is Refuse; restore it, or set Adopt to overwrite it")

// isUnchanged reports whether the stored value is the one that this object pushed last, and no input has changed since.
func (d *decider) isUnchanged(e v1alpha1.PushEntryStatus) bool {
	return d.InputsUnchanged && e.Version != "" && e.Version == d.Seen.Version && e.ID == d.Seen.ID
}

// refuses returns an error if the adoption policy forbids changes to an existing secret.
func (d *decider) refuses() error {
	if d.Adoption == v1alpha1.AdoptionRefuse && !d.mine() {
		return provider.NewError(provider.Conflict, "the remote secret exists, this object did not create it, and spec.adoptionPolicy is Refuse; push to another key, or set Adopt")
	}
	return nil
}

// metadata plans an update of the metadata only, for a secret whose value is in sync.
func (d *decider) metadata() {
	if d.Action != Nothing || len(d.Seen.Drift) == 0 || d.Update == v1alpha1.UpdateIfNotExists || d.refuses() != nil {
		return
	}
	if d.Holder = d.holder(""); d.Holder != nil {
		d.Errs = append(d.Errs, heldBy(d.Holder))
		return
	}
	d.Action = Update
}

// properties decides about an existing secret of which the spec wants properties, or nothing any more.
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
	doc = d.remove(before, doc)
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

// document returns the value of the secret as a JSON object. A secret without a value counts as an empty object.
func (s State) document() (document, error) {
	if s.Seen.Version == "" {
		return emptyObject, nil
	}
	return parse(s.Seen.Data)
}

// present returns the property of a document that a value is for. The error is also that of the value.
func (v Value) present(doc document) (current []byte, exists bool, err error) {
	if v.Err != nil {
		return nil, false, v.Err
	}
	if current, exists, err = doc.get(v.Property); err != nil {
		err = in(v.Property, err)
	}
	return current, exists, err
}

// property decides about one wanted property.
func (d *decider) property(doc document, v Value) document {
	current, exists, err := v.present(doc)
	if err != nil {
		d.fail(v, err)
		return doc
	}
	e := d.entry(v.Property)
	switch {
	case exists && (bytes.Equal(current, v.Data) || d.isUnchanged(e)):
		d.done(v.Property, d.created(e) || d.owns())
		return doc
	case exists && d.Update == v1alpha1.UpdateIfNotExists:
		d.keepExisting(v)
		return doc
	}
	if exists && d.isHeld(v) {
		return doc
	}
	ours := d.created(e) && d.untouched(e, current)
	next, err := d.replace(doc, v, exists && !ours)
	if err != nil {
		d.fail(v, err)
		return doc
	}
	// Another writer may have removed our property and added one with the same name. That one is not ours to delete.
	created := ours || d.owns()
	if !exists {
		created = d.Guarded
	}
	d.done(v.Property, created)
	return next
}

// replace returns the document with the new value. foreign is true if this object did not write the current value.
func (d *decider) replace(doc document, v Value, foreign bool) (document, error) {
	if err := d.refuses(); err != nil {
		return doc, err
	}
	if foreign && d.Adoption == v1alpha1.AdoptionRefuse {
		return doc, errForeign
	}
	return doc.set(v.Property, v.Data)
}
