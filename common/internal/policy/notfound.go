package policy

import (
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A Consequence is what a complete answer of the provider means for the Secret.
type Consequence string

// The consequences.
const (
	// Fill writes the values that were read to the Secret.
	Fill Consequence = "Fill"
	// KeepAll leaves the Secret unchanged; the object reports what is missing.
	KeepAll Consequence = "KeepAll"
	// DropKeys removes the object's own keys and keeps the Secret.
	DropKeys Consequence = "DropKeys"
	// DropSecret deletes the Secret, unless it holds keys of others: there is nothing left to write to it.
	DropSecret Consequence = "DropSecret"
)

// OnNotFound implements deletionPolicy, in this place only. notFound is true if something that the spec names, and that is not
// optional, definitely does not exist. values is the number of keys that were read. The caller must not pass an
// incomplete answer, or an error of another class.
func OnNotFound(p v1alpha1.DeletionPolicy, notFound bool, values int) Consequence {
	switch {
	case p == v1alpha1.DeletionDelete && values == 0:
		return DropSecret
	case p == v1alpha1.DeletionMerge && notFound && values == 0:
		return DropKeys
	case p != v1alpha1.DeletionDelete && p != v1alpha1.DeletionMerge && notFound:
		return KeepAll
	}
	return Fill
}
