package push

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A Change is what a push would do with a property of a remote secret, "" for the whole secret. It holds no value.
type Change struct {
	Property string
	Action   v1alpha1.PushAction
}

// Failing returns the Changes for values that cannot be written.
func Failing(want []Value) (out []Change) {
	for _, v := range want {
		out = append(out, Change{v.Property, v1alpha1.PushFail})
	}
	return out
}

// changes returns what a decision about s does, sorted by property. It compares the value to write with the observed
// one, so it lists exactly what the write changes.
func (d Decision) changes(s State) []Change {
	var out []Change
	add := func(a v1alpha1.PushAction, properties ...string) {
		for _, p := range properties {
			out = append(out, Change{p, a})
		}
	}
	switch d.Action {
	case Nothing:
	case Create:
		for _, v := range s.Want {
			if !slices.Contains(d.Failed, v.Property) {
				add(v1alpha1.PushCreate, v.Property)
			}
		}
	case Update:
		out = d.updates(s)
		if len(s.Seen.Drift) > 0 {
			add(v1alpha1.PushUpdateMetadata, "")
		}
	case Delete:
		add(v1alpha1.PushDelete, "")
	}
	if d.claims(s) {
		add(v1alpha1.PushOwn, "")
	}
	add(v1alpha1.PushFail, d.Failed...)
	add(v1alpha1.PushKeep, d.Exists...)
	for _, e := range slices.Concat(d.Left, d.Used) {
		add(v1alpha1.PushKeep, e.Property)
	}
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(a.Property, b.Property) })
	return slices.Compact(out)
}

// updates returns the Changes of the value of an existing secret.
func (d Decision) updates(s State) (out []Change) {
	if d.Data == nil {
		return nil
	}
	before, err := s.document()
	if s.whole() || err != nil {
		return []Change{{"", v1alpha1.PushUpdate}}
	}
	properties := map[string]bool{}
	for _, v := range s.Want {
		properties[v.Property] = true
	}
	for _, e := range s.obsolete() {
		properties[e.Property] = true
	}
	delete(properties, "")
	for p := range properties {
		was, had := before.has(p)
		is, has := document(d.Data).has(p)
		switch {
		case !had && has:
			out = append(out, Change{p, v1alpha1.PushCreate})
		case had && !has:
			out = append(out, Change{p, v1alpha1.PushDelete})
		case had && !bytes.Equal(was, is):
			out = append(out, Change{p, v1alpha1.PushUpdate})
		}
	}
	return out
}
