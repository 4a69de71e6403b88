//go:build long

package operator_test

const (
	// modelSequences is how many TestModel goes through, unless -rapid.checks says.
	modelSequences = 216
	// generatorSequences is how many each worker of TestGeneratorModel goes through.
	generatorSequences = 3
)
