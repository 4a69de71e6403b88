package conformance

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/sync/errgroup"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

var checkChecks = []check{
	{"check/ok", provider.CapabilityCheck, "The check of a working store has no error.", checkOK},
	{"check/denied", provider.CapabilityCheck, "Wrong credentials are an error before any secret is read.", checkDenied},
	{"check/denied-secret", provider.CapabilityCheck, "A missing permission for one secret does not make the store unready.", checkDeniedSecret},
	{"check/unavailable", provider.CapabilityCheck, "An unavailable provider is not reported as wrong credentials, and later checks work.", checkUnavailable},
	{"check/hang", provider.CapabilityCheck, "A check ends with its context.", checkHang},
}

var sharedChecks = []check{
	{"read/wrong-credentials", provider.CapabilityRead, "With wrong credentials no secret is NotFound.", wrongCredentials("Get")},
	{"batch/wrong-credentials", provider.CapabilityBatch, "With wrong credentials no entry of a batch is NotFound.", wrongCredentials("GetBatch")},
	{"find/wrong-credentials", provider.CapabilityFind, "With wrong credentials a list is an error, not an empty list.", wrongCredentials("Find")},
	{"identity", identifies, "Stores of one place have equal identities, and stores of different places different ones.", identity},
	{"spelling", spells, "All keys of a secret have one name, and no other secret has it.", spelling},
	{"concurrent", provider.CapabilityRead, "One client can be used by all workers at the same time. Run with -race.", concurrent},
}

func (e *env) check(ctx context.Context) error {
	c := e.client.(provider.Checker)
	first, second := c.Check(ctx), c.Check(ctx)
	if err := sameTwice(provider.Result{Err: first}, provider.Result{Err: second}); err != nil {
		return errors.Wrap(err, "Check twice")
	}
	return second
}

func checkOK(ctx context.Context, e *env) error { return e.check(ctx) }

func checkDenied(ctx context.Context, e *env) error {
	return e.denied(ctx, func(e *env) error { return hasClass(e.check(ctx), provider.Denied) })
}

// wrongCredentials returns a check of the calls with a name.
func wrongCredentials(name string) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		key, err := e.put(ctx, "a")
		if err != nil {
			return err
		}
		denied := func(err error) error { return hasClass(err, provider.Denied) }
		return e.denied(ctx, func(other *env) error {
			var errs []error
			for _, c := range other.calls(key, e.key("missing")) {
				if c.name != name {
					continue
				}
				for range 2 { // A client might store something wrong after the first answer.
					errs = append(errs, errors.Wrap(denied(worst(c.run(ctx), denied)), c.name))
				}
			}
			return errors.Join(errs...)
		})
	}
}

// denied runs f with a client that has wrong credentials. Alternatively, connecting can fail.
func (e *env) denied(ctx context.Context, f func(e *env) error) error {
	if e.h.ConnectDenied == nil {
		return errors.New("harness: ConnectDenied is missing")
	}
	c, err := e.h.ConnectDenied(ctx)
	if err != nil {
		return errors.Wrap(hasClass(err, provider.Denied), "connecting")
	}
	return errors.Join(f(newEnv(e.h, e.name, c)), provider.Close(c))
}

func checkDeniedSecret(ctx context.Context, e *env) error {
	key, err := e.put(ctx, "a")
	if err != nil {
		return err
	}
	return e.under(Fault{Failure: Denied, Key: key}, func() error { return e.check(ctx) })
}

func checkUnavailable(ctx context.Context, e *env) error {
	return errors.Join(
		e.under(Fault{Failure: Unavailable}, func() error { return hasClass(e.check(ctx), provider.Unavailable) }),
		e.under(Fault{Failure: Throttled}, func() error { return hasClass(e.check(ctx), provider.Throttled) }),
		errors.Wrap(e.check(ctx), "after both"),
	)
}

func checkHang(ctx context.Context, e *env) error {
	return e.givesUp(ctx, e.client.(provider.Checker).Check)
}

