// Package provider is the contract between the controllers of direct-secrets and the code of a provider. For a store, a
// provider implements Connector and Client, and those of the optional interfaces (Batcher, Finder, Writer, Checker, Identifier,
// io.Closer) that its service offers; for a generator, GeneratorConnector and Generator (Renewer, Cleaner, Checker,
// io.Closer). The functions of this package find them by type assertion. Nothing here writes to Kubernetes.
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

// An Object is a StoreObject or a GeneratorObject.
type Object interface {
	client.Object

	// StoreStatus returns the embedded status; changes to it show in the object.
	StoreStatus() *v1alpha1.StoreStatus
}

// A StoreObject is an Object of a store Kind: it embeds StoreSpec and StoreStatus.
type StoreObject interface {
	Object

	// StoreSpec returns the embedded spec; changes to it show in the object.
	StoreSpec() *v1alpha1.StoreSpec
}

// SourceSpec returns what the specs of stores and generators have in common; changes to it show in the object.
func SourceSpec(o Object) *v1alpha1.SourceSpec {
	if g, ok := o.(GeneratorObject); ok {
		return &g.GeneratorSpec().SourceSpec
	}
	return &o.(StoreObject).StoreSpec().SourceSpec
}

// A ClusterObject is an Object of a cluster Kind: it also embeds ClusterStoreSpec or ClusterGeneratorSpec.
type ClusterObject interface {
	Object

	// ClusterStoreSpec returns the embedded spec, that of a generator by AsStore.
	ClusterStoreSpec() *v1alpha1.ClusterStoreSpec
}

// A ClusterStoreObject is a StoreObject of a cluster Kind.
type ClusterStoreObject interface {
	StoreObject
	ClusterObject
}

// A Connector makes the Client of a store of one Kind. It must not keep ctx, nor creds after it returned,
// unless the client itself needs fresh credentials later. It need not reach the provider: Checker does that.
// Errors are those of this package; anything else counts as Unavailable.
type Connector[S StoreObject] func(ctx context.Context, s S, creds Credentials) (Client, error)

// Credentials read what a store's auth refers to. They are fenced: a namespaced store reaches
// nothing outside its namespace. Providers get no other way into Kubernetes.
type Credentials interface {
	// SecretValue returns the bytes of one key of a Secret. The operator watches the Secret from
	// then on, and connects anew when it changes. Errors are of class Invalid and name the
	// reference.
	SecretValue(ctx context.Context, sel v1alpha1.SecretKeySelector) ([]byte, error)

	// ConfigMapValue is SecretValue for what is no secret, such as the certificates of an authority.
	ConfigMapValue(ctx context.Context, sel v1alpha1.ConfigMapKeySelector) ([]byte, error)

	// ServiceAccountToken returns a fresh token of a ServiceAccount for the audiences given, or
	// for those that the selector names.
	ServiceAccountToken(ctx context.Context, sel v1alpha1.ServiceAccountSelector, audiences ...string) (string, error)

	// Ambient returns nil if the store may use the operator's own cloud identity, and an error of
	// class Invalid that says what to do otherwise. A store without auth must ask.
	Ambient() error
}

// A Client reads one store. It must be safe for concurrent use, and must not change anything at
// the provider.
type Client interface {
	// Get returns a secret as it is: raw bytes, no property taken out, nothing decoded. It returns
	// NotFound only if the provider says definitely that the secret or version does not exist.
	Get(ctx context.Context, ref Ref) (Value, error)
}

// A Batcher is a Client that reads many secrets in one call.
type Batcher interface {
	Client

	// GetBatch returns one result for each of refs, in their order. An entry that fails must not
	// fail the others; an answer that lacks an entry is an Unavailable error of that entry, never
	// NotFound. It is called with at most BatchSize refs without duplicates.
	GetBatch(ctx context.Context, refs []Ref) []Result

	// BatchSize is the number of secrets that one call to the provider can read.
	BatchSize() int
}

// A Finder is a Client that lists secrets.
type Finder interface {
	Client

	// Find yields every secret that matches, with its value. After an error it yields nothing
	// more; a caller must then use none of what it got, because the list is not complete.
	Find(ctx context.Context, q Query) iter.Seq2[Value, error]
}

// A Checker is a Client or Generator that can tell whether it works.
type Checker interface {
	// Check calls the provider in the cheapest way that proves address and credentials. Denied
	// means that the login failed, not that a permission for single secrets is missing; Warnings
	// that all is well but for what they say.
	Check(ctx context.Context) error
}

// A Ref names one remote secret. It is comparable: equal refs of a store are one read.
type Ref struct {
	// Key as the provider spells it; never empty.
	Key string
	// Version in the provider's terms; empty means the current one.
	Version string
	// Metadata asks for the secret's metadata (for example its tags), too.
	Metadata bool
}

// A Value is what a provider holds under a Ref.
type Value struct {
	// Key as the provider spells it.
	Key string
	// Data are the raw bytes.
	Data []byte
	// Version that was read, in the provider's terms.
	Version string
	// Metadata such as tags, where it was asked for.
	Metadata map[string]string
}

// A Result is a Value or an error.
type Result struct {
	Value Value
	Err   error
}

// A Query selects secrets; all that is set must match.
type Query struct {
	// Path is a prefix of the key, in the provider's terms.
	Path string
	// Name matches any part of the key.
	Name *regexp.Regexp
	// Tags that a secret must carry.
	Tags map[string]string
}

// A Search is a Query in a form that can be compared: equal searches of a store are one read. The
// zero Search is none.
type Search struct {
	Path string
	// Name is the regular expression of Query.Name.
	Name string
	// Tags are the pairs of Query.Tags as a JSON object.
	Tags string
}

// NewSearch returns the Search for what a spec asks for.
func NewSearch(path, name string, tags map[string]string) Search {
	s := Search{Path: path, Name: name}
	if len(tags) > 0 {
		if b, err := json.Marshal(tags); err == nil { // Strings always encode, and keys in order.
			s.Tags = string(b)
		}
	}
	return s
}

// Query returns what the Search asks for; an error of class Invalid if Name is no regular expression.
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
			return Query{}, NewError(Invalid, "find: the tags are not readable")
		}
	}
	return q, nil
}

// A Read is one thing to ask a store for: one secret, or all that a Search matches. It is comparable.
type Read struct {
	Ref    Ref
	Search Search
}

// An Answer is what a store says to a Read: Value for a Ref, Found for a Search, or an error.
type Answer struct {
	Value Value
	Found []Value
	Err   error
}
