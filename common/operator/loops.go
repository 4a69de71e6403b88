package operator

import (
	"cmp"
	"context"
	"os"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/direct-secrets/direct-secrets/common/internal/controllers/contribution"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/target"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/controllers/eventsource"
	"github.com/direct-secrets/direct-secrets/common/internal/controllers/externalsecret"
	"github.com/direct-secrets/direct-secrets/common/internal/controllers/fanout"
	"github.com/direct-secrets/direct-secrets/common/internal/controllers/generation"
	"github.com/direct-secrets/direct-secrets/common/internal/controllers/missingprovider"
	"github.com/direct-secrets/direct-secrets/common/internal/controllers/pushsecret"
	"github.com/direct-secrets/direct-secrets/common/internal/controllers/restart"
	"github.com/direct-secrets/direct-secrets/common/internal/controllers/storehealth"
	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/proof"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// shared are the dependencies that all controllers of an operator share.
type shared struct {
	*readiness
	live    client.Client
	watches *watch.Watches
	pool    *dispatch.Pool
	walks   *kit.Walks
	board   *presence.Board
	duties  *presence.Duties
	// bus carries the events about stores whose reads might have another result to the controllers.
	bus *refresh.Bus
}

// setup adds all controllers and probes to a manager, for an operator that stops when ctx ends.
func (o *Operator) setup(ctx context.Context, mgr *readiness) error {
	s, err := o.shared(ctx, mgr)
	if err != nil {
		return err
	}
	if err := o.addLoops(s); err != nil {
		return err
	}
	if !o.flags.namespaced() { // A fan-out selects from all namespaces.
		if err := fanout.Setup(mgr, s.live, s.duties, s.walks); err != nil {
			return err
		}
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return errors.Wrap(err, "cannot add the health probe")
	}
	return errors.Wrap(mgr.AddReadyzCheck("caches", mgr.Check), "cannot add the ready probe")
}

// shared creates the shared dependencies, and registers this operator with the others.
func (o *Operator) shared(ctx context.Context, mgr *readiness) (*shared, error) {
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a client")
	}
	live = target.Quiet(live)
	meta, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a metadata client")
	}
	self, err := o.self(mgr.GetScheme())
	if err != nil {
		return nil, err
	}
	buildInfo.WithLabelValues(self.Name, self.Class, self.Version).Set(1)
	board, duties, err := presence.Setup(mgr, live, presence.Options{Namespace: o.presenceNamespace(), Self: self, Timing: o.presence, Catalog: o.flags.Modules})
	if err != nil {
		return nil, errors.Wrap(err, "cannot set up the presence Leases")
	}
	s := &shared{
		readiness: mgr, live: live, watches: watch.New(meta), board: board, duties: duties,
		bus: &refresh.Bus{},
	}
	quotas := &quota.Quotas{Slots: o.flags.Concurrency, PerTenant: o.flags.MetricsPerObject}
	s.walks = kit.NewWalks(quotas, kit.InFlight)
	s.walks.Stopping = func() bool { return ctx.Err() != nil }
	if err := mgr.Add(s.walks); err != nil {
		return nil, errors.Wrap(err, "cannot add the walks")
	}
	rules := o.flags.rules()
	rules.Accepts = credentials.AcceptsAt(mgr.GetConfig())
	s.pool = dispatch.NewPool(live, s.watches, rules, dispatch.Options{
		CallTimeout: o.flags.ProviderTimeout, Quotas: quotas, Busy: dispatch.NewBusy(s.walks.Load, o.flags.Concurrency),
	}, s.credentialChanged)
	return s, nil
}

func (s *shared) credentialChanged(k provider.Kind, key types.NamespacedName, credentialsNamespace string) {
	s.bus.Publish(context.Background(), refresh.Event{Kind: k, Store: key, Namespace: credentialsNamespace})
}

// addLoops adds the controllers that every operator runs.
func (o *Operator) addLoops(s *shared) error {
	refs, err := referrers.New(s.GetCache(), s.GetScheme(), o.kinds, o.group, o.flags.ControllerClass, o.flags.namespaced())
	if err != nil {
		return err
	}
	if err := refs.Index(context.Background(), s.GetFieldIndexer()); err != nil {
		return err
	}
	opts := setup.Options{
		Module:               o.group,
		Kinds:                o.kinds,
		ControllerClass:      o.flags.ControllerClass,
		Namespaced:           o.flags.namespaced(),
		Walks:                s.walks,
		Times:                setup.Times{CallTimeout: o.flags.ProviderTimeout, RemoveDelay: o.removeDelay},
		Permitted:            setup.Permitted{NoRemoteChanges: o.flags.NoRemoteChanges, ConfigMapTargets: o.flags.ConfigMapTargets, WorkloadRestarts: o.flags.WorkloadRestarts},
		DefaultCleanupPolicy: v1alpha1.CleanupPolicy(o.flags.DefaultCleanupPolicy),
		Audit:                o.flags.audit(os.Stderr),
		Board:                s.board,
		Bus:                  s.bus,
		Suspect:              storehealth.NewSuspects(s.bus).Suspect,
		Random:               o.random,
		Now:                  o.now,
	}
	if err := missingprovider.Setup(s, s.live, s.board, s.duties); err != nil {
		return errors.Wrap(err, "cannot set up the controller of objects without a running module")
	}
	sources, err := o.addReceiver(s, opts)
	if err != nil {
		return err
	}
	if err := storehealth.Setup(s, s.live, s.pool, sources); err != nil {
		return errors.Wrap(err, "cannot set up the store controller")
	}
	if err := contribution.Setup(s, s.live, s.pool, refs, opts); err != nil {
		return errors.Wrap(err, "cannot set up the controller of contributions")
	}
	if err := externalsecret.Setup(s, s.live, s.pool, s.watches, refs, opts); err != nil {
		return errors.Wrap(err, "cannot set up the ExternalSecret controller")
	}
	if err := restart.Setup(s, s.live, refs, opts); err != nil {
		return errors.Wrap(err, "cannot set up the controller of restarts")
	}
	if err := eventsource.Setup(s, s.live, s.pool, refs.Resolver, sources); err != nil {
		return errors.Wrap(err, "cannot set up the controller of event sources")
	}
	if err := pushsecret.Setup(s, s.live, s.pool, s.watches, opts); err != nil {
		return errors.Wrap(err, "cannot set up the PushSecret controller")
	}
	keys := proof.NewKeys(s.live, types.NamespacedName{Namespace: cmp.Or(o.namespace, o.ownNamespace()), Name: proof.Name(o.group)}, o.now)
	return errors.Wrap(generation.Setup(s, s.live, s.pool, keys, opts), "cannot set up the controller of generated values")
}
