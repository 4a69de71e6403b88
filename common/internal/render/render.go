package render

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render/template"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Output is what a Secret shall hold.
type Output struct {
	// Data by key.
	Data map[string][]byte
	// Labels and Annotations that a template yields.
	Labels, Annotations map[string]string
	// Values is the number of keys that were read, before any template.
	Values int
	// Taken are the keys and values of each entry, first those of dataFrom, before any rewrite. They are nil unless
	// a template rewrites keys, which may yield others each time: then Data does not tell what was read.
	Taken [][]KeyValue
	// Sources that were read, for the status.
	Sources []v1alpha1.SourceStatus
	// Gone reports what the spec names, without calling it optional, and the provider says does not
	// exist; nil if there is nothing of that. Data is then what is left.
	Gone *provider.Error
}

// Values returns the answer to a read.
type Values func(Source) provider.Answer

// maxSources is how many sources the status lists; a find can yield thousands.
const maxSources = 100

// Read returns the keys and values that the entries of the spec yield. If any value could not be read or is unfit, nothing
// is returned but the error, a *provider.Error whose message names the key and the store: a Secret is never half-filled.
// What definitely does not exist is no such error; the policies decide about it.
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
	if err := verdict(r.errs, len(r.gone)); err != nil {
		return Output{}, err
	}
	out := Output{Data: r.data, Values: len(r.data), Taken: r.taken, Gone: verdict(r.gone, 0)}
	out.Sources = sources(p, values)
	return out, nil
}

// Shape turns what was read into what the Secret shall hold: by the template, if there is one. The
// error is as that of Read.
func Shape(es *v1alpha1.ExternalSecret, p Plan, out Output, texts Texts) (Output, error) {
	// What is kept as it is, or has nothing left, needs no template, which could only fail.
	t := es.Spec.Target
	// Under Merge somebody else makes the Secret, and its other keys count, too.
	typed := t.Template != nil && t.CreationPolicy != v1alpha1.CreateMerge
	switch policy.OnGone(t.DeletionPolicy, out.Gone != nil, out.Values) {
	case policy.KeepAll, policy.DropSecret:
		return out, nil
	case policy.DropKeys:
		if typed && CheckType(corev1.SecretType(t.Template.Type), out.Data) != nil {
			return Output{}, provider.NewError(provider.Invalid, "all values are gone, and a Secret of type %s cannot be emptied, as spec.target.deletionPolicy: Merge asks; use deletionPolicy: Delete or Retain", t.Template.Type)
		}
		return out, nil
	case policy.Fill:
	}
	if t.Template != nil {
		if err := renderTemplate(t.Template, &out, texts); err != nil {
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
		return Output{}, provider.NewError(provider.Invalid, "the values of Secret %q are %d bytes in all, and a Secret holds at most %d; read fewer or smaller values", p.Target, size, corev1.MaxSecretSize)
	}
	return out, nil
}

// sources are what was read, for the status.
func sources(p Plan, values Values) []v1alpha1.SourceStatus {
	var all []v1alpha1.SourceStatus
	for _, s := range p.Sources {
		if a := values(s); s.Generator && a.Err == nil { // First, so that a long search cuts none of them off.
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
