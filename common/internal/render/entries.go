package render

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	member "github.com/direct-secrets/direct-secrets/common/internal/property"
	"github.com/direct-secrets/direct-secrets/common/internal/render/template"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// renderer extracts the keys and values of the entries of one spec from the answers to its reads.
type renderer struct {
	values Values
	data   map[string][]byte
	// size is the size of data, in bytes.
	size int
	// keep is true if taken is used.
	keep  bool
	taken [][]KeyValue
	// parsed holds the sources of which entries take properties.
	parsed map[Source]*jsonValue
	// budget limits all templates of keys, work limits everything else.
	budget, work *template.Budget
	// errs are the failures, notFound the secrets and properties that do not exist.
	errs, notFound []*provider.Error
}

// ask registers the property that a remoteRef takes.
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

// A field is an entry of the spec, or a field of an entry. Its text is built only when it is needed.
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
	v, binary, err := r.read(f.at(".remoteRef"), ref, e.RemoteRef)
	if err == nil {
		err = allText(binary, "set property, or use dataFrom.extract")
	}
	if err == nil {
		v, err = shape{decoding: e.RemoteRef.DecodingStrategy, nulls: e.RemoteRef.NullBytePolicy}.value(v)
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

// many adds the keys of an entry that can have several.
func (r *renderer) many(f field, ref *v1alpha1.StoreRef, e v1alpha1.DataFromEntry) {
	kvs, err := r.readMany(f, ref, e)
	r.take(kvs)
	before := kvs
	if err == nil {
		kvs, err = rewrite(kvs, e.Rewrite, f.String(), r.budget, r.work)
	}
	if err == nil {
		kvs, err = shapeOf(e).apply(kvs, f, func(i int) string { return Former(before, kvs, e.Rewrite, i) })
	}
	if err == nil {
		err = r.fill(f, kvs)
	}
	switch g := generatorOf(e); {
	case err == nil, e.Optional && provider.IsNotFound(err):
	case g != nil:
		r.fail(g, f.String(), err)
	case e.Extract != nil:
		r.fail(ref, nameOf(*e.Extract), err)
	default:
		r.fail(ref, nameOfSearch(f.at(".find").String(), searchOf(*e.Find)), err)
	}
}

// take stores the keys and values of an entry, sorted by key.
func (r *renderer) take(kvs []KeyValue) {
	if r.keep {
		r.taken = append(r.taken, slices.SortedStableFunc(slices.Values(kvs), func(a, b KeyValue) int { return cmp.Compare(a.Key, b.Key) }))
	}
}

// fill adds the keys and values of an entry to the data.
func (r *renderer) fill(f field, kvs []KeyValue) error {
	for _, kv := range kvs {
		if old, twice := r.data[kv.Key]; twice {
			r.size -= len(kv.Key) + len(old)
		}
		if r.size += len(kv.Key) + len(kv.Value); r.size > maxHeld {
			return provider.NewError(provider.Invalid, "%s: with it, the values have more than %d MiB in total; read fewer or smaller secrets", f, maxHeld>>20)
		}
		r.data[kv.Key] = kv.Value
	}
	return nil
}

// shape is the conversion of the keys and the decoding of the values of an entry.
type shape struct{ conversion, decoding, nulls string }

func shapeOf(e v1alpha1.DataFromEntry) shape {
	if generatorOf(e) != nil {
		return shape{}
	}
	if e.Extract != nil {
		return shape{e.Extract.ConversionStrategy, e.Extract.DecodingStrategy, e.Extract.NullBytePolicy}
	}
	return shape{e.Find.ConversionStrategy, e.Find.DecodingStrategy, e.Find.NullBytePolicy}
}

// value decodes a value.
func (s shape) value(v []byte) ([]byte, error) {
	v, err := Decode(v, s.decoding)
	if err == nil && s.nulls == nullsFail && bytes.IndexByte(v, 0) >= 0 {
		return nil, provider.NewError(provider.Invalid, "its value has a null byte, which nullBytePolicy: Fail rejects; correct the value")
	}
	return v, err
}

// apply converts keys and decodes values. former returns the name of a key before it was rewritten, for messages.
func (s shape) apply(kvs []KeyValue, f field, former func(i int) string) ([]KeyValue, error) {
	out := make([]KeyValue, len(kvs))
	for i, kv := range kvs {
		k := ConvertKey(kv.Key, s.conversion)
		if len(validation.IsConfigMapKey(k)) > 0 {
			return nil, provider.NewError(provider.Invalid, "%s: the remote key %.64q%s cannot be a key of a Secret, which has 1 to 253 letters, digits, '-', '_' and '.'; correct or add a rewrite", f, kv.Key, former(i))
		}
		v, err := s.value(kv.Value)
		if err != nil {
			return nil, provider.NewError(provider.Invalid, "%s: the remote key %.64q: %s", f, kv.Key, provider.Safe(err).Message)
		}
		out[i] = KeyValue{Key: k, Value: v}
	}
	return out, unique(kvs, out, f.String())
}

// readMany returns the keys and values of an entry as the provider returned them.
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
		v, binary, err := r.read(f, ref, *e.Extract)
		if err == nil && !r.work.Spend(jsonSteps(len(v))) {
			err = in(f.String(), errWork)
		}
		if err != nil {
			return nil, err
		}
		kvs, err := Extract(v)
		for _, k := range slices.Sorted(maps.Keys(binary)) {
			kvs = append(kvs, KeyValue{Key: k, Value: binary[k]})
		}
		return kvs, err
	}
	a := r.values(Source{Store: *ref, Read: provider.Read{Search: searchOf(*e.Find)}})
	switch {
	case provider.IsNotFound(a.Err):
		// Only a complete list shows which secrets exist, so this error says nothing about single secrets.
		return nil, provider.NewError(provider.Unavailable, "the list of secrets could not be read: %s", provider.Safe(a.Err).Message)
	case a.Err != nil:
		return nil, a.Err
	case len(a.Found) == 0:
		return nil, provider.NewError(provider.NotFound, "no secret matches; correct the conditions, or create one")
	}
	for _, v := range a.Found {
		if err := cmp.Or(refusalOf(v.Further, ""), allText(v.Binary, "exclude it from find by name, path or tags, and read it with dataFrom.extract or property")); err != nil {
			return nil, provider.NewError(provider.Invalid, "secret %q: %s", v.Key, err)
		}
	}
	return inOrder(a.Found), nil
}

