// Package provider is the contract between the controllers of direct-secrets and the code of a provider. For a store,
// a provider implements Connector and Client, and the optional interfaces that its service supports: Batcher, Finder,
// Writer, Checker, Identifier, Namer, io.Closer. For a generator it implements GeneratorConnector and Generator, and
// optionally Renewer, Cleaner, Checker, io.Closer. The functions of this package find the optional interfaces by type
// assertion. Nothing here writes to Kubernetes.
package provider

import (
	"context"
	"encoding/json"
	"iter"
	"regexp"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/pattern"
)

// An Object is a StoreObject, a GeneratorObject or an EventSourceObject.
type Object interface {
	client.Object

	// StoreStatus returns the embedded status, which the caller can change.
	StoreStatus() *v1alpha1.StoreStatus
}

// A StoreObject is an Object of a store Kind: it embeds StoreSpec and StoreStatus.
type StoreObject interface {
	Object

	// StoreSpec returns the embedded spec, which the caller can change.
	StoreSpec() *v1alpha1.StoreSpec
}

// SourceSpec returns the common part of the specs of stores, generators and event sources, which the caller can change.
func SourceSpec(o Object) *v1alpha1.SourceSpec {
	switch o := o.(type) {
	case GeneratorObject:
		return &o.GeneratorSpec().SourceSpec
	case EventSourceObject:
		return &o.EventSourceSpec().SourceSpec
	}
	return &o.(StoreObject).StoreSpec().SourceSpec
}

// A ClusterObject is an Object of a cluster Kind: it also embeds ClusterStoreSpec or ClusterGeneratorSpec.
type ClusterObject interface {
	Object

	// ClusterStoreSpec returns the embedded spec. A generator returns that of AsStore.
	ClusterStoreSpec() *v1alpha1.ClusterStoreSpec
}

// A ClusterStoreObject is a StoreObject of a cluster Kind.
type ClusterStoreObject interface {
	StoreObject
	ClusterObject
}

// A Connector creates the Client of a store of one Kind. It must not keep ctx after its return, and not creds either,
// unless the Client needs fresh credentials later. It does not need to call the provider: Checker does that. Errors
// should be those of this package; any other error counts as Unavailable.
type Connector[S StoreObject] func(ctx context.Context, s S, creds Credentials) (Client, error)

// Credentials read the objects that a store's auth refers to. They are limited: a namespaced store reads only in its
// own namespace. Providers have no other access to Kubernetes.
type Credentials interface {
	// SecretValue returns the bytes of one key of a Secret. From then on the operator watches the Secret, and
	// connects again when it changes. Errors of class Invalid name the reference.
	SecretValue(ctx context.Context, sel v1alpha1.SecretKeySelector) ([]byte, error)

	// ConfigMapValue is SecretValue for values that are not secret, such as the certificates of an authority.
	ConfigMapValue(ctx context.Context, sel v1alpha1.ConfigMapKeySelector) ([]byte, error)

	// ServiceAccountToken returns a new token of a ServiceAccount for the given audiences, or for those of the
	// selector if none are given.
	ServiceAccountToken(ctx context.Context, sel v1alpha1.ServiceAccountSelector, audiences ...string) (string, error)

	// Ambient returns nil if the store can use the operator's own cloud identity, and otherwise an error of class
	// Invalid with the fix. A provider must call it for a store without auth.
	Ambient() error
}

// A Client reads one store. It must be safe for concurrent use, and must not change anything at the provider.
type Client interface {
	// Get returns a secret as raw bytes: it extracts no property and decodes nothing. It returns NotFound only if the
	// provider definitely says that the secret or version does not exist.
	Get(ctx context.Context, ref Ref) (Value, error)
}

// A Batcher is a Client that reads many secrets in one call.
type Batcher interface {
	Client

	// GetBatch returns one result for each of refs, in their order. The error of one entry must not affect the
	// others. A missing entry in the provider's answer is an Unavailable error of that entry, never NotFound. It is
	// called with at most BatchSize refs without duplicates.
	GetBatch(ctx context.Context, refs []Ref) []Result

	// BatchSize is the number of secrets that one call to the provider can read.
	BatchSize() int
}

