package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// canary is a part of every value that the suite stores. No error can contain it.
const canary = "c4n4ry"

// readable is the maximum length, in bytes, up to which two values are shown in an error.
const readable = 1 << 10

// env is the environment of one check.
type env struct {
	h      Harness
	name   string
	client provider.Client
	// linked is the Writer of the client as operators use it; nil if it is none.
	linked provider.Writer
	puts   map[string]bool
}

func newEnv(h Harness, name string, c provider.Client) *env {
	e := &env{h: h, name: name, client: c}
	if _, ok := c.(provider.Writer); ok {
		e.linked = fake.Writer(c)
	}
	return e
}

// key returns the key of a name for this check.
func (e *env) key(leaf string) string { return e.h.Key(e.dir() + "/" + leaf) }

func (e *env) dir() string { return strings.ReplaceAll(e.name, "/", "-") }

// put stores the value of a leaf, and returns its key.
func (e *env) put(ctx context.Context, leaf string) (string, error) {
	return e.key(leaf), e.write(ctx, e.key(leaf), value(leaf), nil)
}

// putAll stores the values of leaves, and returns their refs in the same order.
func (e *env) putAll(ctx context.Context, leaves ...string) ([]provider.Ref, error) {
	var refs []provider.Ref
	for _, leaf := range leaves {
		key, err := e.put(ctx, leaf)
		if err != nil {
			return nil, err
		}
		refs = append(refs, provider.Ref{Key: key})
	}
	return refs, nil
}

func (e *env) write(ctx context.Context, key string, data []byte, tags map[string]string) error {
	if e.puts == nil {
		e.puts = map[string]bool{}
	}
	e.puts[key] = true
	return errors.Wrapf(e.h.Put(ctx, key, data, tags), "harness: cannot put %q", key)
}

func (e *env) delete(ctx context.Context, key string) error {
	delete(e.puts, key)
	return errors.Wrapf(e.h.Delete(ctx, key), "harness: cannot delete %q", key)
}

func (e *env) cleanUp(ctx context.Context) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(e.puts)) {
		errs = append(errs, e.delete(ctx, key))
	}
	return errors.Join(errs...)
}

// under runs a function while the provider fails.
func (e *env) under(f Fault, run func() error) error {
	remove, err := e.h.Inject(f)
	if err != nil {
		return errors.Wrapf(err, "harness: cannot inject %+v", f)
	}
	defer remove()
	return errors.Wrapf(run(), "while %s %s", f.Failure, f.Key)
}

// value returns the value of a leaf: a JSON object, which every provider accepts.
func value(leaf string) []byte { return fmt.Appendf(nil, `{"%s":%q}`, canary, leaf) }

// leaves returns n names in alphabetical order.
func leaves(stem string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%04d", stem, i)
	}
	return names
}

// get reads twice, and overwrites the first answer in between. Both answers must be equal.
func (e *env) get(ctx context.Context, ref provider.Ref) (provider.Value, error) {
	first, err := e.client.Get(ctx, ref)
	kept := clone(first)
	overwrite(first)
	second, again := e.client.Get(ctx, ref)
	if err := sameTwice(provider.Result{Value: kept, Err: err}, provider.Result{Value: second, Err: again}); err != nil {
		return provider.Value{}, errors.Wrapf(err, "Get %+v twice", ref)
	}
	return second, again
}

// wants reads ref and compares the value.
func (e *env) wants(ctx context.Context, ref provider.Ref, data []byte) error {
	v, err := e.get(ctx, ref)
	if err != nil {
		return errors.Wrapf(err, "Get %+v", ref)
	}
	return e.same(ref, data, v)
}

// same compares a value with the data that was stored under ref.
func (e *env) same(ref provider.Ref, data []byte, got provider.Value) error {
	if e.h.JSONOnly {
		data, got.Data = normal(data), normal(got.Data)
	}
	switch {
	case got.Key != ref.Key:
		return errors.Errorf("%+v: the value has key %q", ref, got.Key)
	case got.Version == "":
		return errors.Errorf("%+v: the value has no version", ref)
	case ref.Version != "" && got.Version != ref.Version:
		return errors.Errorf("%+v: the value has version %q", ref, got.Version)
	case bytes.Equal(data, got.Data):
		return nil
	case max(len(data), len(got.Data)) > readable:
		return errors.Errorf("%+v: another value: %d bytes, want %d", ref, len(got.Data), len(data))
	}
	return errors.Errorf("%+v: another value: -want, +got:\n%s", ref, cmp.Diff(data, got.Data))
}

