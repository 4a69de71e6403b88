package render

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/render/template"
	"github.com/direct-secrets/direct-secrets/common/store"
)

// Output is what a Secret shall hold.
type Output struct {
	// Data by key.
	Data map[string][]byte
	// Labels and Annotations that a template yields.
	Labels, Annotations map[string]string
	// Values is the number of keys that were read, before any template.
	Values int
	// Sources that were read, for the status.
	Sources []v1alpha1.SourceStatus
	// Gone reports what the spec names, without calling it optional, and the provider says does not
	// exist; nil if there is nothing of that. Data is then what is left.
	Gone *store.Error
}

// Values returns the answer to a read.
type Values func(Source) store.Answer

// maxSources is how many sources the status lists; a find can yield thousands.
const maxSources = 100

// Render is Read and Shape.
func Render(es *v1alpha1.ExternalSecret, p Plan, values Values, texts Texts) (Output, error) {
	out, err := Read(es, p, values)
	if err != nil {
		return Output{}, err
	}
	return Shape(es, p, out, texts)
}

// Read returns the keys and values that the entries of the spec yield. If any value could not be read or is unfit, nothing
// is returned but the error, a *store.Error whose message begins with its class and names the key
// and the store: a Secret is never half-filled. What definitely does not exist is no such error; the
// policies decide about it.
func Read(es *v1alpha1.ExternalSecret, p Plan, values Values) (Output, error) {
	r := &renderer{values: values, data: map[string][]byte{}, budget: template.NewBudget()}
	for i, e := range es.Spec.DataFrom {
		r.many(fmt.Sprintf("spec.dataFrom[%d]", i), storeOfDataFrom(es, e), e)
	}
	for _, e := range es.Spec.Data {
		r.single(storeOfData(es, e), e)
	}
	if err := verdict(r.errs, len(r.gone)); err != nil {
		return Output{}, err
	}
	out := Output{Data: r.data, Values: len(r.data), Gone: verdict(r.gone, 0)}
	out.Sources = sources(p, values)
	return out, nil
}

// Shape turns what was read into what the Secret shall hold: by the template, if there is one. The
// error is as that of Read.
func Shape(es *v1alpha1.ExternalSecret, p Plan, out Output, texts Texts) (Output, error) {
	// What is kept as it is, or has nothing left, needs no template, which could only fail.
	t, deletion := es.Spec.Target, es.Spec.Target.DeletionPolicy
	kept := out.Gone != nil && (deletion == "" || deletion == v1alpha1.DeletionRetain)
	dropped := out.Values == 0 && (deletion == v1alpha1.DeletionDelete || (out.Gone != nil && deletion == v1alpha1.DeletionMerge))
	if kept || dropped {
		return out, nil
	}
	if t.Template != nil {
		if err := renderTemplate(t.Template, &out, texts); err != nil {
			return Output{}, err
		}
	}
	// Under Merge somebody else makes the Secret, and its other keys count, too.
	if t.Template != nil && t.CreationPolicy != v1alpha1.CreateMerge {
		if err := CheckType(corev1.SecretType(t.Template.Type), out.Data); err != nil {
			return Output{}, err
		}
	}
	size := 0
	for _, v := range out.Data {
		size += len(v)
	}
	if size > corev1.MaxSecretSize {
		return Output{}, store.NewError(store.Invalid, "Invalid: the values of Secret %q are %d bytes in all, and a Secret holds at most %d; read fewer or smaller values", p.Target, size, corev1.MaxSecretSize)
	}
	return out, nil
}

// sources are what was read, for the status.
func sources(p Plan, values Values) []v1alpha1.SourceStatus {
	var all []v1alpha1.SourceStatus
	for _, s := range p.Sources {
		a := values(s)
		if a.Err != nil {
			continue
		}
		found := a.Found
		if s.Search == (store.Search{}) {
			found = []store.Value{{Key: s.Ref.Key, Version: a.Value.Version}}
		}
		for _, v := range found {
			if len(all) < maxSources {
				all = append(all, v1alpha1.SourceStatus{Key: v.Key, Version: v.Version})
			}
		}
	}
	return all
}

type renderer struct {
	values Values
	data   map[string][]byte
	// budget is for all templates of keys.
	budget *template.Budget
	// errs are failures; gone is what does not exist.
	errs, gone []*store.Error
}

func (r *renderer) single(ref *v1alpha1.StoreRef, e v1alpha1.DataEntry) {
	v, err := r.read(ref, e.RemoteRef)
	if err == nil {
		v, err = Decode(v, e.RemoteRef.DecodingStrategy)
	}
	if err == nil {
		r.data[e.SecretKey] = v
		return
	}
	if e.Optional && store.IsNotFound(err) {
		return
	}
	r.fail(ref, nameOf(e.RemoteRef), err)
}

