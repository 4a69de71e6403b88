package generated

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/concurrency"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// errBusy means that too many others use the generator now.
var errBusy = errors.New("the generator is busy")

// find returns the generator that a reference names, of whatever class.
func (p *pass) find(ctx context.Context, ref v1alpha1.StoreRef) (resolve.Route, provider.GeneratorObject, error) {
	k, ok := p.routes.Serves(&ref)
	switch {
	case !ok:
		return k, nil, provider.NewError(provider.Invalid, "this module does not serve it")
	case k.Cluster && p.opts.Namespaced:
		return k, nil, provider.NewError(provider.Denied, "this operator serves chosen namespaces only and may not read cluster Kinds; use the namespaced Kind")
	}
	s, err := p.routes.Find(ctx, k, ref, p.req.Namespace)
	if err != nil {
		return k, nil, provider.NewError(provider.Unavailable, "it cannot be read")
	}
	g, ok := s.(provider.GeneratorObject)
	if !ok {
		return k, nil, provider.NewError(provider.NotFound, "it does not exist; create it or correct the reference")
	}
	g, ok = g.DeepCopyObject().(provider.GeneratorObject)
	if !ok {
		return k, nil, provider.NewError(provider.Unavailable, "it cannot be copied")
	}
	return k, g, nil
}

// generator is find that returns nil for a generator that an operator of another class serves.
func (p *pass) generator(ctx context.Context, ref v1alpha1.StoreRef) (provider.GeneratorObject, error) {
	_, g, err := p.find(ctx, ref)
	if err != nil || provider.SourceSpec(g).Controller != p.opts.ControllerClass {
		return nil, err
	}
	return g, nil
}

// keepsPrevious reports whether a generator keeps the values that were replaced last; also where that cannot
// be told.
func (p *pass) keepsPrevious(ctx context.Context, g handoff.Generator) bool {
	_, o, err := p.find(ctx, refTo(g))
	return err != nil || o.GeneratorSpec().KeepPrevious
}

func refTo(g handoff.Generator) v1alpha1.StoreRef {
	return v1alpha1.StoreRef{Kind: g.Kind, Name: g.Name}
}

// refused says why a generator may not be used now; nil if it may.
func (p *pass) refused(ctx context.Context, g provider.GeneratorObject) error {
	if c := resolve.Held(g); c != nil {
		return provider.NewError(provider.Unavailable, "it is not ready: %s: %s", c.Reason, c.Message)
	}
	return p.barred(ctx, g)
}

// barred says why a cluster generator does not serve the namespace; nil if it does.
func (p *pass) barred(ctx context.Context, g provider.GeneratorObject) error {
	c, ok := g.(provider.ClusterObject)
	if !ok {
		return nil
	}
	_, refusal, err := p.rules.Grant(ctx, p.cache, c, p.req.Namespace)
	switch {
	case err != nil:
		p.soon()
		return provider.NewError(provider.Unavailable, "whom it serves cannot be told yet")
	case refusal != "":
		return provider.NewError(provider.Denied, "%s", refusal)
	}
	return nil
}

// call uses a generator, within the bounds of what may be under way at it.
func (p *pass) call(ctx context.Context, ref v1alpha1.StoreRef, f func(ctx context.Context, kind string, g provider.Generator) error) error {
	k, o, err := p.find(ctx, ref)
	if err != nil {
		return err
	}
	beside := resolve.Beside(o, p.req.Namespace)
	lane := concurrency.Key{UID: o.GetUID(), Beside: beside}
	if !p.lanes.Enter(lane, p.req) {
		return errBusy
	}
	defer func() {
		if next, waits := p.lanes.Leave(lane); waits {
			p.wake(next)
		}
	}()
	// A call is not cut off when the operator ends: nobody would know what was made.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opts.CallTimeout)
	defer cancel()
	g, err := p.pool.Generator(k.Kind, o, beside).Client(ctx)
	if err == nil {
		err = f(ctx, k.GoName(), g)
	}
	if provider.ClassOf(err) == provider.Denied {
		p.opts.Suspect(k.Kind, client.ObjectKeyFromObject(o))
	}
	return err
}

// cleanup revokes a credential. A cluster generator that does not admit the namespace is not asked: what a part
// there says may be anybody's word, and the generator may have rights over the credentials of others.
func (p *pass) cleanup(ctx context.Context, g handoff.Generator, state string) error {
	_, o, err := p.find(ctx, refTo(g))
	if err == nil {
		err = p.barred(ctx, o)
	}
	if err != nil {
		return err
	}
	return p.call(ctx, refTo(g), func(ctx context.Context, kind string, g provider.Generator) error {
		return provider.Cleanup(ctx, kind, g, state)
	})
}

// linger returns how long a credential stays valid after nobody is known to hold it any more.
func (p *pass) linger(ctx context.Context, g handoff.Generator) (d time.Duration, err error) {
	err = p.call(ctx, refTo(g), func(_ context.Context, _ string, g provider.Generator) error {
		d = provider.Linger(g)
		return nil
	})
	return d, err
}

// warn tells of what went wrong beside the values themselves.
func (p *pass) warn(g handoff.Generator, message string) {
	p.log.Info(message, "kind", g.Kind, "name", g.Name, p.req.kind, p.req.String())
	if p.user.Object != nil {
		p.events.Eventf(p.user.Object, nil, corev1.EventTypeWarning, "LeftBehind", "Generate", "%s %q: %s", g.Kind, g.Name, message)
	}
}
