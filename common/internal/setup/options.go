// Package setup holds the options that all controllers of an operator share.
package setup

import (
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Options are the options of an operator. The operator sets all of them.
type Options struct {
	// Module is the API group of the module. It is used in labels, marks and finalizers.
	Module string
	// Kinds are the store Kinds that the module serves, including generators.
	Kinds []provider.Kind
	// ControllerClass is the class of stores that this operator serves.
	ControllerClass string
	// Namespaced is true for an operator that is limited to some namespaces: it has no permission to read cluster
	// Kinds.
	Namespaced bool
	// Walks bound the walks of all controllers.
	Walks *kit.Walks
	Times
	Permitted
	// DefaultCleanupPolicy applies to ExternalSecrets without a cleanupPolicy.
	DefaultCleanupPolicy v1alpha1.CleanupPolicy
	// Audit gets a line for each key of a Secret that is added, changed or removed; nil: none.
	Audit *slog.Logger
	// Board knows which operators run.
	Board *presence.Board
	// Bus carries the events about stores whose reads might have another result than before.
	Bus *refresh.Bus
	// Suspect is called with a store that has failed or refused a call.
	Suspect func(k provider.Kind, s types.NamespacedName)
	// Random returns numbers in [0, 1) for jitter.
	Random func() float64
	// Now is the clock.
	Now func() time.Time
}

// Times are how long an operator waits.
type Times struct {
	// CallTimeout is the timeout of one call to a provider, including retries.
	CallTimeout time.Duration
	// RemoveDelay is the time until a PushSecret removes what its spec no longer names.
	RemoveDelay time.Duration
}

// Permitted is what the flags of an operator permit.
type Permitted struct {
	// NoRemoteChanges is true for an operator that changes nothing outside the cluster. Its Kinds refuse such changes,
	// too.
	NoRemoteChanges bool
	// ConfigMapTargets is true for an operator that writes ConfigMaps, too.
	ConfigMapTargets bool
	// WorkloadRestarts is true for an operator that restarts workloads.
	WorkloadRestarts bool
}
