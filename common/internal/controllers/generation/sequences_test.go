//go:build !long

package generation_test

const (
	// generatorWorkers is the number of sequences that run at the same time; each waits most of the time.
	generatorWorkers = 2
	// generatorSequences is the number of sequences of TestGeneratorModel per seed, unless -rapid.checks sets it.
	generatorSequences = 6
	generatorRandom    = false
)

// generatorSeeds are fixed, so that the results of two commits are comparable.
var generatorSeeds = []uint64{20261121}
