package operator

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/direct-secrets/direct-secrets/common/internal/presence"
)

// A lease is a Lease on an API server in memory.
type lease struct {
	mu      sync.Mutex
	raw     []byte
	changed time.Time
}

// A connection is one replica's access to a lease. At cut it is interrupted. If slow is set, the answer to the last
// write before that takes as long as a request can.
type connection struct {
	resourcelock.Interface

	*lease
	name string
	slow bool
	cut  time.Time
}

func (c *connection) Identity() string   { return c.name }
func (c *connection) Describe() string   { return c.name }
func (c *connection) RecordEvent(string) {}

// hang is a request without an answer. It ends like a request of NewLock's client.
func hang(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, presence.RequestTimeout(renewDeadline))
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

func (c *connection) isCut() bool { return !c.cut.IsZero() && !time.Now().Before(c.cut) }

func (c *connection) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if c.isCut() {
		return nil, nil, hang(ctx)
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
		return hang(ctx)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return errors.Wrap(err, "cannot encode the record")
	}
	c.mu.Lock()
	c.raw, c.changed = raw, time.Now()
	c.mu.Unlock()
	if c.slow && !c.cut.IsZero() && time.Now().Add(retryPeriod).After(c.cut) {
		time.Sleep(presence.RequestTimeout(renewDeadline) - time.Millisecond)
	}
	return nil
}

// TestLeaseTimes interrupts a leader's connection, and compares when it stops with when another replica can lead.
func TestLeaseTimes(t *testing.T) {
	cases := map[string]struct {
		reason string
		slow   bool
		// least is the minimum time between the leader's stop and the start of another one.
		least time.Duration
	}{
		"Cut":  {"A leader that cannot renew stops three seconds before another replica can lead.", false, 3 * time.Second},
		"Slow": {"With a slow answer to its last renewal, a leader still stops before another replica can lead.", true, 400 * time.Millisecond},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := &lease{}
				var ended time.Time
				elect := func(c *connection, stopped func()) {
					le, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
						Lock: early{c, lateness(retryPeriod)}, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
						Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: stopped},
					})
					if err != nil {
						t.Fatal(err)
					}
					le.Run(t.Context())
				}
				leader := &connection{lease: shared, name: "leader", slow: tc.slow, cut: time.Now().Add(20*time.Second + 500*time.Millisecond)}
				elect(leader, func() { ended = time.Now() })
				// A replica that sees each change at once can lead when the last one's Lease has expired.
				other := shared.changed.Add(leaseDuration - lateness(retryPeriod))
				if got := other.Sub(ended); got < tc.least || got > tc.least+time.Second {
					t.Errorf("%s\nit ends %s before, want %s; last renewal %s before its end", tc.reason, got, tc.least, ended.Sub(shared.changed))
				}
			})
		})
	}
}
