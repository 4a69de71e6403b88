package operator

import (
	"context"
	"encoding/json"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A lease is a Lease on an API server in memory.
type lease struct {
	mu  sync.Mutex
	raw []byte
}

// A connection is one replica's access to a lease. At cut it is interrupted. If slow is set, the answer to the last
// write before that takes as long as a request can.
type connection struct {
	resourcelock.Interface

	*lease
	*leases
	name string
	slow bool
	cut  time.Time
	// last is the record of the last renewal, at the time renewed.
	last    []byte
	renewed time.Time
}

func (c *connection) Identity() string   { return c.name }
func (c *connection) Describe() string   { return c.name }
func (c *connection) RecordEvent(string) {}

// hang is a request without an answer. It ends like a request of NewLock's client.
func (c *connection) hang(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.requestTimeout())
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

func (c *connection) isCut() bool { return !c.cut.IsZero() && !time.Now().Before(c.cut) }

func (c *connection) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if c.isCut() {
		return nil, nil, c.hang(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.raw == nil {
		return nil, nil, kerrors.NewNotFound(schema.GroupResource{}, "lease")
	}
	r := &resourcelock.LeaderElectionRecord{}
	return r, c.raw, json.Unmarshal(c.raw, r)
}

func (c *connection) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return c.Update(ctx, r)
}

func (c *connection) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if c.isCut() {
		return c.hang(ctx)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return errors.Wrap(err, "cannot encode the record")
	}
	c.mu.Lock()
	c.raw, c.last, c.renewed = raw, raw, time.Now()
	c.mu.Unlock()
	if c.slow && !c.cut.IsZero() && time.Now().Add(c.RetryPeriod).After(c.cut) {
		time.Sleep(c.requestTimeout() - time.Millisecond)
	}
	return nil
}

// elector returns what competes for the lease of a connection.
func (c *connection) elector(t *testing.T, calls leaderelection.LeaderCallbacks) *leaderelection.LeaderElector {
	t.Helper()
	le, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: early{c}, LeaseDuration: c.LeaseDuration, RenewDeadline: c.RenewDeadline, RetryPeriod: c.RetryPeriod, Callbacks: calls,
	})
	if err != nil {
		t.Fatal(err)
	}
	return le
}

// times are settings that the flags accept.
var times = map[string]leases{
	"Default":   {LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod},
	"Slow":      {LeaseDuration: 60 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 3 * time.Second},
	"Fast":      {LeaseDuration: 6 * time.Second, RenewDeadline: time.Second, RetryPeriod: 250 * time.Millisecond},
	"Patient":   {LeaseDuration: 60 * time.Second, RenewDeadline: 55 * time.Second, RetryPeriod: 200 * time.Millisecond},
	"Rare":      {LeaseDuration: 60 * time.Second, RenewDeadline: 12 * time.Second, RetryPeriod: 6 * time.Second},
	"Least":     {LeaseDuration: 44 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 3 * time.Second},
	"Fractions": {LeaseDuration: 15900 * time.Millisecond, RenewDeadline: 5900 * time.Millisecond, RetryPeriod: time.Second},
}

// TestLeaseTimesValid checks that an operator accepts the times of these tests.
func TestLeaseTimesValid(t *testing.T) {
	for name, l := range times {
		if err := l.checkTiming(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLeaseTimes interrupts the connection of a leader, and compares when it stops with when a standby replica with
// other times, as in a rollout that changes them, can lead at the earliest, and does lead.
func TestLeaseTimes(t *testing.T) {
	for of, holder := range times {
		for by, other := range times {
			for _, slow := range []bool{false, true} {
				name := of + "Then" + by
				if slow {
					name += "SlowAnswer"
				}
				t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { takeOver(t, &holder, &other, slow) }) })
			}
		}
	}
}

// takeOver has a standby replica lead after the connection of a leader is interrupted.
func takeOver(t *testing.T, holder, other *leases, slow bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	shared := &lease{}
	var ended, becameLeader time.Time
	leader := &connection{lease: shared, leases: holder, name: holder.identity("leader", netip.AddrPort{}), slow: slow, cut: time.Now().Add(200*time.Second + 50*time.Millisecond)}
	go leader.elector(t, leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() { ended = time.Now() }}).Run(ctx)
	synctest.Wait()
	standby := &connection{lease: shared, leases: other, name: other.identity("standby", netip.AddrPort{})}
	standby.elector(t, leaderelection.LeaderCallbacks{
		OnStartedLeading: func(context.Context) { becameLeader = time.Now(); cancel() }, OnStoppedLeading: func() {},
	}).Run(ctx)
	synctest.Wait()
	last := &connection{lease: &lease{raw: leader.last}, leases: other, name: standby.name}
	r, _, err := early{last}.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A replica that sees each change at once can lead at this moment.
	earliest := leader.renewed.Add(time.Duration(r.LeaseDurationSeconds) * time.Second)
	if got := earliest.Sub(ended); ended.IsZero() || got < 400*time.Millisecond {
		t.Errorf("the leader stops %s after its last renewal, and a standby replica can lead after %s; it must stop first",
			ended.Sub(leader.renewed), earliest.Sub(leader.renewed))
	}
	if becameLeader.Before(ended) {
		t.Errorf("the standby replica leads %s before the leader stops", ended.Sub(becameLeader))
	}
	if got, most := becameLeader.Sub(leader.renewed), holder.LeaseDuration+lateness(other.RetryPeriod); got > most {
		t.Errorf("the standby replica leads %s after the last renewal, want at most %s", got, most)
	}
}
