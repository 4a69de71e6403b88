package generation

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/proof"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

var (
	// errLabels means that the cache does not have the labels of the namespace yet.
	errUnproven = errors.New(unproven)
	errLabels   = provider.NewError(provider.Unavailable, "cannot check whether the generator serves this namespace; retrying")
)

// unproven describes a credential whose record was not written by this module, or was changed.
const unproven = "the record of a credential has no valid proof: it is older than proofs, was changed, or the key was lost; the credential is not renewed or revoked, and stays valid until it expires"

// purpose is what a proof of a state is bound to. A part outlives an object that is created again, so the uid of the
// object is not included.
func (g *generators) purpose(req request, of handoff.Generator) []string {
	part := req.Name
	if req.kind != secretKind {
		part = handoff.Contributor{Group: g.opts.Module, Class: g.opts.ControllerClass, Purpose: v1alpha1.PartGenerated}.PartName(req.kind, req.Name)
	}
	return []string{req.Namespace, part, of.Kind, of.Name}
}

// check returns errUnproven unless an operator of this module made a credential for this part.
func (g *generators) check(ctx context.Context, req request, of handoff.Generator, state, proof string) error {
	ok, err := g.keys.Verify(ctx, g.purpose(req, of), state, proof)
	if err == nil && !ok {
		return errUnproven
	}
	return err
}

// generators gives access to the generators of this module. Its errors are safe to show to users.
type generators struct {
	// resolver looks generators up in the cache, and live by live reads.
	resolver *resolve.Resolver
	live     *resolve.Routes
	pool     *dispatch.Pool
	keys     *proof.Keys
	opts     setup.Options
}

// found is a generator as the cache has it.
type found struct {
	ref v1alpha1.StoreRef
	// object is nil if err is set, or if an operator of another class serves the generator.
	object provider.GeneratorObject
	err    error
	// holdsBack is true if no values can be generated or renewed, because the operator changes nothing outside the cluster.
	holdsBack bool
	// refused is why the generator must not be used now; nil if it can be used.
	refused error
}

// find returns the generator that a reference names, if this operator serves it.
func (g *generators) find(ctx context.Context, ref v1alpha1.StoreRef, namespace string) found {
	h, refusal, err := g.resolver.Resolve(ctx, ref, namespace, resolve.Generate)
	f := found{ref: ref, holdsBack: h.HoldsBack()}
	o, ok := h.Store.(provider.GeneratorObject)
	switch {
	case refusal != nil && refusal.Why == resolve.OtherClass:
	case ok:
		f.object, f.refused = o, shown(ref, h, refusal, err)
	default:
		f.err = shown(ref, h, refusal, err)
	}
	return f
}

// shown returns the error to show for a generator that cannot be used; nil if it can.
func shown(ref v1alpha1.StoreRef, h resolve.Handle, refusal *resolve.Refusal, err error) error {
	switch {
	case err != nil && h.Store != nil:
		return errLabels
	case err != nil:
		return provider.NewError(provider.Unavailable, "the generator cannot be read")
	case refusal == nil:
		return nil
	}
	return kit.Refused(ref, h, refusal)
}

// call runs f with a generator, and waits for it.
func (g *generators) call(ctx context.Context, req request, ref v1alpha1.StoreRef, f func(ctx context.Context, gen *provider.Link) error) error {
	h, refusal, err := g.resolver.Lookup(ctx, ref, req.Namespace)
	if refusal != nil && refusal.Why == resolve.OtherClass {
		refusal = nil // Credentials must be revoked whatever the class.
	}
	if err := shown(ref, h, refusal, err); err != nil {
		return err
	}
	at := kit.Place{Store: h.Store.GetUID(), Credentials: h.CredentialsNamespace, Tenant: req.Namespace}
	err = kit.Wait(ctx, []kit.Place{at}, func(ctx context.Context) error {
		// A call is not interrupted when the operator shuts down: the values that it made would be lost.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.opts.CallTimeout)
		defer cancel()
		gen, err := g.pool.Loader(h.Kind, h.Store, h.CredentialsNamespace).Link(ctx)
		if err != nil {
			return err
		}
		return f(ctx, gen)
	})
	if provider.ClassOf(err) == provider.Denied {
		g.opts.Suspect(h.Kind, h.Key)
	}
	return err
}

// generate makes values in v, with the proof of their state. If that fails after they were made, v has them, too.
func (g *generators) generate(ctx context.Context, req request, ref v1alpha1.StoreRef, v *made) error {
	return g.call(ctx, req, ref, func(ctx context.Context, gen *provider.Link) error {
		cleans := gen.Can(provider.CapabilityCleanup)
		if cleans || gen.Can(provider.CapabilityRenew) {
			if err := g.keys.Load(ctx); err != nil { // Nothing is made that could not be revoked later.
				return err
			}
		}
		made, err := gen.Generate(ctx)
		if err != nil {
			return err
		}
		v.values, v.State, v.Expires, v.Replace = made.Values, made.State, made.Expires, made.Replace
		v.Clean = cleans && made.State != ""
		if made.State == "" {
			return nil
		}
		v.Proof, err = g.keys.Sign(ctx, g.purpose(req, generatorOf(ref)), made.State)
		return err
	})
}

// renew extends the lifetime of the values of an entry, and returns the proof of their new state.
func (g *generators) renew(ctx context.Context, req request, ref v1alpha1.StoreRef, e handoff.Entry) (v provider.Generated, proof string, err error) {
	of := generatorOf(ref)
	if err := g.check(ctx, req, of, e.State, e.Proof); err != nil {
		return v, "", err
	}
	err = g.call(ctx, req, ref, func(ctx context.Context, gen *provider.Link) (err error) {
		v, err = gen.Renew(ctx, e.State)
		return err
	})
	if err != nil || v.State == e.State {
		return v, e.Proof, err
	}
	proof, err = g.keys.Sign(ctx, g.purpose(req, of), v.State)
	return v, proof, err
}

// cleanup revokes a credential of a record.
func (g *generators) cleanup(ctx context.Context, req request, c handoff.Retired) error {
	if err := g.check(ctx, req, c.Generator, c.State, c.Proof); err != nil {
		return err
	}
	return g.revoke(ctx, req, c.Generator, c.State)
}

// revoke revokes a credential that this process made, or whose proof is valid. A cluster generator that does not admit
// the namespace is not called.
func (g *generators) revoke(ctx context.Context, req request, of handoff.Generator, state string) error {
	h, refusal, err := g.resolver.Resolve(ctx, refTo(of), req.Namespace, resolve.Revoke)
	if err := shown(refTo(of), h, refusal, err); err != nil {
		return err
	}
	return g.call(ctx, req, refTo(of), func(ctx context.Context, gen *provider.Link) error {
		return gen.Cleanup(ctx, state)
	})
}

// linger returns how long a credential stays valid after no consumer is known to hold it any longer.
func (g *generators) linger(ctx context.Context, req request, of handoff.Generator) (d time.Duration, err error) {
	err = g.call(ctx, req, refTo(of), func(_ context.Context, gen *provider.Link) error {
		d = gen.Linger()
		return nil
	})
	return d, err
}

// specNow returns the specHash of a generator by a live read; empty if it does not exist.
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
