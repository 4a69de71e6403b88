package inspect

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Remote are the values for rendering an ExternalSecret without stores.
type Remote struct {
	// Secrets returns the remote secrets of a store by key. Versions in references are ignored.
	Secrets func(store v1alpha1.StoreRef) map[string]provider.Value
	// Generated returns the values of a generator by key; nil if there are none.
	Generated func(generator v1alpha1.StoreRef) map[string][]byte
	// Templates returns the content of a ConfigMap or Secret in templateFrom.
	Templates func(kind, name string) map[string]string
}

// Check reports what is wrong with the spec of an ExternalSecret, whatever the values are; nil if nothing is. The error names the
// field.
func Check(es *v1alpha1.ExternalSecret) error {
	if _, err := planOf(es); err != nil {
		return err
	}
	return render.ParseTemplates(es.Spec.Target.Template)
}

// Render returns the Secret of an ExternalSecret, without the operator's own metadata; nil if its deletionPolicy
// would delete it. It makes no request. The error names the field or the key, and shows no value. A ConfigMap is returned as
// a Secret whose name starts with v1alpha1.ConfigMapTarget; Manifest returns the ConfigMap.
func Render(es *v1alpha1.ExternalSecret, remote Remote) (*corev1.Secret, error) {
	plan, err := planOf(es)
	if err != nil {
		return nil, err
	}
	out, err := render.Read(es, plan, remote.answer)
	if err != nil {
		return nil, err
	}
	t := es.Spec.Target
	switch policy.OnNotFound(t.DeletionPolicy, out.NotFound != nil, out.Values) {
	case policy.KeepAll:
		return nil, out.NotFound
	case policy.DropSecret:
		return nil, nil
	case policy.DropKeys, policy.Fill:
	}
	templateSources := render.TemplateSources{}
	for _, ref := range plan.TemplateRefs {
		templateSources[ref] = remote.Templates(ref.Kind(), ref.Name)
	}
	if out, err = render.Shape(es, plan, out, templateSources); err != nil {
		return nil, err
	}
	return secretOf(es, plan, out)
}

// RenderPlaceholders returns what Render returns, with a text in place of each value that names its remote key and property. Keys of
// dataFrom that no template reads by name are missing, and so is what the templates of other objects make.
func RenderPlaceholders(es *v1alpha1.ExternalSecret) (*corev1.Secret, error) {
	plan, err := planOf(es)
	if err != nil {
		return nil, err
	}
	out, err := render.Placeholders(es, plan)
	if err != nil {
		return nil, err
	}
	return secretOf(es, plan, out)
}

func planOf(es *v1alpha1.ExternalSecret) (render.Plan, error) {
	plan, err := render.NewPlan(es)
	if err != nil {
		return render.Plan{}, err
	}
	return plan, checkConfigMap(es)
}

// secretOf returns the Secret with an output.
func secretOf(es *v1alpha1.ExternalSecret, plan render.Plan, out render.Output) (*corev1.Secret, error) {
	t := es.Spec.Target
	s := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: es.Namespace, Name: plan.Target, Labels: out.Labels, Annotations: out.Annotations},
		Data:       out.Data,
		Type:       corev1.SecretTypeOpaque,
	}
	if t.Template != nil && t.Template.Type != "" {
		s.Type = corev1.SecretType(t.Template.Type)
	}
	if t.Immutable {
		s.Immutable = &t.Immutable
	}
	if _, err := Manifest(es, s); err != nil {
		return nil, err
	}
	return s, nil
}

// answer answers a read like a store with these values.
func (r Remote) answer(s render.Source) provider.Answer {
	if s.Generator {
		made := r.Generated(s.Store)
		if made == nil {
			return provider.Answer{Err: provider.NewError(provider.Unavailable, "there are no values for this generator")}
		}
		var a provider.Answer
		for k, v := range made {
			a.Found = append(a.Found, provider.Value{Key: k, Data: v})
		}
		return a
	}
	all := r.Secrets(s.Store)
	if s.Search == (provider.Search{}) {
		v, ok := all[s.Ref.Key]
		if !ok {
			return provider.Answer{Err: provider.NewError(provider.NotFound, "there is no value for this key")}
		}
		return provider.Answer{Value: v}
	}
	q, err := s.Search.Query()
	if err != nil {
		return provider.Answer{Err: err}
	}
	var a provider.Answer
	for k, v := range all {
		if strings.HasPrefix(k, q.Path) && (q.Name == nil || q.Name.MatchString(k)) && holds(v.Metadata, q.Tags) {
			v.Key = k
			a.Found = append(a.Found, v)
		}
	}
	return a
}

// holds reports whether the metadata have all tags.
func holds(metadata, tags map[string]string) bool {
	for k, v := range tags {
		if have, ok := metadata[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// Fields are the names of keys, labels and annotations that a field manager owns.
type Fields = target.Fields

// FieldsOf returns the fields of a Secret that a field manager owns, by its managedFields.
func FieldsOf(entries []metav1.ManagedFieldsEntry, manager string) Fields {
	return target.FieldsOf(entries, manager)
}

// keysOf returns the keys of a Secret that any field manager owns. The Secret can be read without its data.
func keysOf(entries []metav1.ManagedFieldsEntry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, target.FieldsOf(entries, e.Manager).Data...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
