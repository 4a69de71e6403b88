//go:build long

package scenarios

// everyNamespaces is in how many namespaces TestEveryKind has every Kind.
const everyNamespaces = 50
