package operator

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/eventreceiver"
	"github.com/direct-secrets/direct-secrets/common/internal/eventreceiver/kinds"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// openWithin is how long a new leader answers 503 while it opens the paths of all receivers.
const openWithin = 10 * time.Second

// +kubebuilder:rbac:groups=direct-secrets.io,resources=eventreceivers,verbs=list;watch,roleName=receivers
// +kubebuilder:rbac:groups=direct-secrets.io,resources=eventreceivers/status,verbs=patch,roleName=receivers
// +kubebuilder:rbac:groups=direct-secrets.io,resources=clustereventreceivers,verbs=list;watch,roleName=receivers-cluster
// +kubebuilder:rbac:groups=direct-secrets.io,resources=clustereventreceivers/status,verbs=patch,roleName=receivers-cluster

// addReceiver adds the server for events, if there is one, and returns the options of the controllers for event sources. These Kinds
// are not those of the module: other modules serve objects of them, too.
func (o *Operator) addReceiver(s *shared, opts setup.Options) (setup.Options, error) {
	if !o.flags.receives() {
		return opts, nil
	}
	h := eventreceiver.NewHandler()
	h.Refused = refused(s.log)
	own := kinds.New(h.Endpoints, o.kinds, o.flags.namespaced())
	if o.flags.NoRemoteChanges {
		for i, k := range own {
			own[i] = k.WithoutRemoteChanges()
		}
	} else {
		leader, err := o.leaderReader(s.GetConfig())
		if err != nil {
			return opts, err
		}
		if leader != nil {
			h.Forwarder = eventreceiver.NewForwarder(leader.Address, o.flags.EventReceiverCertDir, s.log)
		}
		if err := s.Add(manager.RunnableFunc(func(ctx context.Context) error {
			if err := s.openReceivers(ctx, own, opts); err != nil {
				return err
			}
			h.Ready.Store(true)
			return nil
		})); err != nil {
			return opts, errors.Wrap(err, "cannot add the receivers")
		}
	}
	opts.Kinds = slices.Concat(opts.Kinds, own)
	return opts, errors.Wrap(s.Add(&eventreceiver.Server{Address: o.flags.EventReceiverAddress, CertDir: o.flags.EventReceiverCertDir, Handler: h, Refused: h.Refused}), "cannot add the server for events")
}

const (
	// logRefusedEvery is the minimum time between two log lines about refused requests: anyone can send these.
	logRefusedEvery = 10 * time.Second
	// maxPath is the maximum length of a path in such a line.
	maxPath = 200
)

// refused returns a function that counts refused requests, and logs one from time to time.
func refused(to *slog.Logger) func(path, reason string) {
	sometimes := rate.Sometimes{Interval: logRefusedEvery}
	return func(path, reason string) {
		refusedRequests.WithLabelValues(reason).Inc()
		sometimes.Do(func() {
			to.Warn("refusing a request about changed secrets", "path", status.Cut(path, maxPath), "reason", reason)
		})
	}
}

// openReceivers opens the paths of all receivers, so that the first request after a change of leaders is not refused. The
// controllers report the objects for which this fails.
func (s *shared) openReceivers(ctx context.Context, own []provider.Kind, opts setup.Options) error {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	var all []provider.Object
	receivers := &v1alpha1.EventReceiverList{}
	if err := s.GetCache().List(ctx, receivers); err != nil {
		return errors.Wrap(err, "cannot list EventReceivers")
	}
	for i := range receivers.Items {
		all = append(all, &receivers.Items[i])
	}
	if !opts.Namespaced {
		receivers := &v1alpha1.ClusterEventReceiverList{}
		if err := s.GetCache().List(ctx, receivers); err != nil {
			return errors.Wrap(err, "cannot list ClusterEventReceivers")
		}
		for i := range receivers.Items {
			all = append(all, &receivers.Items[i])
		}
	}
	for _, o := range all {
		k := own[slices.IndexFunc(own, func(k provider.Kind) bool { return k.Cluster == (o.GetNamespace() == "") })]
		if k.Serves(o) && provider.SourceSpec(o).Controller == opts.ControllerClass && o.GetDeletionTimestamp() == nil {
			_, _ = s.pool.Loader(k, o, "").Link(ctx)
		}
	}
	return nil
}
