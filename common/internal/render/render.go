package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

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

// Render is Read and Shape.
func Render(es *v1alpha1.ExternalSecret, p Plan, values Values, texts Texts) (Output, error) {
	out, err := Read(es, p, values)
	if err != nil {
		return Output{}, err
	}
	return Shape(es, p, out, texts)
}

// Read returns the keys and values that the entries of the spec yield. If any value could not be read or is unfit, nothing
// is returned but the error, a *provider.Error whose message names the key and the store: a Secret is never half-filled. What definitely does not exist is no such error; the
// policies decide about it.
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

// sorted returns what was found by its keys: the order of a provider means nothing, and may change.
func sorted(found []provider.Value) []provider.Value {
	return slices.SortedStableFunc(slices.Values(found), func(a, b provider.Value) int { return cmp.Compare(a.Key, b.Key) })
}

type renderer struct {
	values Values
	data   map[string][]byte
	// size is that of data, in bytes.
	size int
	// keep says that taken is filled.
	keep  bool
	taken [][]KeyValue
	// parsed are the sources of which properties are taken.
	parsed map[Source]*jsonValue
	// budget is for all templates of keys, work for all that is done besides.
	budget, work *template.Budget
	// errs are failures; gone is what does not exist.
	errs, gone []*provider.Error
}

// ask notes the property that a remoteRef takes.
func (r *renderer) ask(ref *v1alpha1.StoreRef, rr v1alpha1.RemoteRef) {
	if rr.Property != "" {
		s := sourceAt(ref, rr)
		d := r.parsed[s]
		if d == nil {
			d = &jsonValue{}
			r.parsed[s] = d
		}
		d.properties = append(d.properties, rr.Property)
	}
}

// A field names an entry of the spec, or a field of one. Its text is made where somebody reads it.
type field struct {
	list string
	i    int
	sub  string
}

func (f field) String() string { return fmt.Sprintf("spec.%s[%d]%s", f.list, f.i, f.sub) }

func (f field) at(sub string) field {
	f.sub += sub
	return f
}

func (r *renderer) single(f field, ref *v1alpha1.StoreRef, e v1alpha1.DataEntry) {
	v, err := r.read(f.at(".remoteRef"), ref, e.RemoteRef)
	if err == nil {
		v, err = Decode(v, e.RemoteRef.DecodingStrategy)
	}
	var kvs []KeyValue
	if err == nil {
		kvs = []KeyValue{{Key: e.SecretKey, Value: v}}
		err = r.fill(f, kvs)
	}
	r.take(kvs)
	if err == nil || (e.Optional && provider.IsNotFound(err)) {
		return
	}
	r.fail(ref, nameOf(e.RemoteRef), err)
}

// many fills the keys of an entry that yields many.
func (r *renderer) many(f field, ref *v1alpha1.StoreRef, e v1alpha1.DataFromEntry) {
	kvs, err := r.readMany(f, ref, e)
	r.take(kvs)
	if err == nil {
		kvs, err = rewrite(kvs, e.Rewrite, f.String(), r.budget, r.work)
	}
	if err == nil {
		kvs, err = shapeOf(e).apply(kvs, f)
	}
	if err == nil {
		err = r.fill(f, kvs)
	}
	switch g := generatorOf(e); {
	case err == nil:
	case g != nil:
		r.fail(g, f.String(), err)
	case e.Extract != nil:
		r.fail(ref, nameOf(*e.Extract), err)
	default:
		r.fail(ref, nameOfSearch(f.at(".find").String(), searchOf(*e.Find)), err)
	}
}

// take keeps what an entry takes out, by key.
func (r *renderer) take(kvs []KeyValue) {
	if r.keep {
		r.taken = append(r.taken, slices.SortedStableFunc(slices.Values(kvs), func(a, b KeyValue) int { return cmp.Compare(a.Key, b.Key) }))
	}
}

// fill puts in what an entry yields.
func (r *renderer) fill(f field, kvs []KeyValue) error {
	for _, kv := range kvs {
		if old, twice := r.data[kv.Key]; twice {
			r.size -= len(kv.Key) + len(old)
		}
		if r.size += len(kv.Key) + len(kv.Value); r.size > maxHeld {
			return provider.NewError(provider.Invalid, "%s: with it the values are more than %d MiB in all; read fewer or smaller secrets", f, maxHeld>>20)
		}
		r.data[kv.Key] = kv.Value
	}
	return nil
}