// many fills the keys of an entry that yields many.
func (r *renderer) many(field string, ref *v1alpha1.StoreRef, e v1alpha1.DataFromEntry) {
	what, shape := r.shapeOf(e)
	kvs, err := r.readMany(ref, e)
	if err == nil {
		kvs, err = rewrite(kvs, e.Rewrite, field, r.budget)
	}
	if err == nil {
		kvs, err = shape.apply(kvs, field)
	}
	if err != nil {
		r.fail(ref, what, err)
		return
	}
	for _, kv := range kvs {
		r.data[kv.Key] = kv.Value
	}
}

// shape is what is done to the keys and values of an entry.
type shape struct{ conversion, decoding string }

// shapeOf returns what an entry reads, in words, and its shape.
func (r *renderer) shapeOf(e v1alpha1.DataFromEntry) (string, shape) {
	if e.Extract != nil {
		return nameOf(*e.Extract), shape{e.Extract.ConversionStrategy, e.Extract.DecodingStrategy}
	}
	return "find", shape{e.Find.ConversionStrategy, e.Find.DecodingStrategy}
}

func (s shape) apply(kvs []KeyValue, field string) ([]KeyValue, error) {
	out := make([]KeyValue, len(kvs))
	for i, kv := range kvs {
		k := ConvertKey(kv.Key, s.conversion)
		if len(validation.IsConfigMapKey(k)) > 0 {
			return nil, store.NewError(store.Invalid, "%s: the remote key %.64q cannot be a key of a Secret", field, kv.Key)
		}
		v, err := Decode(kv.Value, s.decoding)
		if err != nil {
			return nil, store.NewError(store.Invalid, "%s: the remote key %.64q: %s", field, kv.Key, store.Safe(err).Message)
		}
		out[i] = KeyValue{Key: k, Value: v}
	}
	return out, unique(kvs, out, field)
}

// readMany returns the keys and values of an entry as the provider has them.
func (r *renderer) readMany(ref *v1alpha1.StoreRef, e v1alpha1.DataFromEntry) ([]KeyValue, error) {
	if e.Extract != nil {
		v, err := r.read(ref, *e.Extract)
		if err != nil {
			return nil, err
		}
		return Extract(v)
	}
	a := r.values(Source{Store: *ref, Read: store.Read{Search: searchOf(*e.Find)}})
	switch {
	case store.IsNotFound(a.Err):
		// A list tells what there is by being complete; this says nothing of single secrets.
		return nil, store.NewError(store.Unavailable, "the list of secrets could not be read: %s", store.Safe(a.Err).Message)
	case a.Err != nil:
		return nil, a.Err
	case len(a.Found) == 0:
		return nil, store.NewError(store.NotFound, "no secret matches")
	}
	kvs := make([]KeyValue, len(a.Found))
	for i, v := range a.Found {
		kvs[i] = KeyValue{Key: v.Key, Value: v.Data}
	}
	slices.SortStableFunc(kvs, func(a, b KeyValue) int { return cmp.Compare(a.Key, b.Key) })
	return kvs, nil
}

func (r *renderer) read(ref *v1alpha1.StoreRef, rr v1alpha1.RemoteRef) ([]byte, error) {
	a := r.values(Source{Store: *ref, Read: store.Read{Ref: RefOf(rr)}})
	if a.Err != nil {
		return nil, a.Err
	}
	data := a.Value.Data
	if rr.MetadataPolicy == metadataFetch {
		var err error
		if data, err = marshal(a.Value.Metadata); err != nil || a.Value.Metadata == nil {
			data = []byte("{}")
		}
	}
	if n := len(data); n > corev1.MaxSecretSize {
		return nil, store.NewError(store.Invalid, "its value is %d bytes, and a Secret holds at most %d", n, corev1.MaxSecretSize)
	}
	if rr.Property == "" {
		return data, nil
	}
	return Property(data, rr.Property)
}

// nameOf names what a remoteRef reads.
func nameOf(rr v1alpha1.RemoteRef) string {
	what := fmt.Sprintf("%q", rr.Key)
	if rr.Version != "" {
		what += fmt.Sprintf(" version %q", rr.Version)
	}
	return what
}

func (r *renderer) fail(ref *v1alpha1.StoreRef, what string, err error) {
	safe := store.Safe(err)
	e := &store.Error{
		Class:      safe.Class,
		Message:    fmt.Sprintf("%s: %s in %s %q: %s", safe.Class, what, ref.Kind, ref.Name, safe.Message),
		RetryAfter: safe.RetryAfter,
	}
	if safe.Class == store.NotFound {
		r.gone = append(r.gone, e)
		return
	}
	r.errs = append(r.errs, e)
}

// verdict returns the first of several errors, which says how many more there are, others included;
// nil if there is none.
func verdict(errs []*store.Error, others int) *store.Error {
	if len(errs) == 0 {
		return nil
	}
	first := errs[0]
	if more := len(errs) - 1 + others; more > 0 {
		first.Message += fmt.Sprintf(" (and %d more)", more)
	}
	return first
}
