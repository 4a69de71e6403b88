package controlplane

import "time"

// patience is how long Eventually waits. A test waits for it in full only when it fails, so it is
// generous.
const patience = 90 * time.Second

// TB is what Eventually needs of a testing.TB.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Eventually waits until f returns an empty string; until then it says what is still missing.
func Eventually(t TB, f func() string) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := f()
		if missing == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("still not so: %s", missing)
			return
		case <-tick.C:
		}
	}
}