// concurrent reads the same and different secrets with every call of the client.
func concurrent(ctx context.Context, e *env) error {
	const workers, rounds = 16, 5
	names := leaves("concurrent", 4)
	refs, err := e.putAll(ctx, names...)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		g.Go(func() error {
			for r := range rounds {
				if err := e.everyCall(ctx, "concurrent-", names, refs, (w+r)%len(refs)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// everyCall reads the secret with index i, among those whose names start with stem, with every call.
func (e *env) everyCall(ctx context.Context, stem string, names []string, refs []provider.Ref, i int) error {
	errs := []error{
		e.wants(ctx, refs[i], value(names[i])),
		e.fails(ctx, provider.Ref{Key: e.key("missing")}, provider.NotFound),
	}
	if _, ok := e.client.(provider.Batcher); ok {
		n := min(e.batchSize(), len(refs)) - 1
		errs = append(errs, e.batch(ctx, append(entriesOf(names, refs)[:n],
			entry{ref: provider.Ref{Key: e.key("missing")}, class: provider.NotFound})...))
	}
	if _, ok := e.client.(provider.Finder); ok {
		errs = append(errs, e.finds(ctx, named(stem), names...))
	}
	if _, ok := e.client.(provider.Checker); ok {
		errs = append(errs, e.check(ctx))
	}
	return errors.Join(errs...)
}

func entriesOf(names []string, refs []provider.Ref) []entry {
	var entries []entry
	for i, ref := range refs {
		entries = append(entries, entry{ref: ref, leaf: names[i]})
	}
	return entries
}

// identifies is the name of provider.Identifier, which is not a capability that users see.
const identifies = "Identity"

// identity compares a client with another one of the same place, and with one of another place.
func identity(ctx context.Context, e *env) error {
	if e.h.ConnectElsewhere == nil {
		return errors.New("harness: ConnectElsewhere is missing")
	}
	here, err := e.identityOf(ctx, e.h.Connect)
	if err != nil {
		return err
	}
	again, err := e.identityOf(ctx, e.h.Connect)
	if err != nil {
		return err
	}
	there, err := e.identityOf(ctx, e.h.ConnectElsewhere)
	switch {
	case err != nil:
		return errors.Wrap(err, "elsewhere")
	case here != again:
		return errors.Errorf("two clients of one place have the identities %+v and %+v", here, again)
	case here.Overlaps(there):
		return errors.Errorf("clients of two places have the identities %+v and %+v", here, there)
	}
	return nil
}

// identityOf asks a new client twice for its identity.
func (e *env) identityOf(ctx context.Context, connect func(context.Context) (provider.Client, error)) (provider.Identity, error) {
	c, err := connect(ctx)
	if err != nil {
		return provider.Identity{}, errors.Wrap(err, "cannot connect")
	}
	first, err := fake.Link("test", c).Identify(ctx)
	if err == nil {
		var second provider.Identity
		if second, err = fake.Link("test", c).Identify(ctx); err == nil && first != second {
			err = errors.Errorf("one client has first the identity %+v, then %+v", first, second)
		}
	}
	return first, errors.Join(err, provider.Close(c))
}

// spells is what the check of a Namer needs.
const spells = "Name"

// spelling compares the names of the keys of one secret with those of others.
func spelling(ctx context.Context, e *env) error {
	if e.h.Spell == nil {
		return errors.New("harness: Spell is missing")
	}
	key, err := e.put(ctx, "a")
	if err != nil {
		return err
	}
	other, err := e.put(ctx, "b")
	if err != nil {
		return err
	}
	spelled, err := e.h.Spell(ctx, key)
	if err != nil {
		return errors.Wrap(err, "harness: Spell")
	}
	if v, err := e.client.Get(ctx, provider.Ref{Key: spelled}); err != nil || string(v.Data) == "" {
		return errors.Wrapf(err, "harness: %q is no key of %q", spelled, key)
	}
	names := map[string]provider.Name{}
	for _, k := range []string{key, spelled, other, e.key("missing")} {
		for range 2 {
			if names[k], err = e.client.(provider.Namer).Name(ctx, k); err != nil {
				return errors.Wrapf(err, "Name %q", k)
			}
		}
	}
	if !names[key].Is(names[spelled]) {
		return errors.Errorf("%q has the name %+v, and %q, which is the same secret, %+v", key, names[key], spelled, names[spelled])
	}
	for _, k := range []string{other, e.key("missing")} {
		if names[k].Is(names[key]) || names[k].Is(names[spelled]) {
			return errors.Errorf("%q and %q are two secrets with the name %+v", k, key, names[k])
		}
	}
	return nil
}
