//go:build long

package externalsecret_test

func init() {
	onBoth["Revert"], onBoth["FailureNeverDeletes"] = TestRevertBackoff, TestFailureNeverDeletes
}
