package generated

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/concurrency"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

var (
	// errBusy means that too many other objects use the generator now.
	errBusy = errors.New("the generator is busy")
	// errLabels means that the cache does not show the labels of the namespace yet.
	errLabels = provider.NewError(provider.Unavailable, "whom it serves cannot be told yet")
)

// generators are those of this module. Their errors are fit to be shown.
type generators struct {
	// resolver finds them in the cache, live by a live read.
	resolver *resolve.Resolver
	live     *resolve.Routes
	pool     *dispatch.Pool
	lanes    concurrency.Lanes[request]
	opts     setup.Options
	// wake has an object reconciled again, apart from any event.
	wake func(req request)
}

// found is a generator as the cache shows it.
type found struct {
	ref v1alpha1.StoreRef
	// object is nil if err says why the generator cannot be had, or an operator of another class serves it.
	object provider.GeneratorObject
	err    error
	// refused says why it may not be used now; nil if it may.
	refused error
}

// look returns the generator that a reference names, if this operator serves it.
func (g *generators) look(ctx context.Context, ref v1alpha1.StoreRef, namespace string) found {
	h, refusal, err := g.resolver.Resolve(ctx, ref, namespace, resolve.Generate)
	f := found{ref: ref}
	o, ok := h.Store.(provider.GeneratorObject)
	switch {
	case refusal != nil && refusal.Why == resolve.OtherClass:
	case ok:
		f.object, f.refused = o, shown(h, refusal, err)
	default:
		f.err = shown(h, refusal, err)
	}
	return f
}

// shown tells of a generator why it cannot be used; nil if it can.
func shown(h resolve.Handle, refusal *resolve.Refusal, err error) error {
	switch {
	case err != nil && h.Store != nil:
		return errLabels
	case err != nil:
		return provider.NewError(provider.Unavailable, "it cannot be read")
	case refusal == nil:
		return nil
	}
	switch refusal.Why { //nolint:exhaustive // The others pass.
	case resolve.NotServed:
		return provider.NewError(provider.Invalid, "this module does not serve it")
	case resolve.ClusterKind:
		return provider.NewError(provider.Denied, "this operator serves chosen namespaces only and may not read cluster Kinds; use the namespaced Kind")
	case resolve.NotAdmitted:
		return provider.NewError(provider.Denied, "%s", refusal.Rule)
	case resolve.Absent:
		return provider.NewError(provider.NotFound, "it %s", refusal.Message)
	}
	return provider.NewError(provider.Unavailable, "it %s", refusal.Message)
}

// call uses a generator for an object, within the bounds of what may be under way at it. It returns errBusy where
// they are reached, and wakes the object later.
func (g *generators) call(ctx context.Context, req request, ref v1alpha1.StoreRef, f func(ctx context.Context, kind string, g provider.Generator) error) error {
	h, refusal, err := g.resolver.Lookup(ctx, ref, req.Namespace)
	if refusal != nil && refusal.Why == resolve.OtherClass {
		refusal = nil // What it has made is revoked whatever its class.
	}
	if err := shown(h, refusal, err); err != nil {
		return err
	}
	lane := concurrency.Key{UID: h.Store.GetUID(), Beside: h.Beside}
	if !g.lanes.Enter(lane, req) {
		return errBusy
	}
	defer func() {
		if next, waits := g.lanes.Leave(lane); waits {
			g.wake(next)
		}
	}()
	// A call is not cut off when the operator ends: nobody would know what was made.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.opts.CallTimeout)
	defer cancel()
	gen, err := g.pool.Generator(h.Kind, h.Store, h.Beside).Client(ctx)
	if err == nil {
		err = f(ctx, h.GoName(), gen)
	}
	if provider.ClassOf(err) == provider.Denied {
		g.opts.Suspect(h.Kind, h.Key)
	}
	return err
}

// generate has values made. cleans is true if the generator can revoke them.
func (g *generators) generate(ctx context.Context, req request, ref v1alpha1.StoreRef) (v provider.Generated, cleans bool, err error) {
	err = g.call(ctx, req, ref, func(ctx context.Context, kind string, gen provider.Generator) (err error) {
		_, cleans = gen.(provider.Cleaner)
		v, err = provider.Generate(ctx, kind, gen)
		return err
	})
	return v, cleans, err
}

// renew has values live longer.
func (g *generators) renew(ctx context.Context, req request, ref v1alpha1.StoreRef, state string) (v provider.Generated, err error) {
	err = g.call(ctx, req, ref, func(ctx context.Context, kind string, gen provider.Generator) (err error) {
		v, err = provider.Renew(ctx, kind, gen, state)
		return err
	})
	return v, err
}

// cleanup revokes a credential. A cluster generator that does not admit the namespace is not asked: anyone there may
// have written what a part says, and the generator may have permissions for the credentials of others.
func (g *generators) cleanup(ctx context.Context, req request, of handoff.Generator, state string) error {
	if err := shown(g.resolver.Resolve(ctx, refTo(of), req.Namespace, resolve.Revoke)); err != nil {
		return err
	}
	return g.call(ctx, req, refTo(of), func(ctx context.Context, kind string, gen provider.Generator) error {
		return provider.Cleanup(ctx, kind, gen, state)
	})
}

// linger returns how long a credential stays valid after no consumer is known to hold it any more.
func (g *generators) linger(ctx context.Context, req request, of handoff.Generator) (d time.Duration, err error) {
	err = g.call(ctx, req, refTo(of), func(_ context.Context, _ string, gen provider.Generator) error {
		d = provider.Linger(gen)
		return nil
	})
	return d, err
}

// specNow returns the specHash of a generator by a live read; empty if there is none.
func (g *generators) specNow(ctx context.Context, ref v1alpha1.StoreRef, namespace string) (string, error) {
	k, ok := g.live.Serves(&ref)
	if !ok {
		return "", nil
	}
	s, err := g.live.Find(ctx, k, ref, namespace)
	if o, ok := s.(provider.GeneratorObject); ok && err == nil {
		return specHash(o)
	}
	return "", errors.Wrap(err, "cannot read the generator")
}

func refTo(g handoff.Generator) v1alpha1.StoreRef {
	return v1alpha1.StoreRef{Kind: g.Kind, Name: g.Name}
}
