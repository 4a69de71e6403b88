//go:build !long

package chaos_test

// How many sequences a test goes through for each seed, unless -rapid.checks says.
const (
	pulls  = 32
	pushes = 16
	random = false
)

// seeds are recorded: what one change passes is what the next is held against.
var seeds = []uint64{20261123}