// shape is what is done to the keys and values of an entry.
type shape struct{ conversion, decoding string }

func shapeOf(e v1alpha1.DataFromEntry) shape {
	if generatorOf(e) != nil {
		return shape{}
	}
	if e.Extract != nil {
		return shape{e.Extract.ConversionStrategy, e.Extract.DecodingStrategy}
	}
	return shape{e.Find.ConversionStrategy, e.Find.DecodingStrategy}
}

func (s shape) apply(kvs []KeyValue, f field) ([]KeyValue, error) {
	out := make([]KeyValue, len(kvs))
	for i, kv := range kvs {
		k := ConvertKey(kv.Key, s.conversion)
		if len(validation.IsConfigMapKey(k)) > 0 {
			return nil, provider.NewError(provider.Invalid, "%s: the remote key %.64q cannot be a key of a Secret", f, kv.Key)
		}
		v, err := Decode(kv.Value, s.decoding)
		if err != nil {
			return nil, provider.NewError(provider.Invalid, "%s: the remote key %.64q: %s", f, kv.Key, provider.Safe(err).Message)
		}
		out[i] = KeyValue{Key: k, Value: v}
	}
	return out, unique(kvs, out, f.String())
}

// readMany returns the keys and values of an entry as the provider has them.
func (r *renderer) readMany(f field, ref *v1alpha1.StoreRef, e v1alpha1.DataFromEntry) ([]KeyValue, error) {
	if g := generatorOf(e); g != nil {
		a := r.values(generatedBy(*g))
		if provider.IsNotFound(a.Err) {
			return nil, provider.NewError(provider.Unavailable, "its values could not be read")
		}
		return inOrder(a.Found), a.Err
	}
	if e.Extract != nil {
		f = f.at(".extract")
		v, err := r.read(f, ref, *e.Extract)
		if err == nil && !r.work.Spend(jsonSteps(len(v))) {
			err = in(f.String(), errWork)
		}
		if err != nil {
			return nil, err
		}
		return Extract(v)
	}
	a := r.values(Source{Store: *ref, Read: provider.Read{Search: searchOf(*e.Find)}})
	switch {
	case provider.IsNotFound(a.Err):
		// A list tells what there is by being complete; this says nothing of single secrets.
		return nil, provider.NewError(provider.Unavailable, "the list of secrets could not be read: %s", provider.Safe(a.Err).Message)
	case a.Err != nil:
		return nil, a.Err
	case len(a.Found) == 0:
		return nil, provider.NewError(provider.NotFound, "no secret matches")
	}
	return inOrder(a.Found), nil
}

// inOrder returns what was found, in the order of the keys.
func inOrder(found []provider.Value) []KeyValue {
	kvs := make([]KeyValue, len(found))
	for i, v := range sorted(found) {
		kvs[i] = KeyValue{Key: v.Key, Value: v.Data}
	}
	return kvs
}

// read returns what the remoteRef of a field asks for.
func (r *renderer) read(f field, ref *v1alpha1.StoreRef, rr v1alpha1.RemoteRef) ([]byte, error) {
	s := sourceAt(ref, rr)
	a := r.values(s)
	if a.Err != nil {
		return nil, a.Err
	}
	data := a.Value.Data
	if s.Ref.Metadata {
		if a.Value.Metadata == nil { // No answer is not the answer that there are none.
			return nil, provider.NewError(provider.Invalid, "%s: metadataPolicy is Fetch, and the provider tells no metadata; remove it", f)
		}
		var err error
		if data, err = Marshal(a.Value.Metadata); err != nil {
			return nil, provider.NewError(provider.Invalid, "%s: the metadata cannot be written as JSON", f)
		}
	}
	if n := len(data); n > corev1.MaxSecretSize {
		return nil, provider.NewError(provider.Invalid, "its value is %d bytes, and a Secret holds at most %d", n, corev1.MaxSecretSize)
	}
	if rr.Property == "" {
		return data, nil
	}
	v, err := r.property(s, data, rr.Property)
	if err != nil {
		return nil, in(f.at(".property").String(), err)
	}
	return v, nil
}

