package push

import (
	"slices"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
)

// obsolete returns the status entries that the spec no longer wants.
func (s State) obsolete() []v1alpha1.PushEntryStatus {
	wanted := map[string]bool{}
	for _, v := range s.Want {
		wanted[s.path(v.Property)] = true
	}
	return slices.DeleteFunc(slices.Clone(s.Known), func(e v1alpha1.PushEntryStatus) bool { return wanted[s.path(e.Property)] })
}

// inUse reports whether other objects push to a property, to one inside it, or to one that contains it.
func (s State) inUse(property string) bool {
	return slices.ContainsFunc(s.InUse, func(u Use) bool { return overlap(u.Property, property) })
}

// released returns the entries that are in use, and that no other object removes later. An object that pushes more or less
// of the secret than an entry does not take the entry over.
func (d *decider) released() []v1alpha1.PushEntryStatus {
	return slices.DeleteFunc(slices.Clone(d.Used), func(e v1alpha1.PushEntryStatus) bool {
		return slices.ContainsFunc(d.InUse, func(u Use) bool {
			takes := u.Successor == d.Successor || u.Successor == d.Mark || e.Property != "" // Its status shows the property as created.
			return d.path(u.Property) == d.path(e.Property) && u.Successor != "" && takes
		})
	})
}

// successorOf returns the mark of the object that takes the secret over when this object has nothing left in it. An object
// that pushes the whole secret takes precedence. It returns "" if the secret is deleted, is not ours, or has no successor.
func successorOf(d *decider) string {
	if d.Seen == nil || len(d.Want) > 0 || !d.Deletes || d.Postponed || !d.mine() || d.Action == Delete {
		return ""
	}
	successor := ""
	for _, u := range d.InUse {
		switch {
		case u.Successor == d.Mark: // The same object pushes to this secret by another store.
			return ""
		case u.Successor != "" && (successor == "" || u.Property == ""):
			successor = u.Successor
		}
	}
	return successor
}

// postpones reports whether removals must wait until all wanted values are written. Pushing a whole secret replaces its
// former properties anyway.
func (d *decider) postpones() bool {
	return d.Deletes && len(d.Want) > 0 && (len(d.Errs) > 0 || d.Later && !d.whole())
}

// untouchedNow returns entries that a later Apply removes. Entries that are untouched now stay so after our write,
// so they get its version.
func untouchedNow(s State, entries []v1alpha1.PushEntryStatus) []v1alpha1.PushEntryStatus {
	doc, err := s.document()
	for i := range entries {
		e := &entries[i]
		if current, exists := doc.has(e.Property); err == nil && e.Property != "" && exists && s.untouched(*e, current) {
			e.Version, e.ID = "", ""
		}
	}
	return entries
}

// remove removes the properties that this object created and that the spec no longer names. The document before the wanted values were
// set in it tells what they mean.
func (d *decider) remove(before, doc document) document {
	if !d.Deletes || d.postpones() {
		return doc
	}
	for _, e := range d.obsolete() {
		if e.Property == "" {
			d.removeWhole()
			continue
		}
		p, unclear := before.at(e.Property)
		if !p.value.Exists() && unclear == nil {
			continue
		}
		next, err := doc.without(p.names)
		if d.removes(e, unclear == nil && err == nil && d.untouched(e, render.Text(p.value))) {
			doc = next
		}
	}
	return doc
}

// removes decides about an entry that the spec no longer wants, and reports whether it is removed.
func (d *decider) removes(e v1alpha1.PushEntryStatus, intact bool) bool {
	f := Facts{Behind: d.Behind, Used: d.inUse(e.Property), Owned: e.Created || d.created(e), Intact: intact}
	f.Unproven = slices.ContainsFunc(d.InUse, func(u Use) bool { return u.Unproven && overlap(u.Property, e.Property) })
	switch f.Verdict() {
	case Remove:
		return true
	case Release:
		d.Used = append(d.Used, e)
	case Keep:
		d.Left = append(d.Left, e)
	case Postpone:
		d.Postponed, d.Then = true, append(d.Then, untouchedNow(d.State, []v1alpha1.PushEntryStatus{e})...)
	case Ignore:
	}
	return false
}

// emptied reports whether a secret that this object created has no properties left. Another object may have removed the
// last property, if both pushed it.
func (s State) emptied(doc document) bool {
	return s.Deletes && doc.isEmpty() && s.mine() && !s.inUse("") &&
		slices.ContainsFunc(s.Known, func(e v1alpha1.PushEntryStatus) bool {
			return e.Property != "" && s.created(e)
		})
}

// removeWhole plans the deletion of a secret that this object created, if it is unchanged since.
func (d *decider) removeWhole() {
	i := slices.IndexFunc(d.obsolete(), func(e v1alpha1.PushEntryStatus) bool { return e.Property == "" })
	if !d.Deletes || i < 0 || len(d.Want) > 0 { // The secret now holds wanted properties.
		return
	}
	if e := d.obsolete()[i]; d.removes(e, d.mine() && d.same(e)) {
		d.Action = Delete
	}
}
