package push

import (
	"regexp"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Names returns the properties of a remote secret that an object may push to by its spec, "" for all of it. ref is the
// store, nil for any. What only the keys of a Secret tell is not among them.
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

// Drops reports whether the spec of an object names a property of a remote secret in a store no more, whatever keys its
// Secrets have.
func Drops(ps *v1alpha1.PushSecret, ref v1alpha1.StoreRef, key, property string) bool {
	for _, d := range ps.Spec.DataTo {
		if d.RemoteKey == "" && (d.StoreRef == nil || same(*d.StoreRef, ref)) {
			return false
		}
	}
	return !slices.ContainsFunc(Names(ps, &ref, key), func(named string) bool { return named == "" || named == property })
}

// isKey reports whether a remoteKey of a spec may be a key.
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

// overlap reports whether one of two properties is, or is inside of, the other; "" is all of a secret. A dot in a name
// counts as one between names, since a property is also found under the key that is spelled like it.
func overlap(a, b string) bool {
	a, b = strings.Join(split(a), "."), strings.Join(split(b), ".")
	return a == "" || b == "" || strings.HasPrefix(a+".", b+".") || strings.HasPrefix(b+".", a+".")
}
