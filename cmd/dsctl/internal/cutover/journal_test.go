package cutover

import (
	"testing"
)

// TestParseEntry forges entries of the journal. The way back must create none of their objects.
func TestParseEntry(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*entry)
		ok     bool
	}{
		"Good":           {"an entry of the command", func(*entry) {}, true},
		"OtherObject":    {"the entry of a PushSecret of the same name", func(e *entry) { e.Object.SetKind("PushSecret") }, false},
		"OtherKind":      {"an object of another Kind", func(e *entry) { e.Object.SetKind("ClusterRoleBinding") }, false},
		"OtherGroup":     {"an object of another group", func(e *entry) { e.Object.SetAPIVersion("rbac.authorization.k8s.io/v1") }, false},
		"OtherNamespace": {"an object of another namespace", func(e *entry) { e.Object.SetNamespace("kube-system") }, false},
		"OtherName":      {"the entry of another object", func(e *entry) { e.Object.SetName("other") }, false},
		"NoObject":       {"nothing", func(e *entry) { e.Object = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := entry{Object: esoObject(map[string]any{})}
			at, err := e.configMap()
			if err != nil {
				t.Fatal(err)
			}
			e.Object = e.Object.DeepCopy()
			tc.change(&e)
			if e.Object == nil {
				at.Data[journalKey] = "{}"
			} else if m, err := e.configMap(); err != nil {
				t.Fatal(err)
			} else {
				at.Data = m.Data
			}
			if _, err := parseEntry(at); (err == nil) != tc.ok {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
