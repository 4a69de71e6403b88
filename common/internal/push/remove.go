package push

import (
	"slices"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// obsolete returns the entries that are not wanted any more.
func (s State) obsolete() []v1alpha1.PushEntryStatus {
	return slices.DeleteFunc(slices.Clone(s.Known), func(e v1alpha1.PushEntryStatus) bool {
		return slices.ContainsFunc(s.Want, func(v Value) bool { return v.Property == e.Property })
	})
}

// inUse reports whether other objects push to a property, to one inside of it, or to one that it is inside of.
func (s State) inUse(property string) bool {
	return slices.ContainsFunc(s.InUse, func(used string) bool { return overlap(used, property) })
}

// postpones reports whether nothing is removed for now: not before all that is wanted is written. A whole secret covers
// the properties that were there before.
func (d *decider) postpones() bool {
	return d.Deletes && len(d.Want) > 0 && (len(d.Errs) > 0 || d.Later && !d.whole())
}

// untouchedNow returns the entries that are removed later. Those that are untouched now will be so after the write, and
// get its version.
func (d *decider) untouchedNow() []v1alpha1.PushEntryStatus {
	entries := d.obsolete()
	doc, err := d.document()
	for i := range entries {
		e := &entries[i]
		if current, exists := doc.has(e.Property); err == nil && e.Property != "" && exists && d.untouched(*e, current) {
			e.Version, e.ID = "", ""
		}
	}
	return entries
}

// remove takes out the properties that this object created and the spec names no more.
func (d *decider) remove(doc document) document {
	if !d.Deletes || d.postpones() {
		return doc
	}
	for _, e := range d.obsolete() {
		if e.Property == "" {
			d.removeWhole()
			continue
		}
		current, exists := doc.has(e.Property)
		if !e.Created || !exists {
			continue
		}
		if d.inUse(e.Property) {
			d.Released = append(d.Released, e)
			continue
		}
		next, err := doc.without(e.Property)
		if err != nil || !d.untouched(e, current) {
			d.Left = append(d.Left, e)
			continue
		}
		doc = next
	}
	return doc
}

// removeWhole has a secret deleted that this object created and that is as it left it.
func (d *decider) removeWhole() {
	i := slices.IndexFunc(d.obsolete(), func(e v1alpha1.PushEntryStatus) bool { return e.Property == "" })
	if !d.Deletes || i < 0 || !d.obsolete()[i].Created {
		return
	}
	e := d.obsolete()[i]
	switch {
	case len(d.Want) > 0: // It holds properties from now on.
	case d.inUse(""):
		d.Released = append(d.Released, e)
	case d.mine() && e.ID == d.Seen.ID && e.Version == d.Seen.Version:
		d.Action = Delete
	default:
		d.Left = append(d.Left, e)
	}
}
