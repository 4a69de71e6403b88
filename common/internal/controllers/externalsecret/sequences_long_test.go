//go:build long

package externalsecret_test

// modelSequences is the number of sequences of TestModel for each seed, unless -rapid.checks sets it.
const (
	modelSequences = 216
	modelRandom    = true
)

// modelSeeds are recorded, so that each change is tested with the same sequences.
var modelSeeds = []uint64{20261121}
