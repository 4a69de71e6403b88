// Package handoff is what modules contribute to each other's objects: the values that a module's generators made for an
// object, or what it read for an object that another module reconciles. A contribution is stored in a Secret, the part,
// and recorded in the status of the object, by one field manager for each contributor.
//
// Generated values are stable because they are stored in a part: it is owned by the object and by the Secret that is made
// from it, and is deleted with the last of them.
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

// Type of the Secret that is a part.
const Type corev1.SecretType = v1alpha1.Group + "/part"

// previousSuffix follows the key of a value that was replaced.
const previousSuffix = "-previous"

// maxName is the longest name of a Secret.
const maxName = validation.DNS1123SubdomainMaxLength

// partName returns the name of the part that a contributor stores for an object.
func partName(kind, name, contributor, class string) string {
	suffix := "-part-" + Hash(kind, name, contributor, class)
	return strings.TrimRight(name[:min(len(name), maxName-len(suffix))], "-.") + suffix
}

// Finalizer is the one that a module sets on a part while there is something to revoke.
func Finalizer(module string) string { return module + "/part" }

// ID names the values of one generator in a part.
func ID(ref v1alpha1.StoreRef) string { return Hash(ref.Kind, ref.Name) }

// Hash returns a short hash of texts. Every version must build the same: names and versions rest on it.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p) // A hash takes all.
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// A Record is what is known of a part's values; none of it is secret. It is kept in an annotation.
type Record struct {
	// Kind, Name and UID are those of the object that the values are for.
	Kind string    `json:"kind"`
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// Class of the generators.
	Class string `json:"class,omitempty"`
	// Entries by the ID of their generator.
	Entries map[string]Entry `json:"entries,omitempty"`
	// Retired are credentials that were replaced and have yet to be revoked.
	Retired []Retired `json:"retired,omitempty"`
	// Reads describe what was read for an object that another operator claims; nil in a part of generated values.
	Reads *Reads `json:"reads,omitempty"`
}

// An Entry describes the values of one generator.
type Entry struct {
	Generator Generator `json:"generator"`
	// Version is another for other values.
	Version string `json:"version"`
	// Spec is the hash of the spec of the generator that made them.
	Spec string `json:"spec"`
	// Request is the refresh request that was served last.
	Request string    `json:"request,omitempty"`
	Made    time.Time `json:"made"`
	// Renewed is when Expires was set last, if not when the values were made.
	Renewed time.Time `json:"renewed,omitzero"`
	// Expires is when the values cease to work; zero if they do not.
	Expires time.Time `json:"expires,omitzero"`
	// Final is true once they cannot be renewed.
	Final bool `json:"final,omitempty"`
	// State is for the generator alone.
	State string `json:"state,omitempty"`
	// Clean is true if they have to be revoked.
	Clean bool `json:"clean,omitempty"`
	// Previous is the Version of those that are kept beside them.
	Previous string `json:"previous,omitempty"`
}

// A Generator names a generator by Kind and name.
type Generator struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Retired is a credential that was replaced and has yet to be revoked.
type Retired struct {
	Generator Generator `json:"generator"`
	Version   string    `json:"version"`
	Expires   time.Time `json:"expires,omitzero"`
	State     string    `json:"state"`
	// Release is when it is revoked; zero as long as somebody may hold it.
	Release time.Time `json:"release,omitzero"`
	// UID of the object that it was made for, if that is another of the same name.
	UID types.UID `json:"uid,omitempty"`
}

// Values are those of one generator. They are kept in the data of the part, under the ID.
type Values struct {
	Current  map[string][]byte `json:"current"`
	Previous map[string][]byte `json:"previous,omitempty"`
}

// All returns what an object gets: the values, and those before them under keys of their own.
func (v Values) All() map[string][]byte {
	all := maps.Clone(v.Current)
	for k, b := range v.Previous {
		if _, taken := all[k+previousSuffix]; !taken {
			all[k+previousSuffix] = b
		}
	}
	return all
}

// CheckValues returns an error if values cannot be kept: their keys must be such of a Secret, also with
// what is put behind them.
func CheckValues(values map[string][]byte) error {
	size := 0
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if len(validation.IsConfigMapKey(k+previousSuffix)) > 0 {
			return provider.NewError(provider.Invalid, "it made a value with the key %.64q, which cannot be a key of a Secret", k)
		}
		size += len(k) + len(values[k])
	}
	// The part holds them twice at most, in an encoding that takes a third more.
	if most := corev1.MaxSecretSize / 4; size > most {
		return provider.NewError(provider.Invalid, "it made values of %d bytes, and %d can be kept", size, most)
	}
	return nil
}

// Of reads the Record among the annotations of a Secret; false if there is none that can be read.
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

// recordKey is where the data of a part hold its Record, too. The annotation is what caches show; if somebody
// edits it, nothing is lost.
const recordKey = "record"

// RecordOf reads the Record of a part that was read with its data.
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
		return errors.Wrap(err, "cannot encode the record of a part")
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

// Encode returns what is kept in the data of the part.
func (v Values) Encode() ([]byte, error) {
	raw, err := json.Marshal(v)
	return raw, errors.Wrap(err, "cannot encode the values of a part")
}

// Decode reads what is kept in the data of the part under an ID; false if there is nothing that can be read.
func Decode(data map[string][]byte, id string) (Values, bool) {
	var v Values
	if err := json.Unmarshal(data[id], &v); err != nil || len(v.Current) == 0 {
		return Values{}, false
	}
	return v, true
}

// NewVersion returns a Version that no other values have.
func NewVersion() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // It never fails; see crypto/rand.
	return hex.EncodeToString(b)
}

// Cleans reports whether anything of the part has to be revoked.
func (r Record) Cleans() bool {
	for _, e := range r.Entries {
		if e.Clean {
			return true
		}
	}
	return len(r.Retired) > 0
}

// Retire takes the values of a generator out of use. What has to be revoked stays noted.
func (r *Record) Retire(id string) {
	e, ok := r.Entries[id]
	if ok && e.Clean {
		r.Retired = append(r.Retired, Retired{Generator: e.Generator, Version: e.Version, State: e.State, Expires: e.Expires})
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

// Kept reports whether a retired credential is kept beside the present one of its generator.
func (r Record) Kept(c Retired) bool {
	for _, e := range r.Entries {
		if e.Previous == c.Version {
			return true
		}
	}
	return false
}

// Owner returns the object of a kind that a Secret is a part of, as the first of its versions tells that has a record;
// false if it is no part of such an object.
func Owner(kind string, versions ...metav1.Object) (types.NamespacedName, bool) {
	for _, o := range versions {
		if rec, ok := Of(o.GetAnnotations()); ok && rec.Kind == kind {
			return types.NamespacedName{Namespace: o.GetNamespace(), Name: rec.Name}, true
		}
	}
	return types.NamespacedName{}, false
}
