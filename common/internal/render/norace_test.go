//go:build !race

package render

// slower is by how much the race detector slows down what is measured here, at most.
const slower = 1
