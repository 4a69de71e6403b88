package target

import (
	"bytes"
	"crypto/sha256"
	"iter"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Fields are the names of keys, labels and annotations that a field manager holds.
type Fields struct {
	Data, Labels, Annotations []string
	// Immutable and Type are true if it holds the fields with these names.
	Immutable, Type bool
}

func newFields(data, labels, annotations iter.Seq[string]) Fields {
	return Fields{Data: slices.Sorted(data), Labels: slices.Sorted(labels), Annotations: slices.Sorted(annotations)}
}

// Hash returns a short hash of the names.
func (f Fields) Hash() string {
	h := sha256.New()
	for _, names := range [][]string{f.Data, f.Labels, f.Annotations} {
		field(h, []byte(strings.Join(names, "\x00")))
	}
	if f.Immutable {
		field(h, []byte("immutable"))
	}
	return sum(h)[:16]
}

// FieldsOf returns the fields of a manager, whether it created, updated or applied them. Ownership is read from
// managedFields only, because the text of a conflict is not an API.
func FieldsOf(entries []metav1.ManagedFieldsEntry, manager string) Fields {
	set := fieldpath.NewSet()
	for _, e := range entries {
		if e.Manager == manager && e.Subresource == "" {
			set = set.Union(decode(e))
		}
	}
	return fieldsIn(set)
}

// exclusiveFields returns the fields that a manager alone holds. An apply without them removes them.
func exclusiveFields(entries []metav1.ManagedFieldsEntry, manager string) Fields {
	own, others := fieldpath.NewSet(), fieldpath.NewSet()
	for _, e := range entries {
		if e.Manager == manager && e.Subresource == "" {
			own = own.Union(decode(e))
		} else {
			others = others.Union(decode(e))
		}
	}
	return fieldsIn(own.Difference(others))
}

// OfExternalSecret reports whether a field manager is that of an ExternalSecret.
func OfExternalSecret(manager string) bool {
	return strings.HasPrefix(manager, v1alpha1.FieldManagerPrefix)
}

func fieldsIn(set *fieldpath.Set) Fields {
	names, single := map[string][]string{}, map[string]bool{}
	set.Iterate(func(p fieldpath.Path) {
		var path []string
		for _, e := range p {
			if e.FieldName == nil {
				return
			}
			path = append(path, *e.FieldName)
		}
		switch {
		case len(path) == 1:
			single[path[0]] = true
		case len(path) == 2 && path[0] == "data":
			names["data"] = append(names["data"], path[1])
		case len(path) == 3 && path[0] == "metadata":
			names[path[1]] = append(names[path[1]], path[2])
		}
	})
	f := newFields(slices.Values(names["data"]), slices.Values(names["labels"]), slices.Values(names["annotations"]))
	f.Immutable, f.Type = single["immutable"], single["type"]
	return f
}

// decode returns the fields of an entry; none if they cannot be decoded. In that case a later write fails.
func decode(e metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := fieldpath.NewSet()
	if e.FieldsV1 == nil {
		return set
	}
	if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
		return fieldpath.NewSet()
	}
	return set
}

// union returns the union of two sets; a may be nil.
func union(a, b *fieldpath.Set) *fieldpath.Set {
	if a == nil {
		return b
	}
	return a.Union(b)
}

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }
