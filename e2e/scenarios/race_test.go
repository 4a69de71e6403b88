//go:build race

package scenarios

// raceFlags build a module as these tests were built: with the race detector.
var raceFlags = []string{"-race"}
