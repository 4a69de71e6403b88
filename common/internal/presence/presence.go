// Package presence is how the modules of a cluster know of each other: each tells of itself in a Lease that
// any of its replicas renews, and reads those of the others. One more Lease says which module does what
// belongs to no provider.
package presence

import (
	"os"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// A Member is what an operator tells of itself.
type Member struct {
	// Module is the API group of the module, for example aws.direct-secrets.io.
	Module string `json:"module"`
	// Name is that of the binary, which is also the module's value in the chart; for example provider-aws.
	Name string `json:"name"`
	// Class of the stores that it serves; empty: those without one.
	Class string `json:"class,omitempty"`
	// Kinds of stores and generators that it serves.
	Kinds []Kind `json:"kinds"`
	// Namespaces that it serves; empty: all.
	Namespaces []string `json:"namespaces,omitempty"`
	// Version of common that it was built from, for example v0.1.0; empty if it is not known.
	Version string `json:"version,omitempty"`
}

// A Kind is one that a Member serves.
type Kind struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	// Cluster is true for a Kind that is not namespaced.
	Cluster bool `json:"cluster,omitempty"`
}

// Timing of the Leases. Fields that are 0 have their defaults.
type Timing struct {
	// Renew is the time between two renewals. Default 10s.
	Renew time.Duration
	// Duration is how long a Lease counts without a renewal. Default 40s. A Lease states it in whole
	// seconds.
	Duration time.Duration
	// Settle is how long a Kind may be unheard of before it counts as missing. Default 25s.
	Settle time.Duration
	// Rollout is how long a module may be gone before its Kinds count as missing. Default 2m.
	Rollout time.Duration
	// Shared, SharedDeadline and SharedRetry are the duration, the deadline of renewal and the time
	// between two tries of the Lease of shared duties. Default 15s, 8s and 2s.
	Shared, SharedDeadline, SharedRetry time.Duration
}

func (t Timing) withDefaults() Timing {
	for _, f := range []struct {
		value *time.Duration
		or    time.Duration
	}{
		{&t.Renew, 10 * time.Second},
		{&t.Duration, 40 * time.Second},
		{&t.Settle, 25 * time.Second},
		{&t.Rollout, 2 * time.Minute},
		{&t.Shared, 15 * time.Second},
		{&t.SharedDeadline, 8 * time.Second},
		{&t.SharedRetry, 2 * time.Second},
	} {
		if *f.value == 0 {
			*f.value = f.or
		}
	}
	return t
}

// Options of Setup.
type Options struct {
	// Namespace of the Leases. Empty: presence is off.
	Namespace string
	// Self is what this operator tells of itself.
	Self   Member
	Timing Timing
	// Catalog holds the modules that can be installed.
	Catalog Catalog
}

// Setup has an operator tell of itself and compete for the shared duties. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, o Options) (*Board, *Duties, error) {
	o.Self = o.Self.normal()
	if o.Namespace == "" {
		duties := &Duties{}
		return &Board{self: o.Self}, duties, errors.Wrap(mgr.Add(duties), "cannot add shared duties")
	}
	timing := o.Timing.withDefaults()
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot name this replica")
	}
	identity := host + "_" + uuid.NewString()
	board := newBoard(o.Self, timing, time.Now)
	board.catalog = o.Catalog
	if err := mgr.Add(&renewer{
		client: live, self: o.Self, timing: timing, identity: identity, log: mgr.GetLogger(),
		key: client.ObjectKey{Namespace: o.Namespace, Name: leaseName(o.Self)}, elected: mgr.Elected(),
	}); err != nil {
		return nil, nil, errors.Wrap(err, "cannot add the renewal of the Lease")
	}
	leases, err := newLeases(mgr, o.Namespace)
	if err != nil {
		return nil, nil, err
	}
	if err := mgr.Add(&reader{board: board, leases: leases}); err != nil {
		return nil, nil, errors.Wrap(err, "cannot add the reader of Leases")
	}
	lock, err := NewLock(mgr.GetConfig(), client.ObjectKey{Namespace: o.Namespace, Name: dutiesName(o.Self)}, identity, timing.SharedDeadline)
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot make the Lease of shared duties")
	}
	duties := &Duties{lock: lock, timing: timing}
	duties.gauge() // A replica that waits tells of them, too.
	return board, duties, errors.Wrap(mgr.Add(duties), "cannot add shared duties")
}
