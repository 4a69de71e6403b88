package generated

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/concurrency"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
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
	// client is live, cache is not.
	client client.Reader
	cache  client.Reader
	pool   *dispatch.Pool
	routes *resolve.Routes
	rules  resolve.Rulebook
	lanes  concurrency.Lanes[request]
	opts   Options
	// wake has an object reconciled again, apart from any event.
	wake func(req request)
}

// find returns the generator that a reference names, of whatever class, as the cache shows it.
func (g *generators) find(ctx context.Context, ref v1alpha1.StoreRef, namespace string) (resolve.Route, provider.GeneratorObject, error) {
	k, ok := g.routes.Serves(&ref)
	switch {
	case !ok:
		return k, nil, provider.NewError(provider.Invalid, "this module does not serve it")
	case k.Cluster && g.opts.Namespaced:
		return k, nil, provider.NewError(provider.Denied, "this operator serves chosen namespaces only and may not read cluster Kinds; use the namespaced Kind")
	}
	s, err := g.routes.Find(ctx, k, ref, namespace)
	if err != nil {
		return k, nil, provider.NewError(provider.Unavailable, "it cannot be read")
	}
	o, ok := s.(provider.GeneratorObject)
	if !ok {
		return k, nil, provider.NewError(provider.NotFound, "it does not exist; create it or correct the reference")
	}
	o, ok = o.DeepCopyObject().(provider.GeneratorObject)
	if !ok {
		return k, nil, provider.NewError(provider.Unavailable, "it cannot be copied")
	}
	return k, o, nil
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
	_, o, err := g.find(ctx, ref, namespace)
	if err != nil || provider.SourceSpec(o).Controller != g.opts.ControllerClass {
		return found{ref: ref, err: err}
	}
	f := found{ref: ref, object: o}
	if c := resolve.Held(o); c != nil {
		f.refused = provider.NewError(provider.Unavailable, "it is not ready: %s: %s", c.Reason, c.Message)
	} else {
		f.refused = g.admits(ctx, o, namespace)
	}
	return f
}

// admits returns why a cluster generator does not serve a namespace; nil if it does.
func (g *generators) admits(ctx context.Context, o provider.GeneratorObject, namespace string) error {
	c, ok := o.(provider.ClusterObject)
	if !ok {
		return nil
	}
	_, refusal, err := g.rules.Grant(ctx, g.cache, c, namespace)
	switch {
	case err != nil:
		return errLabels
	case refusal != "":
		return provider.NewError(provider.Denied, "%s", refusal)
	}
	return nil
}

// call uses a generator for an object, within the bounds of what may be under way at it. It returns errBusy where
// they are reached, and wakes the object later.
func (g *generators) call(ctx context.Context, req request, ref v1alpha1.StoreRef, f func(ctx context.Context, kind string, g provider.Generator) error) error {
	k, o, err := g.find(ctx, ref, req.Namespace)
	if err != nil {
		return err
	}
	beside := resolve.Beside(o, req.Namespace)
	lane := concurrency.Key{UID: o.GetUID(), Beside: beside}
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
	gen, err := g.pool.Generator(k.Kind, o, beside).Client(ctx)
	if err == nil {
		err = f(ctx, k.GoName(), gen)
	}
	if provider.ClassOf(err) == provider.Denied {
		g.opts.Suspect(k.Kind, client.ObjectKeyFromObject(o))
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
	_, o, err := g.find(ctx, refTo(of), req.Namespace)
	if err == nil {
		err = g.admits(ctx, o, req.Namespace)
	}
	if err != nil {
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
	k, ok := g.routes.Serves(&ref)
	if !ok {
		return "", nil
	}
	o, ok := k.New().(provider.GeneratorObject)
	if !ok {
		return "", nil
	}
	if err := g.client.Get(ctx, k.Key(ref.Name, namespace), o); err != nil {
		return "", errors.Wrap(client.IgnoreNotFound(err), "cannot read the generator")
	}
	return specHash(o)
}

func refTo(g handoff.Generator) v1alpha1.StoreRef {
	return v1alpha1.StoreRef{Kind: g.Kind, Name: g.Name}
}