// bytesOf returns the property that is not text, by the same names as a member of a JSON object.
func bytesOf(binary map[string][]byte, property string) (v []byte, ok bool) {
	if v, ok = binary[property]; !ok && len(binary) > 0 {
		if names, query := member.Split(property); len(names) == 1 && !query {
			v, ok = binary[names[0].Text]
		}
	}
	return v, ok
}

// refusalOf returns an error if a property cannot be read. Without a property it is that of the first one that cannot.
func refusalOf(further map[string]provider.Further, property string) error {
	names := []string{property}
	if property == "" {
		names = slices.Sorted(maps.Keys(further))
	}
	for _, k := range names {
		if why := further[k].Refused; why != "" {
			return provider.NewError(provider.Invalid, "its property %.64q cannot be read: %s", k, why)
		}
	}
	return nil
}

// allText returns an error with a fix if a value as a whole lacks properties because they are not text.
func allText(binary map[string][]byte, fix string) error {
	for _, k := range slices.Sorted(maps.Keys(binary)) {
		return provider.NewError(provider.Invalid, "its property %.64q is not text, so the whole value cannot be written as JSON; %s", k, fix)
	}
	return nil
}

// inOrder returns the found keys and values, sorted by key.
func inOrder(found []provider.Value) []KeyValue {
	kvs := make([]KeyValue, len(found))
	for i, v := range sorted(found) {
		kvs[i] = KeyValue{Key: v.Key, Value: v.Data}
	}
	return kvs
}

// read returns the value for the remoteRef of a field, and the properties that are not a part of it because they are not text.
func (r *renderer) read(f field, ref *v1alpha1.StoreRef, rr v1alpha1.RemoteRef) ([]byte, map[string][]byte, error) {
	s := sourceAt(ref, rr)
	a := r.values(s)
	if a.Err != nil {
		return nil, nil, a.Err
	}
	data, binary := a.Value.Data, a.Value.Binary
	if s.Ref.Metadata {
		binary = nil
		if a.Value.Metadata == nil { // Without metadata in the answer, it is unknown whether there are any.
			return nil, nil, provider.NewError(provider.Invalid, "%s: metadataPolicy is Fetch, and the provider has no metadata; remove it", f)
		}
		var err error
		if data, err = Marshal(a.Value.Metadata); err != nil {
			return nil, nil, provider.NewError(provider.Invalid, "%s: the metadata cannot be written as JSON", f)
		}
	}
	if !s.Ref.Metadata {
		if err := refusalOf(a.Value.Further, rr.Property); err != nil {
			return nil, nil, err
		}
		if more, ok := a.Value.Further[rr.Property]; ok {
			return more.Data, nil, nil
		}
	}
	if v, ok := bytesOf(binary, rr.Property); ok {
		return v, nil, nil
	}
	if n := len(data); n > corev1.MaxSecretSize {
		return nil, nil, provider.NewError(provider.Invalid, "its value has %d bytes, and a Secret holds at most %d; store a smaller value", n, corev1.MaxSecretSize)
	}
	if rr.Property == "" {
		return data, binary, nil
	}
	v, err := r.property(s, data, rr.Property)
	if err != nil {
		return nil, nil, in(f.at(".property").String(), err)
	}
	return v, nil, nil
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

// sorted returns the found values, sorted by key, because the order of a provider can change.
func sorted(found []provider.Value) []provider.Value {
	return slices.SortedStableFunc(slices.Values(found), func(a, b provider.Value) int { return cmp.Compare(a.Key, b.Key) })
}
