package target

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// mostNames is how many names a list of a Difference has.
const mostNames = 100

// Difference compares the desired content with a Secret, nil if there is none. It returns names only. Labels and
// annotations that operators write for themselves are left out. So are those that only the Secret has, because this
// object does not own them.
func (d Desired) Difference(live *corev1.Secret) *v1alpha1.Difference {
	diff := &v1alpha1.Difference{Exists: live != nil}
	if live == nil {
		live = &corev1.Secret{}
	} else if d.Type != "" && live.Type != d.Type {
		diff.Type = string(d.Type)
	}
	diff.Data = shortened(compare(d.Data, live.Data, bytes.Equal))
	equal := func(a, b string) bool { return a == b }
	for _, m := range []struct {
		to            *v1alpha1.NameDifference
		desired, live map[string]string
	}{{&diff.Labels, d.Labels, live.Labels}, {&diff.Annotations, d.Annotations, live.Annotations}} {
		*m.to = shortened(compare(wanted(m.desired), m.live, equal))
		m.to.Removed = nil
	}
	return diff
}

// Changes returns the names of everything that Apply would change in a Secret, except for the labels and annotations that
// operators write for themselves. The error is the one with which Apply would refuse to write.
func (d Desired) Changes(live *corev1.Secret) (v1alpha1.Difference, error) {
	held := exclusiveFields(live.ManagedFields, Manager(d.Mark.Name))
	equal := func(a, b string) bool { return a == b }
	return v1alpha1.Difference{
		Exists:      true,
		Data:        compare(applied(live.Data, held.Data, d.Data), live.Data, bytes.Equal),
		Labels:      compare(wanted(applied(live.Labels, held.Labels, d.Labels)), wanted(live.Labels), equal),
		Annotations: compare(wanted(applied(live.Annotations, held.Annotations, d.Annotations)), wanted(live.Annotations), equal),
	}, fits(live, d)
}

// wanted returns the labels or annotations that the spec asks for.
func wanted(all map[string]string) map[string]string {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(k, _ string) bool { return isOwn(k) })
	return all
}

// isOwn reports whether a label or annotation of a Secret is one that the operator writes for itself.
func isOwn(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return prefix == v1alpha1.Group || strings.HasSuffix(prefix, "."+v1alpha1.Group)
}

// compare returns the names of all entries that desired adds to live, changes or lacks.
func compare[V any](desired, live map[string]V, equal func(a, b V) bool) v1alpha1.NameDifference {
	var n v1alpha1.NameDifference
	for _, k := range slices.Sorted(maps.Keys(desired)) {
		switch v, there := live[k]; {
		case !there:
			n.Added = append(n.Added, k)
		case !equal(v, desired[k]):
			n.Changed = append(n.Changed, k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(live)) {
		if _, there := desired[k]; !there {
			n.Removed = append(n.Removed, k)
		}
	}
	return n
}

// shortened limits the names in each list.
func shortened(n v1alpha1.NameDifference) v1alpha1.NameDifference {
	for _, list := range []*[]string{&n.Added, &n.Changed, &n.Removed} {
		if len(*list) > mostNames {
			*list, n.Truncated = (*list)[:mostNames], true
		}
	}
	return n
}