// A Finder is a Client that lists secrets.
type Finder interface {
	Client

	// Find yields every matching secret with its value. After an error it yields nothing more, and the caller must
	// ignore all results, because the list is incomplete.
	Find(ctx context.Context, q Query) iter.Seq2[Value, error]
}

// A Checker is a Client or Generator that can check whether it works.
type Checker interface {
	// Check makes the cheapest call that proves address and credentials. Denied means that the login failed, not that
	// a permission for single secrets is missing. Warnings mean that it works, with these problems.
	Check(ctx context.Context) error
}

// A Ref names one remote secret. It is comparable: equal refs of a store are one read.
type Ref struct {
	// Key is the provider's key; never empty.
	Key string
	// Version is the provider's version; empty for the current one.
	Version string
	// Metadata also reads the secret's metadata, for example its tags.
	Metadata bool
}

// A Value is the provider's value for a Ref.
type Value struct {
	// Key is the provider's key.
	Key string
	// Data are the raw bytes.
	Data []byte
	// Binary are properties that are not a part of Data, which is a JSON object, because they are not text.
	Binary map[string][]byte
	// Further are properties that neither the value as a whole nor an extract has, such as other names of its properties. None
	// has the name of a property in Data or Binary.
	Further map[string]Further
	// Version is the provider's version of the value.
	Version string
	// Metadata is, for example, the tags. It is only set if the Ref asks for it.
	Metadata map[string]string
}

// Size returns the number of bytes of the data.
func (v Value) Size() int {
	n := len(v.Data)
	for _, b := range v.Binary {
		n += len(b)
	}
	for _, f := range v.Further {
		n += len(f.Data)
	}
	return n
}

// A Further is a property that is read only by its name.
type Further struct {
	// Data are the raw bytes.
	Data []byte `json:"data,omitempty"`
	// Refused is why the property cannot be read, and what to do, as the end of a sentence; empty if it can be read. The secret
	// can then not be read as a whole or be extracted, because the result would lack the property, or have it by another name.
	Refused string `json:"refused,omitempty"`
}

// A Result is a Value or an error.
type Result struct {
	Value Value
	Err   error
}

// A Query selects secrets. A secret must match all fields that are set.
type Query struct {
	// Path is a prefix of the key.
	Path string
	// Name matches any part of the key.
	Name *regexp.Regexp
	// Tags are those that a secret must have.
	Tags map[string]string
}

// A Search is a Query in comparable form: equal searches of a store are one read. The zero Search is no search.
type Search struct {
	Path string
	// Name is the regular expression of Query.Name.
	Name string
	// Tags are the pairs of Query.Tags as a JSON object.
	Tags string
}

// NewSearch returns the Search for the fields of a spec.
func NewSearch(path, name string, tags map[string]string) Search {
	s := Search{Path: path, Name: name}
	if len(tags) > 0 {
		if b, err := json.Marshal(tags); err == nil { // Strings can always be encoded, and keys are sorted.
			s.Tags = string(b)
		}
	}
	return s
}

// Query returns the Query of a Search, or an error of class Invalid if Name is not a valid regular expression.
func (s Search) Query() (Query, error) {
	q := Query{Path: s.Path}
	if s.Name != "" {
		re, err := pattern.Compile(s.Name)
		if err != nil {
			return Query{}, NewError(Invalid, "find: name.regexp: %s", err)
		}
		q.Name = re
	}
	if s.Tags != "" {
		if err := json.Unmarshal([]byte(s.Tags), &q.Tags); err != nil {
			return Query{}, NewError(Invalid, "find: the tags are not valid")
		}
	}
	return q, nil
}

// A Read is one request to a store: for one secret, or for all that match a Search. It is comparable.
type Read struct {
	Ref    Ref
	Search Search
}

// An Answer is a store's answer to a Read: Value for a Ref, Found for a Search, or an error.
type Answer struct {
	Value Value
	Found []Value
	Err   error
}
