package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// A Ledger remembers the State of the objects of a Kind. It is counted while its manager leads. Each object is in
// the ledger of one operator, so no object is counted twice.
type Ledger struct {
	kind string
	// stores and restarts say what is counted, if it is not objects.
	stores, restarts bool
	now              func() time.Time
	counts           func() bool
	// deletions are those of its Kind; nil without Following.
	deletions *deletions

	mu sync.Mutex
	// Bound: one per object.
	m map[types.NamespacedName]State
}

// An Option sets up a Ledger.
type Option func(*Ledger)

// OfStores makes a Ledger count as one of stores.
func OfStores() Option { return func(l *Ledger) { l.stores = true } }

// OfRestarts makes a Ledger count objects by how they restart workloads. Its States are of the condition WorkloadsRestarted, and
// have Wrong if the restarts fail.
func OfRestarts() Option { return func(l *Ledger) { l.restarts = true } }

// WithClock replaces the clock.
func WithClock(now func() time.Time) Option { return func(l *Ledger) { l.now = now } }

// While makes a Ledger count only while held returns true.
func While(held func() bool) Option { return func(l *Ledger) { l.counts = held } }

// New returns an empty Ledger, which is counted while a manager leads.
func New(mgr manager.Manager, kind string, opts ...Option) (*Ledger, error) {
	l := &Ledger{kind: kind, now: time.Now, counts: func() bool { return true }}
	for _, o := range opts {
		o(l)
	}
	return l, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		every.add(l)
		defer every.remove(l)
		if l.deletions != nil {
			if err := l.deletions.follow(ctx, mgr.GetCache()); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}))
}

// Set stores the State of an object. If the State of a failing store has no start, that is when it was first
// set.
func (l *Ledger) Set(key types.NamespacedName, s State) {
	if l == nil {
		return // Controllers in tests have no Ledger.
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = map[types.NamespacedName]State{}
	}
	if l.stores && s.Wrong.IsZero() && s.fails(time.Time{}) {
		if s.Wrong = l.m[key].Wrong; s.Wrong.IsZero() {
			s.Wrong = l.now()
		}
	}
	l.m[key] = s
}

// Replace stores the States of all objects of a namespace, by name. An object that failed before keeps the start of that.
func (l *Ledger) Replace(namespace string, states map[string]State) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, was := range l.m {
		if key.Namespace != namespace {
			continue
		}
		if s, ok := states[key.Name]; ok && !s.Wrong.IsZero() && !was.Wrong.IsZero() {
			s.Wrong = was.Wrong
			states[key.Name] = s
		}
		delete(l.m, key)
	}
	if l.m == nil {
		l.m = map[types.NamespacedName]State{}
	}
	for name, s := range states {
		l.m[types.NamespacedName{Namespace: namespace, Name: name}] = s
	}
}

// Forget drops an object that was deleted, or that another operator reconciles.
func (l *Ledger) Forget(key types.NamespacedName) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.m, key)
}

// Clear drops all objects.
func (l *Ledger) Clear() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m = nil
}

// ledgers are the counted Ledgers. Each scrape iterates over them: 10,000 objects take a few milliseconds, and no
// object is copied.
type ledgers struct {
	mu sync.Mutex
	// Bound: one per Kind and controller.
	all map[*Ledger]struct{}
}

var every = &ledgers{all: map[*Ledger]struct{}{}}

func (c *ledgers) add(l *Ledger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[l] = struct{}{}
}

func (c *ledgers) remove(l *Ledger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, l)
}

var (
	objects = prometheus.NewDesc("directsecrets_objects",
		"Objects that this process reconciles, by kind, and status and reason of the Ready condition.", []string{"kind", "status", "reason"}, nil)
	stores = prometheus.NewDesc("directsecrets_stores",
		"Stores and generators that this process validates, by kind, and status and reason of the Ready condition.", []string{"kind", "status", "reason"}, nil)
	restarts = prometheus.NewDesc("directsecrets_restarts",
		"Objects of this process with target.restart, by kind, and status and reason of the WorkloadsRestarted condition.", []string{"kind", "status", "reason"}, nil)
	outOfStep = prometheus.NewDesc("directsecrets_out_of_step_seconds",
		"Time that the longest out-of-sync object has been out of sync: it is not Ready, was never synced, or its refresh is overdue.", []string{"kind"}, nil)
	oldestSync = prometheus.NewDesc("directsecrets_oldest_sync_age_seconds",
		"Time since the last successful sync of the object that was synced longest ago, among objects with a refresh interval.", []string{"kind"}, nil)
	deletionPending = prometheus.NewDesc("directsecrets_deletion_pending_seconds",
		"Time since the request of the oldest deletion that is still pending, among all objects that this process watches.", []string{"kind"}, nil)
)

// Describe implements prometheus.Collector.
func (c *ledgers) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{objects, stores, restarts, outOfStep, oldestSync, deletionPending} {
		to <- d
	}
}

type group struct {
	of           *prometheus.Desc
	kind, reason string
	status       metav1.ConditionStatus
}

// totals are the sums of several Ledgers: numbers of objects, and the longest times of each kind.
type totals struct {
	number                     map[group]int
	outOfStep, age, inDeletion map[string]time.Duration
}

// Collect implements prometheus.Collector. Several Ledgers of a Kind count as one: while a module does not run, its
// objects are in the Ledger of the operator that reports the missing module.
func (c *ledgers) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := totals{map[group]int{}, map[string]time.Duration{}, map[string]time.Duration{}, map[string]time.Duration{}}
	for l := range c.all {
		l.sum(&all)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for g, n := range all.number {
		gauge(g.of, float64(n), g.kind, string(g.status), g.reason)
	}
	for of, longest := range map[*prometheus.Desc]map[string]time.Duration{outOfStep: all.outOfStep, oldestSync: all.age, deletionPending: all.inDeletion} {
		for kind, d := range longest {
			gauge(of, d.Seconds(), kind)
		}
	}
}

func (l *Ledger) sum(all *totals) {
	if !l.counts() {
		return
	}
	now := l.now()
	if l.deletions != nil {
		all.inDeletion[l.kind] = max(all.inDeletion[l.kind], l.deletions.longest(now))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stores || l.restarts {
		of := stores
		if l.restarts {
			of = restarts
		}
		for _, s := range l.m {
			all.number[group{of, l.kind, s.Reason, s.Status}]++
		}
		return
	}
	worst, age, aged := time.Duration(0), time.Duration(0), false // Without an object out of sync it is 0.
	for _, s := range l.m {
		all.number[group{objects, l.kind, s.Reason, s.Status}]++
		worst = max(worst, s.outOfStep(now))
		if s.Interval > 0 {
			age, aged = max(age, now.Sub(s.Good)), true
		}
	}
	all.outOfStep[l.kind] = max(all.outOfStep[l.kind], worst)
	if aged {
		all.age[l.kind] = max(all.age[l.kind], age)
	}
}
