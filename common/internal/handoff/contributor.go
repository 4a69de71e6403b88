package handoff

import (
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A Contributor is an operator that stores values for objects in parts, for one purpose.
type Contributor struct {
	// Group is the API group of its module, and Class the class of stores that it serves.
	Group, Class string
	Purpose      v1alpha1.PartPurpose
}

// ContributorOf returns the contributor of an entry of status.parts. It is the zero Contributor for entries of modules
// built before entries had a group.
func ContributorOf(s v1alpha1.PartStatus) Contributor {
	return Contributor{s.Group, s.Class, s.Purpose}
}

// Key identifies the contributor's entry in status.parts. It is opaque: modules compare it, and never parse it. Every
// version must build the same key.
func (c Contributor) Key() string {
	key := c.Group
	if c.Class != "" {
		key += "/" + c.Class
	}
	return key + c.suffix()
}

// PartName returns the name of the contributor's part for an object.
func (c Contributor) PartName(kind, name string) string {
	return partName(kind, name, c.Group+c.suffix(), c.Class)
}

// suffix distinguishes the contributions of one operator.
func (c Contributor) suffix() string {
	if c.Purpose == v1alpha1.PartRead {
		return "#reads"
	}
	return ""
}

// Wrote reports whether the contributor wrote an entry of status.parts.
func (c Contributor) Wrote(s v1alpha1.PartStatus) bool { return s.Module == c.Key() }

// Wrote reports whether an operator wrote an entry of status.parts, for any purpose.
func Wrote(group, class string, s v1alpha1.PartStatus) bool {
	return Contributor{group, class, v1alpha1.PartRead}.Wrote(s) || Contributor{group, class, v1alpha1.PartGenerated}.Wrote(s)
}
