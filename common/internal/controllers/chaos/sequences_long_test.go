//go:build long

package chaos_test

// How many sequences a test goes through for each seed, unless -rapid.checks says.
const (
	pulls  = 2112
	pushes = 400
	random = true
)

// seeds are recorded: what one change passes is what the next is held against.
var seeds = []uint64{20261123, 20261124, 20261125}
