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
	return slices.ContainsFunc(s.InUse, func(u Use) bool { return overlap(u.Property, property) })
}

// bequeath leaves what this object created to those who push it, too. Who pushes more or less of the secret has not made it.
func (d *decider) bequeath(e v1alpha1.PushEntryStatus) {
	left := false
	for _, u := range d.InUse {
		if u.Heir != "" && u.Property == e.Property {
			d.Bequests, left = append(d.Bequests, Bequest(u)), true
		}
	}
	if !left {
		d.Released = append(d.Released, e)
	}
}

// bequeathed returns the entries that are left to others.
func (d Decision) bequeathed(known []v1alpha1.PushEntryStatus) []v1alpha1.PushEntryStatus {
	return slices.DeleteFunc(slices.Clone(known), func(e v1alpha1.PushEntryStatus) bool {
		return !slices.ContainsFunc(d.Bequests, func(b Bequest) bool { return b.Property == e.Property })
	})
}

// heirOf returns the mark of an object that is to have the secret, since this one has nothing in it any more: first of all
// one that pushes the whole of it. It is empty where the secret goes, is another's, or has none to go to.
func heirOf(d *decider) string {
	if d.Seen == nil || len(d.Want) > 0 || !d.Deletes || !d.mine() || d.Action == Delete {
		return ""
	}
	heir := ""
	for _, u := range d.InUse {
		switch {
		case u.Heir == d.Mark: // It pushes there by another store.
			return ""
		case u.Heir != "" && (heir == "" || u.Property == ""):
			heir = u.Heir
		}
	}
	return heir
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
			d.bequeath(e)
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

// emptied reports whether a secret holds nothing any more that this object created, and had properties in. Another may have
// taken out the last one that both pushed.
func (s State) emptied(doc document) bool {
	return s.Deletes && doc.isEmpty() && s.mine() && !s.inUse("") &&
		slices.ContainsFunc(s.Known, func(e v1alpha1.PushEntryStatus) bool {
			return e.Created && e.Property != "" && e.ID == s.Seen.ID
		})
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
		d.bequeath(e)
	case d.mine() && e.ID == d.Seen.ID && e.Version == d.Seen.Version:
		d.Action = Delete
	default:
		d.Left = append(d.Left, e)
	}
}
