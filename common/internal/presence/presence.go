// Package presence lets the modules of a cluster know of each other. Each module publishes itself in a Lease, which any
// of its replicas renews, and reads the Leases of the others. One more Lease decides which module holds the shared
// duties: the work that is specific to no provider.
package presence

import (
	"cmp"
	"os"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// A Member is what an operator publishes about itself.
type Member struct {
	// Module is the API group of the module, for example aws.direct-secrets.io.
	Module string `json:"module"`
	// Name is the name of the binary, for example provider-aws. It is also the module's value in the chart.
	Name string `json:"name"`
	// Class is the class of the stores that it serves; empty: stores without a class.
	Class string `json:"class,omitempty"`
	// Kinds are the Kinds of stores and generators that it serves.
	Kinds []Kind `json:"kinds"`
	// Namespaces are the namespaces that it serves; empty: all.
	Namespaces []string `json:"namespaces,omitempty"`
	// Version is the version of common that it was built with, for example v0.1.0; empty if it is not known.
	Version string `json:"version,omitempty"`
	// Common is the range of versions of common with which it works; nil: that of WorksWith(Version).
	Common *Range `json:"common,omitempty"`
}

// A Range holds the versions from From, and before Before. Both have the form v0.1.0.
type Range struct {
	From   string `json:"from"`
	Before string `json:"before"`
}

// A Kind is a Kind that a Member serves.
type Kind struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	// Cluster is true for a Kind that is not namespaced.
	Cluster bool `json:"cluster,omitempty"`
}

// Timing holds the times of the Leases. Fields that are 0 have their defaults.
type Timing struct {
	// Renew is the time between two renewals. Default 10s.
	Renew time.Duration
	// Duration is how long a Lease is valid without a renewal. Default 40s. A Lease states it in whole seconds.
	Duration time.Duration
	// GracePeriod is how long a Kind may be unknown before it counts as missing. Default 25s.
	GracePeriod time.Duration
	// Rollout is how long a module may be stopped before its Kinds count as missing. Default 2m.
	Rollout time.Duration
	// Schema is the time between two checks of the served schema. Default 10m.
	Schema time.Duration
	// Shared, SharedDeadline and SharedRetry are the lease duration, the renewal deadline and the retry period of the
	// Lease of the shared duties. Default 15s, 8s and 2s.
	Shared, SharedDeadline, SharedRetry time.Duration
}

func (t Timing) withDefaults() Timing {
	t.Renew = cmp.Or(t.Renew, 10*time.Second)
	t.Duration = cmp.Or(t.Duration, 40*time.Second)
	t.GracePeriod = cmp.Or(t.GracePeriod, 25*time.Second)
	t.Rollout = cmp.Or(t.Rollout, 2*time.Minute)
	t.Schema = cmp.Or(t.Schema, 10*time.Minute)
	t.Shared = cmp.Or(t.Shared, 15*time.Second)
	t.SharedDeadline = cmp.Or(t.SharedDeadline, 8*time.Second)
	t.SharedRetry = cmp.Or(t.SharedRetry, 2*time.Second)
	return t
}

// Options are the options of Setup.
type Options struct {
	// Namespace is the namespace of the Leases. Empty: presence is off.
	Namespace string
	// Self is what this operator publishes about itself.
	Self   Member
	Timing Timing
	// Catalog holds the modules that can be installed.
	Catalog Catalog
}

// Setup makes an operator publish itself and compete for the shared duties. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, o Options) (*Board, *Duties, error) {
	o.Self = o.Self.normal()
	if o.Namespace == "" {
		duties := &Duties{}
		return &Board{self: o.Self}, duties, errors.Wrap(mgr.Add(duties), "cannot add shared duties")
	}
	timing := o.Timing.withDefaults()
	fields, err := addFieldCheck(mgr, timing.Schema)
	if err != nil {
		return nil, nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot determine the name of this replica")
	}
	identity := host + "_" + uuid.NewString()
	board := newBoard(o.Self, timing, time.Now)
	board.catalog = o.Catalog
	if err := mgr.Add(&renewer{
		client: live, self: o.Self, timing: timing, identity: identity, log: mgr.GetLogger(), fields: fields,
		key: client.ObjectKey{Namespace: o.Namespace, Name: leaseName(o.Self)}, elected: mgr.Elected(),
	}); err != nil {
		return nil, nil, errors.Wrap(err, "cannot add the renewal of the Lease")
	}
	if board.leases, err = newLeases(mgr, o.Namespace); err != nil {
		return nil, nil, err
	}
	if err := mgr.Add(board); err != nil {
		return nil, nil, errors.Wrap(err, "cannot add the reader of Leases")
	}
	lock, err := NewLock(mgr.GetConfig(), client.ObjectKey{Namespace: o.Namespace, Name: dutiesName(o.Self)}, identity, RequestTimeout(timing.SharedDeadline))
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot create the Lease of the shared duties")
	}
	duties := &Duties{lock: lock, timing: timing}
	duties.gauge() // A standby replica shows the metric, too.
	return board, duties, errors.Wrap(mgr.Add(duties), "cannot add shared duties")
}
