//go:build long

package externalsecret_test

// modelSequences is how many TestModel goes through, unless -rapid.checks says.
const modelSequences = 216
