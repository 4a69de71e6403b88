// Package target writes Secrets without losing data. Every write is a create, or a guarded server-side apply with one
// field manager per ExternalSecret. Fields of other writers are never changed.
package target

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

// maxFieldManager is the maximum length of a field manager that the API server accepts
// (k8s.io/apimachinery/pkg/apis/meta/v1/validation).
const maxFieldManager = 128

// Manager returns the field manager of an ExternalSecret; it is the same in every module.
func Manager(externalSecret string) string {
	return FieldManager(v1alpha1.FieldManagerPrefix, externalSecret)
}

// FieldManager returns the field manager with a prefix and a name. A name that is too long is hashed.
func FieldManager(prefix, name string) string {
	if m := prefix + name; len(m) <= maxFieldManager {
		return m
	}
	return prefix + shortHash(name)
}

// MarkKey returns the annotation that holds the mark of an ExternalSecret.
func MarkKey(externalSecret string) string {
	return v1alpha1.MarkAnnotationPrefix + shortHash(externalSecret)
}

// StoreLabel returns the label of a target that was read from a store.
func StoreLabel(group, kind, namespace, name string) string {
	return v1alpha1.StoreLabelPrefix + shortHash(strings.Join([]string{group, kind, namespace, name}, "/"))
}

// ManagedLabel returns the label of the Secrets that a module writes.
func ManagedLabel(module string) string { return module + v1alpha1.ManagedLabelSuffix }

// MaxMarks is the maximum number of ExternalSecrets that write one Secret. Without a limit, anyone who can write
// Secrets could put thousands of marks on one, and reading them would slow down the operator for all.
//
//limit:objects ExternalSecrets that write one Secret | One more is refused. While a Secret carries more [marks](external-secret.md#the-secret), whichever tool wrote them, all are refused.
const MaxMarks = 100

// Marks returns the marks of a Secret by the name of the ExternalSecret. Annotations that are no valid marks are
// ignored. If there are more than MaxMarks, it returns none.
func Marks(annotations map[string]string) map[string]policy.Mark {
	keys := markKeys(annotations)
	if len(keys) > MaxMarks {
		return nil
	}
	var marks map[string]policy.Mark
	for _, k := range keys {
		var m policy.Mark
		if json.Unmarshal([]byte(annotations[k]), &m) != nil || MarkKey(m.Name) != k {
			continue
		}
		if marks == nil {
			marks = map[string]policy.Mark{}
		}
		marks[m.Name] = m
	}
	return marks
}

// markKeys returns the annotations whose names are those of marks.
func markKeys(annotations map[string]string) (keys []string) {
	for k := range annotations {
		if strings.HasPrefix(k, v1alpha1.MarkAnnotationPrefix) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Seal sets the hashes of the mark.
func (d *Desired) Seal() {
	d.Mark.Fields = d.fields().Hash()
	h := keyed(d.Mark.UID)
	field(h, []byte(d.Type))
	for _, k := range slices.Sorted(mapKeys(d.Data)) {
		field(h, []byte(k))
		field(h, d.Data[k])
	}
	for _, m := range []map[string]string{d.Labels, d.Annotations} {
		field(h, nil) // Separates the two maps.
		for _, k := range slices.Sorted(mapKeys(m)) {
			field(h, []byte(k))
			field(h, []byte(m[k]))
		}
	}
	d.Mark.Hash = sum(h)
}

// HashInputs returns a hash of everything that values are rendered from, keyed with the uid.
func HashInputs(uid types.UID, inputs [][]byte) string {
	h := keyed(uid)
	for _, b := range inputs {
		field(h, b)
	}
	return sum(h)
}

func (d *Desired) annotations() map[string]string {
	mark, err := json.Marshal(d.Mark)
	if err != nil {
		panic(err) // A struct of strings and a number can always be encoded.
	}
	all := maps.Clone(d.Annotations)
	if all == nil {
		all = map[string]string{}
	}
	all[MarkKey(d.Mark.Name)] = string(mark)
	return all
}

func (d *Desired) fields() Fields {
	names := append(slices.Collect(mapKeys(d.Annotations)), MarkKey(d.Mark.Name))
	f := newFields(mapKeys(d.Data), mapKeys(d.Labels), slices.Values(names))
	f.Immutable = d.Immutable
	return f
}

// keyed returns a hash that is keyed with the uid, so that equal values in two Secrets have different hashes.
func keyed(uid types.UID) hash.Hash { return hmac.New(sha256.New, []byte(uid)) }

// field adds one value with its length, so that no two lists of values have the same hash input.
func field(h hash.Hash, b []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(b)))
	h.Write(n[:])
	h.Write(b)
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:16]) }

func shortHash(s string) string {
	b := sha256.Sum256([]byte(s))
	return hex.EncodeToString(b[:10])
}
