package presence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// record is a Lease in memory.
type record struct {
	mu      sync.Mutex
	is      *resourcelock.LeaderElectionRecord
	version int
}

// lockOf is the lock of one process on a record.
type lockOf struct {
	*record
	identity string
	// seen is the version that this process knows.
	seen int
}

var errMoved = errors.New("another process has written it")

func (l *lockOf) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.is == nil {
		return nil, nil, kerrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "shared-duties")
	}
	l.seen = l.version
	raw, err := json.Marshal(l.is)
	out := *l.is
	return &out, raw, err
}

func (l *lockOf) Create(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.is != nil {
		return errMoved
	}
	l.put(r)
	return nil
}

func (l *lockOf) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen != l.version {
		return errMoved
	}
	l.put(r)
	return nil
}

func (l *lockOf) put(r resourcelock.LeaderElectionRecord) {
	l.version++
	l.is, l.seen = &r, l.version
}

func (l *lockOf) RecordEvent(string) {}
func (l *lockOf) Identity() string   { return l.identity }
func (l *lockOf) Describe() string   { return l.identity }

func (r *record) holder() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.is == nil {
		return ""
	}
	return r.is.HolderIdentity
}

// shown returns the value of the metric in a scrape.
func shown(t *testing.T, d *Duties) float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(d.gauge())
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

// group is a manager that collects the added runnables.
type group struct {
	manager.Manager

	added []manager.Runnable
}

func (g *group) Add(r manager.Runnable) error {
	g.added = append(g.added, r)
	return nil
}

// TestDutiesWithoutPresence checks that an operator without presence holds the duties.
func TestDutiesWithoutPresence(t *testing.T) {
	mgr := &group{}
	_, d, err := Setup(mgr, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(mgr.added) != 1 || !d.NeedLeaderElection() || !d.Held() {
		t.Fatalf("%d runnables, want the duties, which need leader election and are held", len(mgr.added))
	}
	before := shown(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.added[0].Start(ctx) }()
	controlplane.Eventually(t, func() string {
		if got := shown(t, d); got != before+1 {
			return fmt.Sprintf("the metric is %v while the process leads", got)
		}
		return ""
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := shown(t, d); got != before {
		t.Errorf("the metric is %v after the end", got)
	}
}

func TestDuties(t *testing.T) {
	timing := Timing{Shared: 600 * time.Millisecond, SharedDeadline: 400 * time.Millisecond, SharedRetry: 50 * time.Millisecond}
	lease := &record{}
	type process struct {
		*Duties
		notified chan struct{}
		stop     func()
	}
	start := func(name string) process {
		p := process{Duties: &Duties{lock: &lockOf{record: lease, identity: name}, timing: timing}, notified: make(chan struct{}, 10)}
		p.OnHeld(func() { p.notified <- struct{}{} })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Start(ctx) }()
		p.stop = sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		t.Cleanup(p.stop)
		return p
	}
	want := func(reason string, p process, held bool) {
		t.Helper()
		controlplane.Eventually(t, func() string {
			if p.Held() != held {
				return reason
			}
			if got := shown(t, p.Duties); (got == 1) != held {
				return fmt.Sprintf("%s: the metric is %v", reason, got)
			}
			return ""
		})
	}

	first := start("first")
	<-first.notified
	want("the first one holds the duties", first, true)
	second := start("second")

	first.stop()
	if h := lease.holder(); h == "first" {
		t.Error("a process that stops keeps the Lease")
	}
	want("a process that has stopped holds nothing", first, false)
	<-second.notified
	want("the next one holds the duties", second, true)

	// Another process takes the Lease, and renews it once.
	now := metav1.Now()
	lease.mu.Lock()
	lease.version++
	lease.is = &resourcelock.LeaderElectionRecord{HolderIdentity: "thief", LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now}
	lease.mu.Unlock()
	want("a process that has lost the Lease holds nothing", second, false)
	<-second.notified
	want("it gets them back when the other process has stopped", second, true)
}

// TestSharedTimes computes when a holder that cannot renew stops at the latest: the response to its last renewal was
// late, and it retries once after the retry period.
func TestSharedTimes(t *testing.T) {
	d := Timing{}.withDefaults()
	if end := RequestTimeout(d.SharedDeadline) + d.SharedRetry + d.SharedDeadline; end >= d.Shared {
		t.Errorf("it stops up to %s after the last renewal, and others take over after %s", end, d.Shared)
	}
}
