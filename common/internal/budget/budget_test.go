package budget_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/budget"
)

const piece, most = 64 << 10, 1 << 20

// fill takes pieces until none fits.
func fill(s *budget.Share) (taken int64) {
	for s.Take(piece, most) {
		taken += piece
	}
	return taken
}

// TestShares has many tenants take as much as they can. Each has what it is assured of, only one has more than its own, and
// what was taken is free again once it is released.
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
		t.Errorf("%d tenants have more than their own, want 1", beyond)
	}
	if most := int64(budget.Total + most + tenants*budget.Assured); b.Used() > most {
		t.Errorf("all tenants together have %d bytes, want at most %d", b.Used(), most)
	}
	for s, n := range taken {
		s.Add(-n)
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are never released", b.Used())
	}
	if n := fill(b.Share("next")); n != budget.Own+most {
		t.Errorf("the next tenant has %d bytes, want %d", n, budget.Own+most)
	}
}

// TestShareIsOfATenant has the stores of one tenant take from one share, and others from theirs.
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
	one.Leave()
	b.Share("new")
	if b.Share("shop").Room(piece, most) {
		t.Error("a tenant has room since it makes its stores anew")
	}
}

// TestCalls starts as many calls as there may be, and one more.
func TestCalls(t *testing.T) {
	t.Parallel()
	var b budget.Budget
	s := b.Share("shop")
	for range budget.Calls {
		if !s.Start() {
			t.Fatal("a call may not start")
		}
	}
	if s.Start() {
		t.Error("there are more calls than there may be")
	}
	s.End(time.Now())
	if !s.Start() || !b.Share("other").Start() {
		t.Error("a call has ended, and none may start")
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
		"Nothing":   {"a tenant starts with all that it may", nil, 0, wait{}},
		"Burst":     {"a burst is answered at once", []int64{full}, 0, wait{}},
		"More":      {"what exceeds it is made up for", []int64{full, second}, 0, wait{Periodic: time.Second}},
		"Urgent":    {"urgent reads have as much again", []int64{full, full, second}, 0, wait{Periodic: (budget.Burst/budget.Rate + 1) * time.Second, Urgent: time.Second}},
		"Later":     {"a second makes up for some", []int64{full, second, second}, time.Second, wait{Periodic: time.Second}},
		"MuchLater": {"and never for more than was spent", []int64{full}, time.Hour, wait{}},
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
