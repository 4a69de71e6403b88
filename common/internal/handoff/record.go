// Package handoff stores what modules contribute to each other's objects. A module contributes the values that its
// generators made for an object, or the values that it read for an object that another module reconciles. A
// contribution is stored in a Secret, the part, and recorded in the status of the object, with one field manager per
// contributor.
//
// Generated values are stable because they are stored in a part. It is owned by the object and by the Secret that is
// written from it, and is deleted with the last of them.
package handoff

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Type is the type of a Secret that is a part.
const Type corev1.SecretType = v1alpha1.Group + "/part"

// previousSuffix is appended to the key of a previous value.
const previousSuffix = "-previous"

// maxName is the maximum length of the name of a Secret.
const maxName = validation.DNS1123SubdomainMaxLength

// partName returns the name of the part that a contributor stores for an object.
func partName(kind, name, contributor, class string) string {
	suffix := "-part-" + Hash(kind, name, contributor, class)
	return strings.TrimRight(name[:min(len(name), maxName-len(suffix))], "-.") + suffix
}

// Finalizer returns the finalizer that a module sets on a part while there is something to revoke.
func Finalizer(module string) string { return module + "/part" }

// ID identifies the values of one generator in a part.
func ID(ref v1alpha1.StoreRef) string { return Hash(ref.Kind, ref.Name) }

// Hash returns a short hash of texts. Every version must build the same, because names and versions depend on it.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p) // Writing to a hash never fails.
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// A Record describes the values of a part; it holds no secret. It is stored in an annotation.
type Record struct {
	// Kind, Name and UID identify the object that the values are for.
	Kind string    `json:"kind"`
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// Class is the class of the generators.
	Class string `json:"class,omitempty"`
	// Entries are the entries by the ID of their generator.
	Entries map[string]Entry `json:"entries,omitempty"`
	// Retired are credentials that were replaced and are waiting for revocation.
	Retired []Retired `json:"retired,omitempty"`
	// Reads describes what was read for an object that another operator claims; nil in a part of generated values.
	Reads *Reads `json:"reads,omitempty"`
}

// An Entry describes the values of one generator.
type Entry struct {
	Generator Generator `json:"generator"`
	// Version changes with the values.
	Version string `json:"version"`
	// Spec is the hash of the generator's spec at the time the values were made.
	Spec string `json:"spec"`
	// Request is the refresh request that was served last.
	Request string    `json:"request,omitempty"`
	Made    time.Time `json:"made"`
	// Renewed is when Expires was last set, if that was after the values were made.
	Renewed time.Time `json:"renewed,omitzero"`
	// Expires is when the values become invalid; zero if they never do.
	Expires time.Time `json:"expires,omitzero"`
	// Replace is when the values are replaced or renewed; zero for a time that depends on Expires.
	Replace time.Time `json:"replace,omitzero"`
	// Final is true after a renewal turned out to be impossible.
	Final bool `json:"final,omitempty"`
	// State is opaque data of the generator.
	State string `json:"state,omitempty"`
	// Clean is true if the values must be revoked.
	Clean bool `json:"clean,omitempty"`
	// Proof shows that an operator of this module made State for this part; see package proof. Without it, State is
	// neither used for a renewal nor for a revocation.
	Proof string `json:"proof,omitempty"`
	// Previous is the Version of the previous values that are kept together with these.
	Previous string `json:"previous,omitempty"`
}

// A Generator identifies a generator by Kind and name.
type Generator struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Retired is a credential that was replaced and is waiting for revocation.
type Retired struct {
	Generator Generator `json:"generator"`
	Version   string    `json:"version"`
	Expires   time.Time `json:"expires,omitzero"`
	State     string    `json:"state"`
	// Proof is that of its Entry.
	Proof string `json:"proof,omitempty"`
	// Release is when it is revoked; zero as long as a consumer may hold it.
	Release time.Time `json:"release,omitzero"`
	// UID is the uid of the former object with the same name that it was made for, if any.
	UID types.UID `json:"uid,omitempty"`
}

// Values are the values of one generator. They are stored in the data of the part, under the ID.
type Values struct {
	Current  map[string][]byte `json:"current"`
	Previous map[string][]byte `json:"previous,omitempty"`
}

