//go:build !long

package externalsecret_test

// modelSequences is how many TestModel goes through for each seed, unless -rapid.checks says.
const (
	modelSequences = 48
	modelRandom    = false
)

// modelSeeds are recorded: what one change passes is what the next is held against.
var modelSeeds = []uint64{20261121}
