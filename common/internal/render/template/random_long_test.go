//go:build long

package template

// randomDocuments is the number of documents of TestRandomDocuments.
const randomDocuments = 10_000
