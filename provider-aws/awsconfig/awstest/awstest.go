// Package awstest sets up the tests of every AWS Kind: an emulator, and a client of a store or generator that
// calls it.
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

// Start starts an emulator and stops it when the test ends.
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

// Denying creates the user "test" without some permissions.
func Denying(deny ...emulator.Deny) emulator.Option {
	return emulator.WithCredentials(emulator.Credential{AccessKeyID: "test", SecretAccessKey: "test", Deny: deny})
}

// Secrets are the values of the Secrets of a test, by key. The Secrets' names are ignored.
type Secrets map[string]string

// SecretValue implements provider.Credentials.
func (s Secrets) SecretValue(_ context.Context, sel common.SecretKeySelector) ([]byte, error) {
	return []byte(s[sel.Key]), nil
}

// ConfigMapValue implements provider.Credentials. There is no ConfigMap.
func (Secrets) ConfigMapValue(context.Context, common.ConfigMapKeySelector) ([]byte, error) {
	return nil, errors.New("no ConfigMap")
}

// ServiceAccountToken implements provider.Credentials. The token of each ServiceAccount is that of the key jwt.
func (s Secrets) ServiceAccountToken(context.Context, common.ServiceAccountSelector, ...string) (string, error) {
	if s["jwt"] == "" {
		return "", errors.New("no token")
	}
	return s["jwt"], nil
}

// ServiceAccountAnnotations implements provider.ServiceAccountReader. The keys are also the annotations of each ServiceAccount.
func (s Secrets) ServiceAccountAnnotations(context.Context, common.ServiceAccountSelector) (map[string]string, error) {
	return s, nil
}

// Ambient implements provider.Credentials. The operator's own identity is not allowed.
func (Secrets) Ambient() error { return provider.NewError(provider.Invalid, "auth is not set") }

// A Store holds the settings of a store or generator that a test can change before it connects.
type Store struct {
	*v1alpha1.AWSSpec

	Keys    *v1alpha1.KeySpec
	Secrets Secrets
}

// An Option changes a Store.
type Option func(*Store)

// WithKey logs in with another access key than that of the user "test".
func WithKey(id, key string) Option {
	return func(s *Store) { s.Secrets = Secrets{"id": id, "key": key} }
}

// WithPrefix sets spec.prefix.
func WithPrefix(p string) Option { return func(s *Store) { s.Keys.Prefix = p } }

// WithRegion sets spec.region.
func WithRegion(r string) Option { return func(s *Store) { s.Region = r } }

// WithRole assumes a role.
func WithRole(arn string) Option { return func(s *Store) { s.Role = arn } }

// WithRetries sets how many times a call is retried. Without it, a call is retried once.
func WithRetries(n int32) Option { return func(s *Store) { s.RetrySettings.MaxRetries = &n } }

// Connect fills an empty store or generator with the endpoint of an emulator, and connects to it.
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

// Refs returns references to the current versions of keys.
func Refs(keys ...string) (refs []provider.Ref) {
	for _, k := range keys {
		refs = append(refs, provider.Ref{Key: k})
	}
	return refs
}

// Outcome summarizes a result: the value, or the class of the error.
func Outcome(r provider.Result) string {
	if r.Err != nil {
		return string(provider.ClassOf(r.Err))
	}
	return r.Value.Key + "=" + string(r.Value.Data)
}

// Outcomes summarizes each result; see Outcome.
func Outcomes(results []provider.Result) (all []string) {
	for _, r := range results {
		all = append(all, Outcome(r))
	}
	return all
}

// Found returns a sorted summary of everything that a query finds.
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

// Unfinished runs a query to its end. It returns the number of results that follow an error, and the last error.
func Unfinished(ctx context.Context, c provider.Finder, q provider.Query) (after int, last error) {
	for _, err := range c.Find(ctx, q) {
		if last != nil {
			after++
		}
		last = err
	}
	return after, last
}

// failures maps the failures of the conformance suite to faults of the emulator.
var failures = map[conformance.Failure]emulator.Fault{
	conformance.Denied:      {Code: "AccessDeniedException", Message: "User is not authorized"},
	conformance.Throttled:   emulator.Throttled(),
	conformance.Unavailable: {Code: "InternalFailure"},
	// A hanging call must not take effect after its caller has given up.
	conformance.Hang:    {Hang: true, Code: "InternalFailure"},
	conformance.Dropped: {Drop: true},
}

// Inject makes every call fail, or every read of one secret. operation is the one that reads a single secret;
// reads in a batch fail, too.
func Inject(e *emulator.Emulator, operation string, f conformance.Fault) func() {
	call := failures[f.Failure]
	if f.Key == "" {
		return e.Inject(call)
	}
	call.Key = f.Key
	entry := call
	entry.Entry = true
	if f.Failure == conformance.Dropped {
		return e.Inject(entry)
	}
	call.Call = operation
	removeCall, removeEntry := e.Inject(call), e.Inject(entry)
	return func() { removeCall(); removeEntry() }
}
