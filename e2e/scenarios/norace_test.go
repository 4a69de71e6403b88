//go:build !race

package scenarios

// raceFlags build a module as these tests were built: without the race detector.
var raceFlags []string
