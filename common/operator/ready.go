package operator

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// A readiness knows whether every controller has filled its caches. Until then a replica is not ready, so that a
// rollout does not replace a working replica by one that cannot work: a missing permission shows only there.
// Leadership does not count; otherwise the second replica would never be ready.
type readiness struct {
	manager.Manager

	// log gets a line for each event.
	log  *slog.Logger
	cold atomic.Int64
}

// GetEventRecorder returns a recorder whose events are logged, too.
func (r *readiness) GetEventRecorder(name string) recorder.EventRecorder {
	return logged{r.Manager.GetEventRecorder(name), r.GetScheme(), r.log}
}

// A warm runnable is a controller that fills its caches before this replica leads.
type warm interface {
	manager.Runnable
	manager.LeaderElectionRunnable
	Warmup(ctx context.Context) error
}

// Add adds a runnable to the manager, and waits for it if it is a controller.
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
		return errors.Errorf("%d controllers are still filling their caches", n)
	}
	return nil
}

type warming struct {
	warm

	done func()
}

// Warmup returns when the caches of the controller are filled.
func (w *warming) Warmup(ctx context.Context) error {
	if err := w.warm.Warmup(ctx); err != nil {
		return err
	}
	w.done()
	return nil
}
