package push

import (
	"bytes"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// mine reports whether this object owns the secret: it has the mark of the object, and the status records no other ID for
// it. A secret that was deleted and created again by another writer is not ours, also if it has our mark.
func (s State) mine() bool { return s.marked() && !s.replaced() }

// marked reports whether the secret has the mark of this object.
func (s State) marked() bool { return s.Exclusive && s.Seen.Mark == s.Mark }

// replaced reports whether the status records another ID for the secret.
func (s State) replaced() bool {
	return slices.ContainsFunc(s.Known, func(e v1alpha1.PushEntryStatus) bool { return e.Version != "" && e.ID != s.Seen.ID })
}

// created reports whether this object owns what a status entry names: it created it in this secret, or took the whole secret
// over with its mark. That another object owned the secret does not tell who added a property.
func (s State) created(e v1alpha1.PushEntryStatus) bool {
	if e.Version == "" {
		return s.mine() && slices.ContainsFunc(s.Unrecorded, func(v Value) bool { return v.Property == e.Property })
	}
	return e.ID == s.Seen.ID && (e.Created || e.Property == "" && e.Owner != "" && s.mine())
}

// unrecorded reports whether an interrupted push of this object has written a value.
func (s State) unrecorded(e v1alpha1.PushEntryStatus, current []byte) bool {
	return s.mine() && slices.ContainsFunc(s.Unrecorded, func(v Value) bool { return v.Property == e.Property && v.Err == nil && bytes.Equal(v.Data, current) })
}

// same reports whether the whole secret has the value that it had when it was last in sync. The version may differ: a
// delayed operator may have written the same value again.
func (s State) same(e v1alpha1.PushEntryStatus) bool {
	switch {
	case e.Version == "":
		return s.unrecorded(e, s.Seen.Data)
	case e.ID != s.Seen.ID:
		return false
	case e.Version == s.Seen.Version:
		return true
	}
	was, ok := s.Former(e.Version)
	return ok && bytes.Equal(was, s.Seen.Data)
}

// untouched reports whether a property is unchanged since it was last in sync. It must have been the same member then.
func (s State) untouched(e v1alpha1.PushEntryStatus, current []byte) bool {
	switch {
	case e.Version == "":
		return s.unrecorded(e, current)
	case e.ID != s.Seen.ID:
		return false
	case e.Version == s.Seen.Version:
		return true
	}
	data, ok := s.Former(e.Version)
	if !ok {
		return false
	}
	doc, err := parse(data)
	if err != nil {
		return false
	}
	was, existed := doc.has(e.Property)
	return existed && bytes.Equal(was, current) && doc.path(e.Property) == s.path(e.Property)
}

// maxOwner limits the length of a mark in the status, in bytes. That of an object is its uid.
const maxOwner = 64

// owner returns the mark of the object that owns the secret; empty if that is this object, or none.
func (s State) owner() string {
	if s.Seen == nil || s.Seen.Mark == s.Mark || len(s.Seen.Mark) > maxOwner {
		return ""
	}
	return s.Seen.Mark
}
