// Package awstest sets up what the tests of every Kind of AWS need: an emulator, and a client of
// a store or generator that calls it.
package awstest

import (
	"context"
	"slices"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// Start starts an emulator that ends with the test.
func Start(t testing.TB, opts ...emulator.Option) *emulator.Server {
	t.Helper()
	srv, err := emulator.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// Denying is a user test who lacks some permissions.
func Denying(deny ...emulator.Deny) emulator.Option {
	return emulator.WithCredentials(emulator.Credential{AccessKeyID: "test", SecretAccessKey: "test", Deny: deny})
}

// Secrets are what the Secrets of a test hold, by key; the names do not matter.
type Secrets map[string]string

// SecretValue implements provider.Credentials.
func (s Secrets) SecretValue(_ context.Context, sel common.SecretKeySelector) ([]byte, error) {
	return []byte(s[sel.Key]), nil
}

// ConfigMapValue implements provider.Credentials: there is none.
func (Secrets) ConfigMapValue(context.Context, common.ConfigMapKeySelector) ([]byte, error) {
	return nil, errors.New("no ConfigMap")
}

// ServiceAccountToken implements provider.Credentials: there is none.
func (Secrets) ServiceAccountToken(context.Context, common.ServiceAccountSelector, ...string) (string, error) {
	return "", errors.New("no token")
}

// Ambient implements provider.Credentials: it is not allowed.
func (Secrets) Ambient() error { return provider.NewError(provider.Invalid, "auth is not set") }

// A Store is what a test may change of a store or generator before it connects.
type Store struct {
	*v1alpha1.AWSSpec

	Keys    *v1alpha1.KeySpec
	Secrets Secrets
}

// An Option changes a Store.
type Option func(*Store)

// WithKey logs in with an access key other than that of the user test.
func WithKey(id, key string) Option {
	return func(s *Store) { s.Secrets = Secrets{"id": id, "key": key} }
}

// WithPrefix sets spec.prefix.
func WithPrefix(p string) Option { return func(s *Store) { s.Keys.Prefix = p } }

// WithRegion sets spec.region.
func WithRegion(r string) Option { return func(s *Store) { s.Region = r } }

// WithRole works as a role.
func WithRole(arn string) Option { return func(s *Store) { s.Role = arn } }

// WithRetries sets how often a call is tried again; otherwise it is once.
func WithRetries(n int32) Option { return func(s *Store) { s.RetrySettings.MaxRetries = &n } }

// Connect fills an empty store or generator so that it calls the emulator at an endpoint, and connects to it.
func Connect[S awsconfig.Object, C any](t testing.TB, o S, connect func(context.Context, S, provider.Credentials) (C, error), endpoint string, opts ...Option) (C, error) {
	one := int32(1)
	s := Store{AWSSpec: o.AWS(), Secrets: Secrets{"id": "test", "key": "test"}}
	if keyed, ok := any(o).(awsconfig.StoreObject); ok {
		s.Keys = keyed.KeySpec()
	}
	o.SetNamespace("shop")
	o.SetName("prod")
	s.Region, s.Endpoint = "us-east-1", endpoint
	s.RetrySettings = &common.RetrySettings{MaxRetries: &one, RetryInterval: "1ms"}
	s.Auth = &v1alpha1.AWSAuth{SecretRef: &v1alpha1.AWSSecretRef{
		AccessKeyIDSecretRef:     common.SecretKeySelector{Name: "aws", Key: "id"},
		SecretAccessKeySecretRef: common.SecretKeySelector{Name: "aws", Key: "key"},
	}}
	for _, opt := range opts {
		opt(&s)
	}
	return connect(t.Context(), o, s.Secrets)
}

// Refs asks for the current versions of keys.
func Refs(keys ...string) (refs []provider.Ref) {
	for _, k := range keys {
		refs = append(refs, provider.Ref{Key: k})
	}
	return refs
}

// Outcome is a result in short: the value, or the class of the error.
func Outcome(r provider.Result) string {
	if r.Err != nil {
		return string(provider.ClassOf(r.Err))
	}
	return r.Value.Key + "=" + string(r.Value.Data)
}

// Outcomes are results in short.
func Outcomes(results []provider.Result) (all []string) {
	for _, r := range results {
		all = append(all, Outcome(r))
	}
	return all
}

// Found lists what a query yields, in short, sorted.
func Found(ctx context.Context, c provider.Finder, q provider.Query) (all []string, err error) {
	for v, err := range c.Find(ctx, q) {
		if err != nil {
			return all, err
		}
		all = append(all, Outcome(provider.Result{Value: v}))
	}
	slices.Sort(all)
	return all, nil
}

// Unfinished follows a query to its end. It returns how much comes behind the error that ends it, and
// that error.
func Unfinished(ctx context.Context, c provider.Finder, q provider.Query) (after int, last error) {
	for _, err := range c.Find(ctx, q) {
		if last != nil {
			after++
		}
		last = err
	}
	return after, last
}

// failures are the faults of the conformance suite.
var failures = map[conformance.Failure]emulator.Fault{
	conformance.Denied:      {Code: "AccessDeniedException", Message: "User is not authorized"},
	conformance.Throttled:   emulator.Throttled(),
	conformance.Unavailable: {Code: "InternalFailure"},
	// A call that hung must not be carried out in the end, when its caller is gone.
	conformance.Hang:    {Hang: true, Code: "InternalFailure"},
	conformance.Dropped: {Drop: true},
}

// Inject makes every call fail, or the reads of one secret: by itself, which is an operation, and
// within a batch.
func Inject(e *emulator.Emulator, operation string, f conformance.Fault) func() {
	call := failures[f.Failure]
	if f.Key == "" {
		return e.Inject(call)
	}
	call.SecretID = f.Key
	entry := call
	entry.Entry = true
	if f.Failure == conformance.Dropped {
		return e.Inject(entry)
	}
	call.Operation = operation
	removeCall, removeEntry := e.Inject(call), e.Inject(entry)
	return func() { removeCall(); removeEntry() }
}
