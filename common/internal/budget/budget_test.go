package budget_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/budget"
)

const piece, most = 64 << 10, 1 << 20

// fill takes pieces of the budget until none fits.
func fill(s *budget.Share) (taken int64) {
	for s.Take(piece, most) {
		taken += piece
	}
	return taken
}

// TestShares lets many tenants take as much as they can. Each gets Assured, only one exceeds Own, and all bytes are
// free again after their release.
func TestShares(t *testing.T) {
	t.Parallel()
	var b budget.Budget
	const tenants = 200
	taken, beyond := map[*budget.Share]int64{}, 0
	for i := range tenants {
		s := b.Share(fmt.Sprint(i))
		n := fill(s)
		taken[s] = n
		switch {
		case s.Room(piece, most):
			t.Error("there is room for more although a piece did not fit")
		case n < budget.Assured:
			t.Errorf("tenant %d has %d bytes", i, n)
		case n > budget.Own:
			beyond++
		}
	}
	if beyond != 1 {
		t.Errorf("%d tenants exceed Own, want 1", beyond)
	}
	if most := int64(budget.Total + most + tenants*budget.Assured); b.Used() > most {
		t.Errorf("all tenants together have %d bytes, want at most %d", b.Used(), most)
	}
	for s, n := range taken {
		s.Add(-n)
		s.EndUse()
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are never released", b.Used())
	}
	if n := fill(b.Share("next")); n != budget.Own+most {
		t.Errorf("the next tenant has %d bytes, want %d", n, budget.Own+most)
	}
}

// TestShareIsOfATenant checks that the stores of one tenant use the same share, and other tenants another one.
func TestShareIsOfATenant(t *testing.T) {
	t.Parallel()
	var b budget.Budget
	one := b.Share("shop")
	fill(one)
	if b.Share("shop").Room(piece, most) {
		t.Error("another store of the tenant has room")
	}
	if n := fill(b.Share("other")); n != budget.Own {
		t.Errorf("another tenant has %d bytes, want %d", n, budget.Own)
	}
	one.EndUse()
	b.Share("new")
	if b.Share("shop").Room(piece, most) {
		t.Error("a tenant has more room after deleting its stores and creating them again")
	}
}

// TestCalls starts the maximum number of calls, and one more.
func TestCalls(t *testing.T) {
	t.Parallel()
	var b budget.Budget
	s := b.Share("shop")
	for range budget.Calls {
		if !s.Start() {
			t.Fatal("a call below the limit is refused")
		}
	}
	if s.Start() {
		t.Error("a call above the limit is accepted")
	}
	s.End(time.Now())
	if !s.Start() || !b.Share("other").Start() {
		t.Error("no call is accepted although one has ended")
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	const full, second = budget.Burst - budget.Call, budget.Rate - budget.Call
	type wait struct{ Periodic, Urgent time.Duration }
	cases := map[string]struct {
		reason string
		ended  []int64
		after  time.Duration
		want   wait
	}{
		"Nothing":   {"a tenant starts without debt", nil, 0, wait{}},
		"Burst":     {"a burst causes no wait", []int64{full}, 0, wait{}},
		"More":      {"calls above the burst wait", []int64{full, second}, 0, wait{Periodic: time.Second}},
		"Urgent":    {"urgent calls have twice the burst", []int64{full, full, second}, 0, wait{Periodic: (budget.Burst/budget.Rate + 1) * time.Second, Urgent: time.Second}},
		"Later":     {"debt decreases over time", []int64{full, second, second}, time.Second, wait{Periodic: time.Second}},
		"MuchLater": {"debt never falls below zero", []int64{full}, time.Hour, wait{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := (&budget.Budget{}).Share("shop")
			now := time.Now()
			for _, n := range tc.ended {
				s.Start()
				s.Spend(now, n)
				s.End(now)
			}
			now = now.Add(tc.after)
			got := wait{s.Wait(now, false), s.Wait(now, true)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// arriving is an answer that takes the budget as it arrives.
type arriving struct {
	share   *budget.Share
	counted atomic.Int64
	aborted atomic.Bool
}

func (a *arriving) Size() int64 { return a.counted.Load() }

func (a *arriving) Abort() { a.aborted.Store(true) }

// more takes a piece, and reports whether that was possible. Otherwise the answer ends.
func (a *arriving) more() bool {
	if !a.aborted.Load() && a.share.Take(piece, most) {
		a.counted.Add(piece)
		return true
	}
	a.end()
	return false
}

func (a *arriving) end() {
	a.share.Close(a)
	a.share.Add(-a.counted.Swap(0))
}

// TestExcess lets two tenants send one large answer after another, slowly, or answers that stop. Another tenant must be able to
// exceed its limits within ten seconds.
func TestExcess(t *testing.T) {
	t.Parallel()
	for name, stops := range map[string]bool{"Slow": false, "Stops": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b budget.Budget
				ctx, cancel := context.WithCancel(t.Context())
				for i := range 2 {
					share := b.Share(fmt.Sprint("hostile-", i))
					go func() {
						for ctx.Err() == nil {
							a := &arriving{share: share}
							share.Open(a)
							for a.more() && ctx.Err() == nil {
								if beyond := a.counted.Load() > budget.Own; beyond && stops {
									for !a.aborted.Load() && ctx.Err() == nil {
										time.Sleep(10 * time.Millisecond)
									}
								} else if beyond {
									time.Sleep(time.Second)
								}
							}
							a.end()
							time.Sleep(10 * time.Millisecond)
						}
					}()
				}
				time.Sleep(time.Minute)
				share, start := b.Share("shop"), time.Now()
				for !share.Take(budget.Own+piece, most) {
					time.Sleep(500 * time.Millisecond)
				}
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("the tenant could exceed its limits after %s", took)
				}
				share.Add(-budget.Own - piece)
				cancel()
				synctest.Wait()
				if time.Sleep(time.Minute); b.Used() != 0 {
					t.Errorf("%d bytes are never released", b.Used())
				}
			})
		})
	}
}
