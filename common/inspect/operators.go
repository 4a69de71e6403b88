package inspect

import (
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/presence"
)

// OperatorLabel is the label of each operator's Lease.
const OperatorLabel = presence.Label

// An Operator is the data of a running operator in its Lease: module, Kinds, namespaces, class and version.
type Operator = presence.Member

// A ServedKind is a Kind of stores or generators that an Operator serves.
type ServedKind = presence.Kind

// OperatorOf returns the operator of a Lease; false if the Lease has no operator. The spec of the Lease shows whether
// it has expired.
func OperatorOf(l *coordinationv1.Lease) (Operator, bool) { return presence.Decode(l) }

// MissingFields returns the fields that hold an object back and that the CRDs of the cluster do not have, as the operator of a
// Lease reports them; empty for none.
func MissingFields(l *coordinationv1.Lease) string {
	return l.Annotations[presence.MissingFieldsAnnotation]
}

// Skewed reports whether two operators are built with versions of common that are too different to process the same object.
func Skewed(a, b Operator) bool { return presence.Skewed(a, b) }
