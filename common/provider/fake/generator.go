package fake

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// defaultLinger is used by generators without a revocationDelay.
const defaultLinger = 5 * time.Minute

// Clock replaces the clock for the expiry of credentials.
func Clock(now func() time.Time) Option { return func(b *Backend) { b.now = now } }

// Finite limits how often each credential can be renewed.
func Finite(renewals int) Option { return func(b *Backend) { b.renewals = &renewals } }

// OnRevoke calls f with each credential before it is revoked.
func OnRevoke(f func(name string)) Option { return func(b *Backend) { b.onRevoke = f } }

// credential is an issued credential.
type credential struct {
	ttl     time.Duration
	expires time.Time
	renewed int
}

// Live returns the issued credentials that are neither revoked nor expired, sorted.
func (b *Backend) Live() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var live []string
	for name, c := range b.issued {
		if b.now().Before(c.expires) {
			live = append(live, name)
		}
	}
	slices.Sort(live)
	return live
}

// issue makes a unique credential.
func (b *Backend) issue(prefix string, ttl time.Duration) (name string, expires time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.serial++
	name = fmt.Sprintf("%s%06d", prefix, b.serial)
	if ttl <= 0 {
		return name, time.Time{}
	}
	if b.issued == nil {
		b.issued = map[string]*credential{}
	}
	b.issued[name] = &credential{ttl: ttl, expires: b.now().Add(ttl)}
	return name, b.issued[name].expires
}

func (b *Backend) renew(name string) (time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.issued[name]
	if c == nil || !b.now().Before(c.expires) || b.renewals != nil && c.renewed >= *b.renewals {
		return time.Time{}, provider.ErrNotRenewable
	}
	c.renewed++
	c.expires = b.now().Add(c.ttl)
	return c.expires, nil
}

func (b *Backend) revoke(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.issued, name)
}

// GeneratorKinds returns both generator Kinds of this Server.
func (s *Server) GeneratorKinds() []provider.Kind {
	return []provider.Kind{
		provider.GeneratorKindOf(func(ctx context.Context, o *v1alpha1.FakeGenerator, creds provider.Credentials) (provider.Generator, error) {
			return s.connectGenerator(ctx, o, &o.Spec, creds)
		}),
		provider.ClusterGeneratorKindOf(func(ctx context.Context, o *v1alpha1.ClusterFakeGenerator, creds provider.Credentials) (provider.Generator, error) {
			return s.connectGenerator(ctx, o, &o.Spec.FakeGeneratorSpec, creds)
		}),
	}
}

func (s *Server) connectGenerator(ctx context.Context, o client.Object, spec *v1alpha1.FakeGeneratorSpec, creds provider.Credentials) (provider.Generator, error) {
	c, err := s.dial(ctx, o, &v1alpha1.FakeStoreSpec{Backend: spec.Backend, Auth: spec.Auth}, creds)
	if err != nil {
		return nil, err
	}
	g := generator{c: c, spec: *spec.DeepCopy()}
	if g.ttl, err = spec.TTL.Or(0); err != nil {
		return nil, provider.NewError(provider.Invalid, "spec.ttl: %s", err)
	}
	if g.linger, err = spec.RevocationDelay.Or(defaultLinger); err != nil {
		return nil, provider.NewError(provider.Invalid, "spec.revocationDelay: %s", err)
	}
	if g.ttl == 0 {
		return g, nil
	}
	return leasing{g}, nil
}

// generator makes values that never expire.
type generator struct {
	c           *conn
	spec        v1alpha1.FakeGeneratorSpec
	ttl, linger time.Duration
}

// Generate makes a unique name.
func (g generator) Generate(ctx context.Context) (provider.Generated, error) {
	if err := g.c.begin(ctx, Record{Call: CallGenerate}); err != nil {
		return provider.Generated{}, err
	}
	name, expires := g.c.b.issue(g.spec.Prefix, g.ttl)
	made := provider.Generated{Values: map[string][]byte{"username": []byte(name), "password": []byte("secret of " + name)}, Expires: expires}
	if !expires.IsZero() {
		made.State = name
	}
	return made, nil
}

// Check checks the password.
func (g generator) Check(ctx context.Context) error { return checker{g.c}.Check(ctx) }

// Close records the call.
func (g generator) Close() error { return reader{g.c}.Close() }

// leasing makes values that can be renewed and must be revoked.
type leasing struct{ generator }

// Renew extends the validity of a credential.
func (l leasing) Renew(ctx context.Context, state string) (provider.Generated, error) {
	if err := l.c.begin(ctx, Record{Call: CallRenew, Refs: []provider.Ref{{Key: state}}}); err != nil {
		return provider.Generated{}, err
	}
	expires, err := l.c.b.renew(state)
	return provider.Generated{State: state, Expires: expires}, err
}

// Cleanup revokes a credential.
func (l leasing) Cleanup(ctx context.Context, state string) error {
	if err := l.c.begin(ctx, Record{Call: CallCleanup, Refs: []provider.Ref{{Key: state}}}); err != nil {
		return err
	}
	if f := l.c.b.onRevoke; f != nil {
		f(state)
	}
	l.c.b.revoke(state)
	return nil
}

// Linger returns the generator's revocationDelay.
func (l leasing) Linger() time.Duration { return l.linger }
