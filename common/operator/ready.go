package operator

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// A readiness knows whether every loop has seen all that it watches. Until then a replica is not ready, so a rollout
// does not take away one that works for one that cannot: a right that is missing shows there and nowhere else. That a
// replica leads is no part of it, or the second would never be ready.
type readiness struct {
	manager.Manager

	cold atomic.Int64
}

// A warm runnable is a loop that fills its caches before this replica leads.
type warm interface {
	manager.Runnable
	manager.LeaderElectionRunnable
	Warmup(ctx context.Context) error
}

// Add adds a runnable to the manager, and waits for it if it is a loop.
func (r *readiness) Add(runnable manager.Runnable) error {
	if loop, ok := runnable.(warm); ok {
		r.cold.Add(1)
		runnable = &warming{warm: loop, done: func() { r.cold.Add(-1) }}
	}
	return r.Manager.Add(runnable)
}

// Check is the ready probe.
func (r *readiness) Check(*http.Request) error {
	if n := r.cold.Load(); n > 0 {
		return errors.Errorf("%d loops have not seen yet all that they watch", n)
	}
	return nil
}

type warming struct {
	warm

	done func()
}

// Warmup returns when the caches of the loop are filled.
func (w *warming) Warmup(ctx context.Context) error {
	if err := w.warm.Warmup(ctx); err != nil {
		return err
	}
	w.done()
	return nil
}