// All returns the values for an object: the present values, and the previous ones under keys with previousSuffix.
func (v Values) All() map[string][]byte {
	all := maps.Clone(v.Current)
	for k, b := range v.Previous {
		if _, taken := all[k+previousSuffix]; !taken {
			all[k+previousSuffix] = b
		}
	}
	return all
}

// CheckValues returns an error if values cannot be stored. Their keys must be valid in a Secret, also with
// previousSuffix.
func CheckValues(values map[string][]byte) error {
	size := 0
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if len(validation.IsConfigMapKey(k+previousSuffix)) > 0 {
			return provider.NewError(provider.Invalid, "the generator returned the key %.64q, which is not valid in a Secret", k)
		}
		size += len(k) + len(values[k])
	}
	// The part holds the values at most twice, in an encoding that needs a third more.
	if most := corev1.MaxSecretSize / 4; size > most {
		return provider.NewError(provider.Invalid, "the generator returned %d bytes, at most %d are allowed", size, most)
	}
	return nil
}

// Of decodes the Record in the annotations of a Secret; false if it is missing or invalid.
func Of(annotations map[string]string) (Record, bool) {
	raw, ok := annotations[v1alpha1.PartAnnotation]
	if !ok {
		return Record{}, false
	}
	var r Record
	if err := json.Unmarshal([]byte(raw), &r); err != nil || r.Kind == "" || r.Name == "" {
		return Record{}, false
	}
	return r, true
}

// recordKey is the data key of a copy of the Record. Caches show the annotation; the copy survives an edit of the
// annotation.
const recordKey = "record"

// RecordOf returns the Record of a part that was read with its data.
func RecordOf(s *corev1.Secret) Record {
	var r Record
	if err := json.Unmarshal(s.Data[recordKey], &r); err == nil && r.Name != "" {
		return r
	}
	r, _ = Of(s.Annotations)
	return r
}

// Put writes the Record into a part.
func (r Record) Put(s *corev1.Secret) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return errors.Wrap(err, "cannot encode the record of a contribution")
	}
	if s.Annotations == nil {
		s.Annotations = map[string]string{}
	}
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	s.Annotations[v1alpha1.PartAnnotation], s.Data[recordKey] = string(raw), raw
	return nil
}

// Encode returns the encoding for the data of the part.
func (v Values) Encode() ([]byte, error) {
	raw, err := json.Marshal(v)
	return raw, errors.Wrap(err, "cannot encode the values of a contribution")
}

// Decode decodes the values under an ID in the data of a part; false if they are missing or invalid.
func Decode(data map[string][]byte, id string) (Values, bool) {
	var v Values
	if err := json.Unmarshal(data[id], &v); err != nil || len(v.Current) == 0 {
		return Values{}, false
	}
	return v, true
}

// NewVersion returns a new unique Version.
func NewVersion() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // It never fails; see crypto/rand.
	return hex.EncodeToString(b)
}

// Cleans reports whether the part has something to revoke.
func (r Record) Cleans() bool {
	for _, e := range r.Entries {
		if e.Clean {
			return true
		}
	}
	return len(r.Retired) > 0
}

// Retire removes the values of a generator. If they must be revoked, they are added to Retired.
func (r *Record) Retire(id string) {
	e, ok := r.Entries[id]
	if ok && e.Clean {
		r.Retired = append(r.Retired, Retired{Generator: e.Generator, Version: e.Version, State: e.State, Proof: e.Proof, Expires: e.Expires})
	}
	delete(r.Entries, id)
}

// Has reports whether the part has, or had, the values of a version.
func (r Record) Has(version string) bool {
	for _, e := range r.Entries {
		if e.Version == version || e.Previous == version {
			return true
		}
	}
	return slices.ContainsFunc(r.Retired, func(c Retired) bool { return c.Version == version })
}

// Kept reports whether a retired credential is kept as the previous one of its generator.
func (r Record) Kept(c Retired) bool {
	for _, e := range r.Entries {
		if e.Previous == c.Version {
			return true
		}
	}
	return false
}

// Owner returns the object of a kind that a Secret is a part of. It uses the first of the given versions of the Secret
// that has a record; false if there is none.
func Owner(kind string, versions ...metav1.Object) (types.NamespacedName, bool) {
	for _, o := range versions {
		if rec, ok := Of(o.GetAnnotations()); ok && rec.Kind == kind {
			return types.NamespacedName{Namespace: o.GetNamespace(), Name: rec.Name}, true
		}
	}
	return types.NamespacedName{}, false
}
