//go:build long

package externalsecret_test

import (
	"maps"
	"testing"
)

func init() {
	maps.Copy(onBoth, map[string]func(*testing.T){
		"CreationChanges": TestCreationPolicyChanges, "Guest": TestOwnerWithGuest, "Drift": TestForeignChanges,
		"MergeHandOver": TestMergeHandOver, "MergeQueue": TestMergeQueue, "NotFoundWithGuest": TestNotFoundWithGuest,
		"Cascade": TestCascade, "Cleanup": TestCleanupMoves, "Immutable": TestImmutableMoves,
		"Revert": TestRevertBackoff, "FailureNeverDeletes": TestFailureNeverDeletes,
	})
}
