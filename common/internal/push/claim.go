package push

import (
	"slices"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Claim is a value that another object wants in a remote secret, or the same object by another store.
type Claim struct {
	// Property is "" for the whole secret.
	Property string
	// Mark is that of the other object, and By names it.
	Mark, By string
	// First is true if it takes precedence where both objects have an entry for the value, and no mark tells who holds it.
	First bool
}

func heldBy(c *Claim) error {
	return provider.NewError(provider.Conflict, "%s pushes another value there; push to another key, or delete one of the objects", c.By)
}

// holder returns the claim that keeps this object from writing a property; nil for none. The mark decides, and otherwise the entries.
func (s State) holder(property string) *Claim {
	e := s.entry(property)
	recorded := e.Version != "" && e.Source != ""
	for i, c := range s.Claims {
		switch {
		case !overlap(c.Property, property):
		case c.Mark != s.Mark && s.marked():
		case c.Mark != s.Mark && c.Mark == s.Seen.Mark, !recorded, c.First:
			return &s.Claims[i]
		}
	}
	return nil
}

// isHeld reports whether another object holds the value that a wanted one would replace. The entry for it stays or becomes listed, so
// that the holder does not delete the value, but it claims none: it has no source.
func (d *decider) isHeld(v Value) bool {
	c := d.holder(v.Property)
	if c == nil || d.Seen.Version == "" {
		return false
	}
	e := d.entry(v.Property)
	if !e.Created {
		e = v1alpha1.PushEntryStatus{Version: d.Seen.Version, ID: d.Seen.ID, Owner: d.owner()}
	}
	e.Property, e.Source = v.Property, ""
	d.Then = append(d.Then, e)
	d.Holder, d.Errs, d.Failed = c, append(d.Errs, heldBy(c)), append(d.Failed, v.Property)
	return true
}

// succeeds reports whether this object takes over a secret whose owner has cleared its mark. An entry shows that it was the owner of
// this very secret.
func (s State) succeeds() bool {
	if !s.Exclusive || !s.Deletes || s.Adoption == v1alpha1.AdoptionRefuse || s.Seen == nil || s.Seen.Mark != "" {
		return false
	}
	return slices.ContainsFunc(s.Known, func(e v1alpha1.PushEntryStatus) bool {
		return e.Version != "" && e.Owner != "" && e.Owner != s.Mark && e.ID == s.Seen.ID
	})
}
