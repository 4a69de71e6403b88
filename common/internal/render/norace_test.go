//go:build !race

package render

// slower is the maximum factor by which the race detector slows down these tests.
const slower = 1
