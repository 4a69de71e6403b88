package push

import (
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Drops reports whether the spec of an object certainly no longer names what a status entry records for a store, whatever
// keys the Secret of the entry has.
func Drops(ps *v1alpha1.PushSecret, ref v1alpha1.StoreRef, e v1alpha1.PushEntryStatus) bool {
	from := Source{Namespace: ps.Namespace, Name: e.Source}
	return !slices.ContainsFunc(ps.Spec.Data, func(d v1alpha1.PushData) bool {
		r := d.Match.RemoteRef
		return place(r.RemoteKey, from) == e.RemoteKey && (r.Property == "" || r.Property == e.Property)
	}) && !slices.ContainsFunc(ps.Spec.DataTo, func(d v1alpha1.PushDataTo) bool {
		return (d.StoreRef == nil || same(*d.StoreRef, ref)) && (d.RemoteKey == "" || place(d.RemoteKey, from) == e.RemoteKey)
	})
}

// overlap reports whether two properties are equal or one contains the other; "" is the whole secret. An escaped dot
// counts like a plain one, because a read also finds a property under the top-level key spelled like its path.
func overlap(a, b string) bool {
	a, b = dotted(a), dotted(b)
	return a == "" || b == "" || strings.HasPrefix(a+".", b+".") || strings.HasPrefix(b+".", a+".")
}

// SamePlace reports whether two properties mean one member of some document. In others, one of them can be a member inside an object.
func SamePlace(a, b string) bool { return (a == "") == (b == "") && dotted(a) == dotted(b) }

func dotted(property string) string { return strings.Join(split(property), ".") }

// path returns the path of a property in the secret as observed. Everything compares paths, because a property has several
// spellings, and which of them are the same depends on the members that the secret has.
func (s State) path(property string) string {
	p, found := s.paths[property]
	if found {
		return p
	}
	var doc document
	if s.Seen != nil {
		doc, _ = s.document() // Without members, a path has the names that its text has.
	}
	if p = doc.path(property); s.paths != nil {
		s.paths[property] = p
	}
	return p
}

// entry returns the status entry of a property under any spelling, or a new one. One that counts as created takes precedence.
func (s State) entry(property string) v1alpha1.PushEntryStatus {
	is := v1alpha1.PushEntryStatus{Property: property}
	found := false
	for _, e := range s.Known {
		if s.path(e.Property) == s.path(property) && (!found || e.Created && !is.Created) {
			is, found = e, true
		}
	}
	is.RemoveAfter = nil // It is wanted again.
	return is
}
