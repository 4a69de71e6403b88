// Package setup holds what the controllers of an operator are set up with.
package setup

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Options are those of an operator. It sets them all.
type Options struct {
	// Module is the API group of the module, in labels, marks and finalizers.
	Module string
	// Kinds of stores that the module serves, generators among them.
	Kinds []provider.Kind
	// ControllerClass is the class of stores that this operator serves.
	ControllerClass string
	// Namespaced is true for an operator that serves chosen namespaces only: it has no right to
	// read cluster Kinds.
	Namespaced bool
	// Concurrency is the number of ExternalSecrets that are worked on at once. Other controllers take a share of it.
	Concurrency int
	// CallTimeout is the deadline of one call to a provider, its retries included.
	CallTimeout time.Duration
	// DefaultCleanupPolicy is for ExternalSecrets that leave cleanupPolicy unset.
	DefaultCleanupPolicy v1alpha1.CleanupPolicy
	// Board knows the other operators.
	Board *presence.Board
	// Bus brings the news that a store may yield something else.
	Bus *refresh.Bus
	// Suspect is told of a store that has refused what was asked of it.
	Suspect func(k provider.Kind, s types.NamespacedName)
	// Random returns numbers in [0, 1) for jitter.
	Random func() float64
	// Now is the clock.
	Now func() time.Time
}
