package controlplane

import "time"

// timeout limits how long Eventually waits. It is long, because only a failing test waits for all of it.
const timeout = 90 * time.Second

// TB is the part of testing.TB that Eventually needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// longestPause is the longest time between two calls of what Eventually waits for. Many tests wait at the same time, and each
// call is a request.
const longestPause = 200 * time.Millisecond

// Eventually waits until f returns an empty string. Until then f returns what is missing.
func Eventually(t TB, f func() string) {
	t.Helper()
	deadline := time.After(timeout)
	for pause := 10 * time.Millisecond; ; pause = min(pause*3/2, longestPause) {
		missing := f()
		if missing == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("timeout: %s", missing)
			return
		case <-time.After(pause):
		}
	}
}
