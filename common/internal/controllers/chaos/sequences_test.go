//go:build !long

package chaos_test

// The number of sequences per test and seed, unless -rapid.checks sets it.
const (
	pulls  = 32
	pushes = 16
	random = false
)

// seeds are fixed, so that the results of two commits are comparable.
var seeds = []uint64{20261123}
