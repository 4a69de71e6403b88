//go:build !long

package scenarios

// everyNamespaces is the number of namespaces in which TestEveryKind has every Kind.
const everyNamespaces = 3
