package inspect

import (
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/presence"
)

// OperatorLabel is on the Lease of each operator.
const OperatorLabel = presence.Label

// An Operator is what a running operator reports of itself in its Lease: module, Kinds, namespaces, class and version.
type Operator = presence.Member

// A ServedKind is a Kind of stores or generators that an Operator serves.
type ServedKind = presence.Kind

// OperatorOf returns the operator that a Lease reports; false if the Lease reports none. Whether the Lease has expired,
// its spec tells.
func OperatorOf(l *coordinationv1.Lease) (Operator, bool) { return presence.Decode(l) }

// Skewed reports whether two versions of common are too far apart to work on the same object.
func Skewed(a, b string) bool { return presence.Skewed(a, b) }
