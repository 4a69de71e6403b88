//go:build !long

package operator_test

const (
	// modelSequences is how many TestModel goes through, unless -rapid.checks says.
	modelSequences = 48
	// generatorSequences is how many each worker of TestGeneratorModel goes through.
	generatorSequences = 1
)
