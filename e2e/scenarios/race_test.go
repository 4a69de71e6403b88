//go:build race

package scenarios

// raceFlags are the flags to build a module like these tests: with the race detector.
var raceFlags = []string{"-race"}
