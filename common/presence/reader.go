package presence

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// reader keeps a Board by a watch of the Leases. It starts the watch by itself, so that an operator which may
// not read Leases does all else that it is there for.
type reader struct {
	board *Board
	cache cache.Cache
}

// NeedLeaderElection is false: who comes to lead then knows already who runs.
func (r *reader) NeedLeaderElection() bool { return false }

// Start reads until ctx ends.
func (r *reader) Start(ctx context.Context) error {
	informer, err := r.cache.GetInformer(ctx, &coordinationv1.Lease{}, cache.BlockUntilSynced(false))
	if err != nil {
		return errors.Wrap(err, "cannot watch Leases")
	}
	see := func(obj any) {
		if l, ok := obj.(*coordinationv1.Lease); ok {
			r.board.see(l)
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
				r.board.gone(l.Name)
			}
		},
	}); err != nil {
		return errors.Wrap(err, "cannot watch Leases")
	}
	tick := time.NewTicker(max(r.board.timing.Duration/20, 10*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			r.board.look()
		}
	}
}
