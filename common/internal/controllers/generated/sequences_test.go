//go:build !long

package generated_test

// generatorSequences is how many each worker of TestGeneratorModel goes through.
const generatorSequences = 1
