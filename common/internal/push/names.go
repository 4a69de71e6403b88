package push

import (
	"regexp"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Names returns the properties of a remote secret that the spec of an object names, "" for the whole secret. ref is the
// store, nil for any. It leaves out keys that depend on the keys of a source Secret (dataTo without remoteKey).
func Names(ps *v1alpha1.PushSecret, ref *v1alpha1.StoreRef, key string) []string {
	var properties []string
	for _, d := range ps.Spec.Data {
		if r := d.Match.RemoteRef; isKey(ps, r.RemoteKey, key) {
			properties = append(properties, r.Property)
		}
	}
	for _, d := range ps.Spec.DataTo {
		if d.RemoteKey != "" && (d.StoreRef == nil || ref == nil || same(*d.StoreRef, *ref)) && isKey(ps, d.RemoteKey, key) {
			properties = append(properties, "")
		}
	}
	return properties
}

// Drops reports whether the spec of an object certainly no longer names a property of a remote secret in a store,
// whatever keys its source Secrets have.
func Drops(ps *v1alpha1.PushSecret, ref v1alpha1.StoreRef, key, property string) bool {
	for _, d := range ps.Spec.DataTo {
		if d.RemoteKey == "" && (d.StoreRef == nil || same(*d.StoreRef, ref)) {
			return false
		}
	}
	return !slices.ContainsFunc(Names(ps, &ref, key), func(named string) bool { return named == "" || named == property })
}

// isKey reports whether a remoteKey of a spec can expand to key.
func isKey(ps *v1alpha1.PushSecret, remoteKey, key string) bool {
	s := Source{Namespace: ps.Namespace, Name: "${name}"}
	switch from := ps.Spec.Selector; {
	case from.GeneratorRef != nil:
		s.Name = ps.Name
	case from.Secret != nil && from.Secret.Name != "":
		s.Name = from.Secret.Name
	}
	is := place(remoteKey, s)
	if s.Name != "${name}" || !strings.Contains(is, s.Name) {
		return is == key
	}
	anyName := strings.ReplaceAll(regexp.QuoteMeta(is), regexp.QuoteMeta(s.Name), ".*")
	found, err := regexp.MatchString("^(?s:"+anyName+")$", key)
	return found || err != nil
}

// overlap reports whether two properties are equal or one contains the other; "" is the whole secret. An escaped dot
// counts like a plain one, because a read also finds a property under the top-level key spelled like its path.
func overlap(a, b string) bool {
	a, b = strings.Join(split(a), "."), strings.Join(split(b), ".")
	return a == "" || b == "" || strings.HasPrefix(a+".", b+".") || strings.HasPrefix(b+".", a+".")
}