func (r *renderer) property(s Source, data []byte, property string) ([]byte, error) {
	d := r.parsed[s]
	if !d.parsed {
		if !r.work.Spend(jsonSteps(len(data))) {
			return nil, errWork
		}
		d.parse(data)
	}
	return d.property(property, r.work)
}

func sourceAt(ref *v1alpha1.StoreRef, rr v1alpha1.RemoteRef) Source {
	return Source{Store: *ref, Read: provider.Read{Ref: RefOf(rr)}}
}

// nameOf names what a remoteRef reads.
func nameOf(rr v1alpha1.RemoteRef) string {
	what := fmt.Sprintf("%q", rr.Key)
	if rr.Version != "" {
		what += fmt.Sprintf(" version %q", rr.Version)
	}
	return what
}

// nameOfSearch names the field of a search, and what it selects by, as far as that is short.
func nameOfSearch(f string, s provider.Search) string {
	var by []string
	if s.Path != "" {
		by = append(by, fmt.Sprintf("path %.64q", s.Path))
	}
	if s.Name != "" {
		by = append(by, fmt.Sprintf("name %.64q", s.Name))
	}
	if s.Tags != "" {
		by = append(by, fmt.Sprintf("tags %.64s", s.Tags))
	}
	return fmt.Sprintf("%s (%s)", f, strings.Join(by, ", "))
}

func (r *renderer) fail(ref *v1alpha1.StoreRef, what string, err error) {
	e := unread(ref, what, err)
	if e.Class == provider.NotFound {
		r.gone = append(r.gone, e)
		return
	}
	r.errs = append(r.errs, e)
}

// unread returns the error of a read; its message names what was read and the store.
func unread(ref *v1alpha1.StoreRef, what string, err error) *provider.Error {
	safe := provider.Safe(err)
	return &provider.Error{
		Class:      safe.Class,
		Message:    fmt.Sprintf("%s in %s %q: %s", what, ref.Kind, ref.Name, safe.Message),
		RetryAfter: safe.RetryAfter,
	}
}

// Failure returns the first error among the answers to sources, as Read would tell it; nil if all can be used.
// What definitely does not exist is no failure.
func Failure(sources []Source, values Values) error {
	var errs []*provider.Error
	for _, s := range sources {
		err := values(s).Err
		switch {
		case err == nil, provider.IsNotFound(err):
		case s.Search != provider.Search{}:
			errs = append(errs, unread(&s.Store, nameOfSearch("find", s.Search), err))
		default:
			errs = append(errs, unread(&s.Store, nameOf(v1alpha1.RemoteRef{Key: s.Ref.Key, Version: s.Ref.Version}), err))
		}
	}
	if err := verdict(errs, 0); err != nil {
		return err
	}
	return nil
}

// Required reports whether the object is not in step without what a source reads: some entry takes it that is
// not optional.
func Required(es *v1alpha1.ExternalSecret, s Source) bool {
	return slices.ContainsFunc(es.Spec.Data, func(e v1alpha1.DataEntry) bool {
		ref := storeOfData(es, e)
		return !e.Optional && ref != nil && sourceAt(ref, e.RemoteRef) == s
	}) || slices.ContainsFunc(es.Spec.DataFrom, func(e v1alpha1.DataFromEntry) bool {
		ref := storeOfDataFrom(es, e)
		switch {
		case ref == nil:
			return false
		case e.Find != nil:
			return Source{Store: *ref, Read: provider.Read{Search: searchOf(*e.Find)}} == s
		}
		return e.Extract != nil && sourceAt(ref, *e.Extract) == s
	})
}

// verdict returns the first of several errors, which says how many more there are, others included;
// nil if there is none.
func verdict(errs []*provider.Error, others int) *provider.Error {
	if len(errs) == 0 {
		return nil
	}
	first := errs[0]
	if more := len(errs) - 1 + others; more > 0 {
		first.Message += fmt.Sprintf(" (and %d more)", more)
	}
	return first
}
