//go:build long

package externalsecret_test

import (
	"maps"
	"testing"
)

func init() {
	maps.Copy(onBoth, map[string]func(*testing.T){
		"CreationChanges": TestCreationPolicyChanges, "Drift": TestForeignChanges,
		"MergeHandOver": TestMergeHandOver, "MergeQueue": TestMergeQueue, "NotFoundWithGuest": TestNotFoundWithGuest,
		"Cleanup":             TestCleanupMoves,
		"FailureNeverDeletes": TestFailureNeverDeletes,
	})
}
