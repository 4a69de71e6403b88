package refresh

import "testing"

func TestMatching(t *testing.T) {
	var m Matching
	ran := map[string]int{}
	compare := func(namespace string) bool { return m.Within(namespace, func() { ran[namespace]++ }) }
	if !compare("shop") || ran["shop"] != 1 {
		t.Error("Within() did not run a comparison of a namespace that has time left")
	}
	m.Spend("shop", maxMatching)
	if compare("shop") || ran["shop"] != 1 {
		t.Error("Within() ran a comparison of a namespace whose time is spent")
	}
	if !compare("other") || ran["other"] != 1 {
		t.Error("Within() did not run a comparison of another namespace")
	}
}
