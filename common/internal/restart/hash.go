package restart

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// maxName is the maximum length of the part of an annotation's key after the slash
// (https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations/).
const maxName = 63

// Key returns the annotation of a pod template for the target of an ExternalSecret, by its TargetName.
func Key(target string) string {
	// No name of a Secret has "_".
	name := strings.Replace(target, v1alpha1.ConfigMapTarget, "configmap_", 1)
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:16])
	}
	return v1alpha1.RestartAnnotationPrefix + name
}

// Hash returns a hash of data, keyed with a salt. It starts with an identifier of the salt, and a dot.
func Hash(salt string, data map[string][]byte) string {
	id := sha256.Sum256([]byte(salt))
	h := hmac.New(sha256.New, []byte(salt))
	for _, k := range slices.Sorted(maps.Keys(data)) {
		for _, b := range [][]byte{[]byte(k), data[k]} {
			var n [8]byte
			binary.BigEndian.PutUint64(n[:], uint64(len(b)))
			h.Write(n[:])
			h.Write(b)
		}
	}
	return hex.EncodeToString(id[:4]) + "." + hex.EncodeToString(h.Sum(nil)[:16])
}

// sameSalt reports whether two hashes are comparable.
func sameSalt(a, b string) bool {
	a, _, _ = strings.Cut(a, ".")
	b, _, _ = strings.Cut(b, ".")
	return a == b
}
