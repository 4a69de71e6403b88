package presence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Label is on the Lease of every Member, and memberAnnotation holds the encoded Member.
const (
	Label            = v1alpha1.Group + "/presence"
	memberAnnotation = v1alpha1.Group + "/member"
)

// maxDuration is the maximum duration of a Lease, so that a damaged one lapses.
const maxDuration = 10 * time.Minute

// leaseName returns the name of the Lease of all replicas of an operator.
func leaseName(m Member) string {
	const suffix = ".presence." + v1alpha1.Group
	name := m.Name
	if m.Class != "" || len(m.Namespaces) > 0 {
		name += "." + hash(append([]string{m.Class}, m.Namespaces...)...)
	}
	if len(validation.IsDNS1123Subdomain(name+suffix)) > 0 {
		name = hash(append([]string{m.Name, m.Class}, m.Namespaces...)...)
	}
	return name + suffix
}

// dutiesName returns the name of the Lease of the shared duties. Operators of the same namespaces share duties.
func dutiesName(m Member) string {
	const name = "shared-duties"
	if len(m.Namespaces) == 0 {
		return name + "." + v1alpha1.Group
	}
	return name + "." + hash(m.Namespaces...) + "." + v1alpha1.Group
}

// hash returns a short hash of a list of names.
func hash(names ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// normal returns a Member with sorted, unique namespaces, so that the order of a flag does not matter.
func (m Member) normal() Member {
	m.Namespaces = slices.Clone(m.Namespaces)
	slices.Sort(m.Namespaces)
	m.Namespaces = slices.Compact(m.Namespaces)
	return m
}

func encode(m Member) (string, error) {
	raw, err := json.Marshal(m)
	return string(raw), errors.Wrap(err, "cannot encode the presence Lease")
}

// Decode returns the Member in a Lease; false if it is missing or invalid. Unknown fields are ignored.
func Decode(l *coordinationv1.Lease) (Member, bool) {
	var m Member
	if err := json.Unmarshal([]byte(l.Annotations[memberAnnotation]), &m); err != nil {
		return Member{}, false
	}
	return m, m.Module != "" && m.Name != ""
}

// durationOf returns how long a Lease is valid without a renewal.
func durationOf(l *coordinationv1.Lease, otherwise time.Duration) time.Duration {
	s := l.Spec.LeaseDurationSeconds
	if s == nil || *s <= 0 {
		return otherwise
	}
	return min(time.Duration(*s)*time.Second, maxDuration)
}