// fails reads ref, which must fail with an error of a class.
func (e *env) fails(ctx context.Context, ref provider.Ref, c provider.Class) error {
	_, err := e.get(ctx, ref)
	return errors.Wrapf(hasClass(err, c), "Get %+v", ref)
}

// hasClass returns an error if err is not a valid error of a class.
func hasClass(err error, c provider.Class) error {
	if err == nil {
		return errors.Errorf("no error, want one of class %s", c)
	}
	if got := provider.ClassOf(err); got != c {
		return errors.Errorf("error of class %s, want %s: %v", got, c, err)
	}
	return holdsNoValue(err)
}

// notAnswered returns an error if err is not a valid error of a call without an answer, such as after the end of a
// context.
func notAnswered(err error) error {
	if err == nil {
		return errors.New("no error although there was no answer")
	}
	if got := provider.ClassOf(err); got != provider.Unavailable {
		return errors.Errorf("error of class %s although there was no answer, want %s: %v", got, provider.Unavailable, err)
	}
	return holdsNoValue(err)
}

func holdsNoValue(err error) error {
	if strings.Contains(provider.Safe(err).Error(), canary) {
		return errors.New("the error shows a value")
	}
	return nil
}

// endings are the ways in which a context can end during a call that hangs.
var endings = map[string]func(context.Context) (context.Context, context.CancelFunc){
	"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 50*time.Millisecond)
	},
	"cancelled": func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		t := time.AfterFunc(50*time.Millisecond, cancel)
		return ctx, func() { t.Stop(); cancel() }
	},
	"cancelled before": func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, cancel
	},
}

// givesUp makes a call that hangs, once for each way in which its context can end.
func (e *env) givesUp(ctx context.Context, call func(ctx context.Context) error) error {
	return e.under(Fault{Failure: Hang}, func() error {
		var errs []error
		for _, name := range slices.Sorted(maps.Keys(endings)) {
			errs = append(errs, errors.Wrap(e.ends(ctx, name, call), name))
		}
		return errors.Join(errs...)
	})
}

func (e *env) ends(ctx context.Context, ending string, call func(ctx context.Context) error) error {
	ctx, cancel := endings[ending](ctx)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- call(ctx) }()
	<-ctx.Done()
	t := time.NewTimer(e.h.EndTimeout)
	defer t.Stop()
	select {
	case err := <-answer:
		return notAnswered(err)
	case <-t.C:
		return errors.Errorf("the call continues %s after its context has ended", e.h.EndTimeout)
	}
}

// sameTwice compares the answers to a call that was made twice.
func sameTwice(first, second provider.Result) error {
	if (first.Err == nil) != (second.Err == nil) || first.Err != nil && provider.ClassOf(first.Err) != provider.ClassOf(second.Err) {
		return errors.Errorf("first %v, then %v", first.Err, second.Err)
	}
	if first.Err != nil {
		return nil
	}
	if !bytes.Equal(first.Value.Data, second.Value.Data) {
		return errors.New("the second answer has other data")
	}
	first.Value.Data, second.Value.Data = nil, nil
	if diff := cmp.Diff(first.Value, second.Value, cmpopts.EquateEmpty()); diff != "" {
		return errors.Errorf("-first, +second:\n%s", diff)
	}
	return nil
}

func clone(v provider.Value) provider.Value {
	v.Data = bytes.Clone(v.Data)
	v.Metadata = maps.Clone(v.Metadata)
	return v
}

// overwrite overwrites a value, like a careless caller.
func overwrite(v provider.Value) {
	for i := range v.Data {
		v.Data[i] = '#'
	}
	clear(v.Metadata)
}

// normal returns JSON in one format, or the bytes if they are not JSON.
func normal(data []byte) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return data
	}
	out, err := json.Marshal(v)
	if err != nil {
		return data
	}
	return out
}
