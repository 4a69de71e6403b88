package budget_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/budget"
)

// TestShares has several stores take as much as they can. None takes more than its share, and all together no more than there
// is; what was taken is free again once it is released.
func TestShares(t *testing.T) {
	t.Parallel()
	var b budget.Budget
	const stores, piece = 200, 1 << 20
	taken := map[*budget.Share]int64{}
	for range stores {
		s := b.Share()
		for s.Take(piece) {
			taken[s] += piece
		}
		if s.Room(1) {
			t.Error("there is room for more although a piece did not fit")
		}
		if taken[s] > budget.PerStore {
			t.Errorf("one store has %d bytes", taken[s])
		}
	}
	if diff := cmp.Diff(int64(budget.Total), b.Used()); diff != "" {
		t.Errorf("all stores together: -want, +got:\n%s", diff)
	}
	for s, n := range taken {
		s.Add(-n)
		if !s.Room(1) {
			t.Error("there is no room after a release")
		}
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are never released", b.Used())
	}
}
