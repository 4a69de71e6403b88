package controlplane

import "time"

// timeout limits how long Eventually waits. It is long, because only a failing test waits for all of it.
const timeout = 90 * time.Second

// TB is the part of testing.TB that Eventually needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Eventually waits until f returns an empty string. Until then f returns what is missing.
func Eventually(t TB, f func() string) {
	t.Helper()
	deadline := time.After(timeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := f()
		if missing == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("timeout: %s", missing)
			return
		case <-tick.C:
		}
	}
}
