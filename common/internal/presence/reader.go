package presence

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list;watch,roleName=leases

// newLeases returns a cache of the Leases of all members. It is separate from the manager's cache, for which all
// controllers wait: an operator that cannot read Leases must do all its other work.
func newLeases(mgr manager.Manager, namespace string) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces:    map[string]cache.Config{namespace: {}},
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{Label: "true"}),
		DefaultTransform:     cache.TransformStripManagedFields(),
	})
	return c, errors.Wrap(err, "cannot create the cache of Leases")
}

// NeedLeaderElection is false: a new leader must already know which operators run.
func (b *Board) NeedLeaderElection() bool { return false }

// Start reads Leases until ctx ends, and checks regularly for Leases that have lapsed.
func (b *Board) Start(ctx context.Context) error {
	informer, err := b.leases.GetInformer(ctx, &coordinationv1.Lease{}, cache.BlockUntilSynced(false))
	if err != nil {
		return errors.Wrap(err, "cannot watch Leases")
	}
	see := func(obj any) {
		if l, ok := obj.(*coordinationv1.Lease); ok {
			b.see(l)
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, obj any) { see(obj) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if l, ok := obj.(*coordinationv1.Lease); ok {
				b.recordDeleted(l.Name)
			}
		},
	}); err != nil {
		return errors.Wrap(err, "cannot watch Leases")
	}
	go wait.UntilWithContext(ctx, func(context.Context) { b.checkExpired() }, max(b.timing.Duration/20, 10*time.Millisecond))
	return errors.Wrap(b.leases.Start(ctx), "cannot watch Leases")
}
