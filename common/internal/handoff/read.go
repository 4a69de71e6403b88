package handoff

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Serves reports whether a part has the values that an object now wants of a generator: made for this object, and for
// the requested refresh.
func (r Record) Serves(uid types.UID, ref v1alpha1.StoreRef, request string) bool {
	e, ok := r.Entries[ID(ref)]
	return ok && r.UID == uid && (request == "" || e.Request == request)
}

// Answer returns the values of a generator in a part, in the form of an answer to a read; false if there are none.
func Answer(s *corev1.Secret, ref v1alpha1.StoreRef) (provider.Answer, bool) {
	rec, ok := Of(s.Annotations)
	if !ok || s.Type != Type {
		return provider.Answer{}, false
	}
	v, ok := Decode(s.Data, ID(ref))
	if !ok {
		return provider.Answer{}, false
	}
	a := provider.Answer{Value: provider.Value{Version: rec.Entries[ID(ref)].Version}}
	all := v.All()
	for _, k := range slices.Sorted(maps.Keys(all)) {
		a.Found = append(a.Found, provider.Value{Key: k, Data: all[k]})
	}
	return a, true
}
