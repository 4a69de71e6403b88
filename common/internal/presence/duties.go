package presence

import (
	"context"
	"slices"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// sharedDuties has the Lease with its namespace as label. Modules of several releases may share duties, and modules of
// one release may serve different namespaces.
var sharedDuties = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "directsecrets_shared_duties",
	Help: "1 while this process holds the Lease of the shared duties, such as the fan-out of cluster objects; otherwise 0.",
}, []string{"lease"})

func init() { metrics.Registry.MustRegister(sharedDuties) }

// Duties is the work that is specific to no provider. One module at a time holds it. The zero value is for an operator
// with presence off: it always holds the duties.
type Duties struct {
	lock   resourcelock.Interface
	timing Timing

	mu          sync.Mutex
	held        bool
	subscribers []func()
}

// gauge returns the metric of these duties. The first call sets it to 0, so that the metric shows if no operator holds
// the duties.
func (d *Duties) gauge() prometheus.Gauge {
	if d.lock == nil {
		return sharedDuties.WithLabelValues("")
	}
	return sharedDuties.WithLabelValues(d.lock.Describe())
}

// Held reports whether this process holds the duties.
func (d *Duties) Held() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held || d.lock == nil
}

// OnHeld registers f to be called when this process gets the duties. f must not block. Functions registered before the
// manager starts miss no call. It is never called if the duties are held from the start, as without presence.
func (d *Duties) OnHeld(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.subscribers = append(d.subscribers, f)
}

// NeedLeaderElection is true: only the leader of a module competes for the duties.
func (d *Duties) NeedLeaderElection() bool { return true }

// Start competes for the duties until ctx ends, and then releases them. A process that loses them continues with all
// other work. Without presence it only waits.
func (d *Duties) Start(ctx context.Context) error {
	if d.lock == nil {
		d.gauge().Inc()
		<-ctx.Done()
		d.gauge().Dec()
		return nil
	}
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Name: "shared-duties", Lock: d.lock, ReleaseOnCancel: true,
			LeaseDuration: d.timing.Shared, RenewDeadline: d.timing.SharedDeadline, RetryPeriod: d.timing.SharedRetry,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: d.won, OnStoppedLeading: d.lost},
		})
		if err != nil {
			return errors.Wrap(err, "cannot join the election for the shared duties")
		}
		elector.Run(ctx)
	}
	return nil
}

// won runs in its own goroutine, so it may be called late.
func (d *Duties) won(ctx context.Context) {
	d.mu.Lock()
	if ctx.Err() != nil {
		d.mu.Unlock()
		return
	}
	d.held = true
	d.gauge().Inc() // Tests run several operators in one process.
	subscribers := slices.Clone(d.subscribers)
	d.mu.Unlock()
	for _, f := range subscribers {
		f()
	}
}

// lost is called after the context of won has ended.
func (d *Duties) lost() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held {
		d.held = false
		d.gauge().Dec()
	}
}
