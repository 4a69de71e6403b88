package render

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/store"
)

// Output is what a Secret shall hold.
type Output struct {
	// Data by key.
	Data map[string][]byte
	// Sources that were read, for the status.
	Sources []v1alpha1.SourceStatus
	// Gone reports what the spec names, without calling it optional, and the provider says does not
	// exist; nil if there is nothing of that. Data is then what is left.
	Gone *store.Error
}

// Values returns the result of a read.
type Values func(Source) store.Result

// Render returns the Secret's keys and values. If any value could not be read or is unfit, nothing
// is returned but the error, a *store.Error whose message begins with its class and names the key
// and the store: a Secret is never half-filled. What definitely does not exist is no such error; the
// policies decide about it.
func Render(es *v1alpha1.ExternalSecret, p Plan, values Values) (Output, error) {
	r := &renderer{values: values, data: map[string][]byte{}}
	for i, e := range es.Spec.DataFrom {
		r.extract(fmt.Sprintf("spec.dataFrom[%d]", i), storeOfDataFrom(es, e), *e.Extract)
	}
	for _, e := range es.Spec.Data {
		r.single(storeOfData(es, e), e)
	}
	if err := verdict(r.errs, len(r.gone)); err != nil {
		return Output{}, err
	}
	out := Output{Data: r.data, Gone: verdict(r.gone, 0)}
	size := 0
	for _, v := range r.data {
		size += len(v)
	}
	if size > corev1.MaxSecretSize {
		return Output{}, store.NewError(store.Invalid, "Invalid: the values of Secret %q are %d bytes in all, and a Secret holds at most %d; read fewer or smaller values", p.Target, size, corev1.MaxSecretSize)
	}
	for _, s := range p.Sources {
		if res := values(s); res.Err == nil {
			out.Sources = append(out.Sources, v1alpha1.SourceStatus{Key: s.Ref.Key, Version: res.Value.Version})
		}
	}
	return out, nil
}

type renderer struct {
	values Values
	data   map[string][]byte
	// errs are failures; gone is what does not exist.
	errs, gone []*store.Error
}

func (r *renderer) single(ref *v1alpha1.StoreRef, e v1alpha1.DataEntry) {
	v, err := r.read(ref, e.RemoteRef)
	if err == nil {
		r.data[e.SecretKey] = v
		return
	}
	if e.Optional && store.IsNotFound(err) {
		return
	}
	r.fail(ref, e.RemoteRef, err)
}

func (r *renderer) extract(field string, ref *v1alpha1.StoreRef, rr v1alpha1.RemoteRef) {
	v, err := r.read(ref, rr)
	if err != nil {
		r.fail(ref, rr, err)
		return
	}
	keys, err := Extract(v)
	if err != nil {
		r.fail(ref, rr, err)
		return
	}
	from := map[string]string{}
	for _, kv := range keys {
		k := ConvertKey(kv.Key)
		if other, twice := from[k]; twice {
			r.fail(ref, rr, store.NewError(store.Invalid, "%s: the remote keys %.64q and %.64q both become the Secret key %.64q", field, other, kv.Key, k))
			return
		}
		if len(validation.IsConfigMapKey(k)) > 0 {
			r.fail(ref, rr, store.NewError(store.Invalid, "%s: the remote key %.64q cannot be a key of a Secret", field, kv.Key))
			return
		}
		from[k] = kv.Key
		r.data[k] = kv.Value
	}
}

func (r *renderer) read(ref *v1alpha1.StoreRef, rr v1alpha1.RemoteRef) ([]byte, error) {
	res := r.values(Source{Store: *ref, Ref: RefOf(rr)})
	if res.Err != nil {
		return nil, res.Err
	}
	if n := len(res.Value.Data); n > corev1.MaxSecretSize {
		return nil, store.NewError(store.Invalid, "its value is %d bytes, and a Secret holds at most %d", n, corev1.MaxSecretSize)
	}
	if rr.Property == "" {
		return res.Value.Data, nil
	}
	return Property(res.Value.Data, rr.Property)
}

func (r *renderer) fail(ref *v1alpha1.StoreRef, rr v1alpha1.RemoteRef, err error) {
	safe := store.Safe(err)
	what := fmt.Sprintf("%q", rr.Key)
	if rr.Version != "" {
		what += fmt.Sprintf(" version %q", rr.Version)
	}
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
