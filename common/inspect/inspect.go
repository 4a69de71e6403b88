// Package inspect reads the operator's own data: its marks on Secrets, and the contributions that modules store for
// each other. It can also render a template over values without a cluster. Tools and tests use it. It never changes a
// cluster.
package inspect

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/scope"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Mark is the annotation in which an ExternalSecret records what it has written to a Secret.
type Mark = policy.Mark

// Marks returns the marks among the annotations of a Secret, by the names of their ExternalSecrets.
func Marks(annotations map[string]string) map[string]Mark { return target.Marks(annotations) }

// MarkKey returns the key of the annotation with the mark of an ExternalSecret.
func MarkKey(externalSecret string) string { return target.MarkKey(externalSecret) }

// FieldManager returns the field manager with which an ExternalSecret writes its Secret.
func FieldManager(externalSecret string) string { return target.Manager(externalSecret) }

// ManagedLabel returns the label of the Secrets that a module writes. module is its API group.
func ManagedLabel(module string) string { return target.ManagedLabel(module) }

// StoreLabel returns the label of the Secrets with values of a store.
func StoreLabel(group, kind, namespace, name string) string {
	return target.StoreLabel(group, kind, namespace, name)
}

// ContributionType is the type of the Secrets that store contributions.
const ContributionType = handoff.Type

// A Contributor is an operator that stores values for objects of another operator, for one purpose.
type Contributor = handoff.Contributor

// A Record describes the contribution in a Secret. It contains no secret value.
type Record = handoff.Record

// RecordOf returns the record among the annotations of a Secret; false if there is none.
func RecordOf(annotations map[string]string) (Record, bool) { return handoff.Of(annotations) }

// StoredRecord returns the record in the data of a Secret. It takes precedence over the annotation.
func StoredRecord(s *corev1.Secret) Record { return handoff.RecordOf(s) }

// ContentHash returns the hash that Record.Reads has for the data of a contribution to an object.
func ContentHash(object types.UID, data map[string][]byte) string {
	return target.HashInputs(object, handoff.Content(data))
}

// GeneratorID returns the key of a generator's values in the data of a contribution and in Record.Entries.
func GeneratorID(ref v1alpha1.StoreRef) string { return handoff.ID(ref) }

// Generated are the values of one generator.
type Generated = handoff.Values

// GeneratedValues returns the values of a generator in the data of a contribution; false if there are none.
func GeneratedValues(data map[string][]byte, id string) (Generated, bool) {
	return handoff.Decode(data, id)
}

// CheckTemplate reports why the template engine does not accept a text; nil if it does.
func CheckTemplate(text string) error { return render.CheckText(text) }

// Shape renders a template over values, as for a Secret. The error names the problem of the template, or of a Secret
// of its type. It shows no value.
func Shape(t *v1alpha1.Template, values map[string][]byte) (map[string][]byte, error) {
	data, err := render.ShapeData(t, values, nil)
	if err != nil || t == nil {
		return data, err
	}
	if err := render.CheckType(corev1.SecretType(t.Type), data); err != nil {
		return nil, err
	}
	return data, nil
}

// Admits reports whether the conditions of a cluster store admit a namespace by its name. Conditions by labels do not count.
func Admits(conditions []v1alpha1.StoreCondition, namespace string) bool {
	byName := make([]v1alpha1.StoreCondition, 0, len(conditions))
	for _, c := range conditions {
		if c.NamespaceSelector == nil || len(c.Namespaces)+len(c.NamespaceRegexes) > 0 {
			c.NamespaceSelector = nil
			byName = append(byName, c)
		}
	}
	if len(byName) == 0 {
		return len(conditions) == 0
	}
	rules, err := scope.New(&v1alpha1.ClusterStoreSpec{Conditions: byName})
	if err != nil {
		return false
	}
	_, admitted := rules.Grant(namespace, nil)
	return admitted
}

// FixOf returns what a user can do about an error of a class, if the message does not say it; empty if nothing need be done.
func FixOf(class provider.Class) string { return status.FixOf(class) }

// FixIn returns what the message of a condition says that a user can do; empty if it says nothing.
func FixIn(message string) string { return status.FixIn(message) }
