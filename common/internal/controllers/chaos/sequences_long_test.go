//go:build long

package chaos_test

// The number of sequences per test and seed, unless -rapid.checks sets it.
const (
	pulls  = 2112
	pushes = 400
	random = true
)

// seeds are fixed, so that the results of two commits are comparable.
var seeds = []uint64{20261123, 20261124, 20261125}
