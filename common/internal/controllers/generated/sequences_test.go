//go:build !long

package generated_test

// generatorSequences is how many TestGeneratorModel goes through for each seed, unless -rapid.checks says.
const (
	generatorSequences = 6
	generatorRandom    = false
)

// generatorSeeds are recorded: what one change passes is what the next is held against.
var generatorSeeds = []uint64{20261121}
