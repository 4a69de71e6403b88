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

// sharedDuties tells duties apart by the Lease, with its namespace: modules of several releases may share one, and
// those of one release may serve different namespaces.
var sharedDuties = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "directsecrets_shared_duties",
	Help: "1 while this process does what belongs to no provider, such as the fan-out of cluster objects, by the Lease that says who does.",
}, []string{"lease"})

func init() { metrics.Registry.MustRegister(sharedDuties) }

// Duties is what belongs to no provider; one module at a time holds it. The zero Duties is that of an
// operator whose presence is off: it always holds.
type Duties struct {
	lock   resourcelock.Interface
	timing Timing

	mu   sync.Mutex
	held bool
	told []func()
}

// gauge is that of these duties. It is 0 from when somebody has asked for it, so that nobody holding them shows.
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

// OnHeld has f called whenever this process comes to hold the duties. f must not block. Who asks before the
// manager starts misses nothing. It is never called where the duties are held from the start, as without
// presence.
func (d *Duties) OnHeld(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, f)
}

// NeedLeaderElection is true: only the replica that leads its module competes.
func (d *Duties) NeedLeaderElection() bool { return true }

// Start competes for the duties until ctx ends, and then gives them up. A process that loses them goes on with
// all else. Without presence there is nobody to compete with.
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
			return errors.Wrap(err, "cannot compete for the shared duties")
		}
		elector.Run(ctx)
	}
	return nil
}

// won is called by a goroutine of its own, which may be late.
func (d *Duties) won(ctx context.Context) {
	d.mu.Lock()
	if ctx.Err() != nil {
		d.mu.Unlock()
		return
	}
	d.held = true
	d.gauge().Inc() // Tests run several operators in one process.
	told := slices.Clone(d.told)
	d.mu.Unlock()
	for _, f := range told {
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
