package render

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render/template"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Output is the desired content of a Secret.
type Output struct {
	// Data are the values by key.
	Data map[string][]byte
	// Labels and Annotations are those that a template makes.
	Labels, Annotations map[string]string
	// Values is the number of keys that were read, before any template.
	Values int
	// Taken are the keys and values of each entry, those of dataFrom first, before any rewrite. It is only set if a
	// template rewrites keys: that can have another result each time, so Data does not show whether the values have
	// changed.
	Taken [][]KeyValue
	// Sources are those that were read, for the status.
	Sources []v1alpha1.SourceStatus
	// NotFound is the error for secrets and properties that definitely do not exist and are not optional; nil if there
	// are none. Data then has the remaining values.
	NotFound *provider.Error
}

// Values returns the answer to a read.
type Values func(Source) provider.Answer

// maxSources limits the sources in the status; a find can have thousands of results.
const maxSources = 100

// Read returns the keys and values of the entries of the spec. If any value cannot be read or used, it returns only
// an error, so that a Secret is never half-filled. The error is a *provider.Error whose message names the key and the
// store. A secret that definitely does not exist is not such an error: the policies decide what happens.
func Read(es *v1alpha1.ExternalSecret, p Plan, values Values) (Output, error) {
	r := &renderer{
		values: values, data: map[string][]byte{}, budget: template.NewBudget(), work: newWork(), keep: transforms(es),
		parsed: map[Source]*jsonValue{},
	}
	for _, e := range es.Spec.DataFrom {
		if e.Extract != nil {
			r.ask(storeOfDataFrom(es, e), *e.Extract)
		}
	}
	for _, e := range es.Spec.Data {
		r.ask(storeOfData(es, e), e.RemoteRef)
	}
	for i, e := range es.Spec.DataFrom {
		r.many(field{list: "dataFrom", i: i}, storeOfDataFrom(es, e), e)
	}
	for i, e := range es.Spec.Data {
		r.single(field{list: "data", i: i}, storeOfData(es, e), e)
	}
	if err := verdict(r.errs, len(r.notFound)); err != nil {
		return Output{}, err
	}
	out := Output{Data: r.data, Values: len(r.data), Taken: r.taken, NotFound: verdict(r.notFound, 0)}
	out.Sources = sources(p, values)
	return out, nil
}

// Shape turns the result of Read into the desired content of the Secret, with the template if there is one. Its error
// is like that of Read.
func Shape(es *v1alpha1.ExternalSecret, p Plan, out Output, templateSources TemplateSources) (Output, error) {
	// If the Secret stays unchanged or loses all values, the template is not needed, and might only fail.
	t := es.Spec.Target
	// Under Merge another owner creates the Secret, and its other keys count for the type, too.
	typed := t.Template != nil && t.CreationPolicy != v1alpha1.CreateMerge
	switch policy.OnNotFound(t.DeletionPolicy, out.NotFound != nil, out.Values) {
	case policy.KeepAll, policy.DropSecret:
		return out, nil
	case policy.DropKeys:
		if typed && CheckType(corev1.SecretType(t.Template.Type), out.Data) != nil {
			return Output{}, provider.NewError(provider.Invalid, "no value exists any more, and spec.target.deletionPolicy: Merge cannot empty a Secret of type %s; use deletionPolicy: Delete or Retain", t.Template.Type)
		}
		return out, nil
	case policy.Fill:
	}
	if t.Template != nil {
		if err := renderTemplate(t.Template, &out, templateSources); err != nil {
			return Output{}, err
		}
	}
	if typed {
		if err := CheckType(corev1.SecretType(t.Template.Type), out.Data); err != nil {
			return Output{}, err
		}
	}
	size := 0
	for _, v := range out.Data {
		size += len(v)
	}
	if size > corev1.MaxSecretSize {
		return Output{}, provider.NewError(provider.Invalid, "the values of Secret %q have %d bytes in total, and a Secret holds at most %d; read fewer or smaller values", p.Target, size, corev1.MaxSecretSize)
	}
	return out, nil
}

// sources returns the sources that were read, for the status.
func sources(p Plan, values Values) []v1alpha1.SourceStatus {
	var all []v1alpha1.SourceStatus
	for _, s := range p.Sources {
		if a := values(s); s.Generator && a.Err == nil { // Generators come first, so that the results of a search do not cut them off.
			all = append(all, v1alpha1.SourceStatus{Kind: v1alpha1.SourceGenerator, Key: GeneratorKey(s.Store), Version: a.Value.Version})
		}
	}
	for _, s := range p.Sources {
		a := values(s)
		if s.Generator || a.Err != nil {
			continue
		}
		found := sorted(a.Found)
		if s.Search == (provider.Search{}) {
			found = []provider.Value{{Key: s.Ref.Key, Version: a.Value.Version}}
		}
		for _, v := range found {
			if len(all) < maxSources {
				all = append(all, v1alpha1.SourceStatus{Kind: v1alpha1.SourceRemoteSecret, Key: v.Key, Version: v.Version})
			}
		}
	}
	return all
}
