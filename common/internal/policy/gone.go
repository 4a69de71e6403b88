package policy

import (
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A Consequence is what a complete answer of the provider means for the Secret.
type Consequence string

// The consequences.
const (
	// Fill: the Secret gets what was read.
	Fill Consequence = "Fill"
	// KeepAll: the Secret stays as it is, and the object reports what is missing.
	KeepAll Consequence = "KeepAll"
	// DropKeys: the object's own keys are removed, and the Secret stays.
	DropKeys Consequence = "DropKeys"
	// DropSecret: nothing is left for the Secret. It is deleted, unless it holds keys of others.
	DropSecret Consequence = "DropSecret"
)

// OnGone is the meaning of deletionPolicy, and its only interpretation: what follows from an answer of the provider.
// gone is true if something that the spec names, and that is not optional, definitely does not exist; values is the
// number of keys that were read. An answer that is incomplete, or an error of another class, must not come here.
func OnGone(p v1alpha1.DeletionPolicy, gone bool, values int) Consequence {
	switch {
	case p == v1alpha1.DeletionDelete && values == 0:
		return DropSecret
	case p == v1alpha1.DeletionMerge && gone && values == 0:
		return DropKeys
	case p != v1alpha1.DeletionDelete && p != v1alpha1.DeletionMerge && gone:
		return KeepAll
	}
	return Fill
}
