// Package clusterstore holds the tests of cluster Kinds. They need an operator that serves the whole
// cluster, and so a control plane of their own.
package clusterstore
