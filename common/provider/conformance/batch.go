package conformance

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

var batchChecks = []check{
	{"batch/single", provider.CapabilityBatch, "A batch of one is a normal read.", func(ctx context.Context, e *env) error {
		return batchOf(ctx, e, "a")
	}},
	{"batch/order", provider.CapabilityBatch, "Results have the order of the refs, whatever the order of the provider's answer.", func(ctx context.Context, e *env) error {
		return batchOf(ctx, e, shuffled(leaves("a", min(e.batchSize(), 5)))...)
	}},
	{"batch/full", provider.CapabilityBatch, "One call answers BatchSize refs.", func(ctx context.Context, e *env) error {
		return batchOf(ctx, e, shuffled(leaves("a", e.batchSize()))...)
	}},
	{"batch/version", provider.CapabilityBatch, "Versions of one secret are different refs with different answers.", batchVersion},
	{"batch/metadata", provider.CapabilityBatch, "A batch returns metadata, too.", batchMetadata},
	{"batch/mixed", provider.CapabilityBatch, "A missing and a denied secret do not affect the others, or each other.", batchMixed},
	{"batch/failure-of-one", provider.CapabilityBatch, "The error of one entry has its own class, and does not affect the others.", batchFailureOfOne},
	{"batch/dropped", provider.CapabilityBatch, "An entry that is not in the answer is not NotFound.", batchDropped},
	{"batch/failure", provider.CapabilityBatch, "When the call fails, every entry has the class of the error, whether it exists or not. Later calls work.", batchFailure},
	{"batch/hang", provider.CapabilityBatch, "A batch ends with its context, and then no entry is NotFound.", batchHang},
}

func (e *env) batchSize() int { return fake.Link("test", e.client).BatchSize() }

// getBatch reads in as few calls as BatchSize allows. It makes each call twice, and overwrites the first answer in
// between. Both answers must be equal.
func (e *env) getBatch(ctx context.Context, refs []provider.Ref) ([]provider.Result, error) {
	var all []provider.Result
	for part := range slices.Chunk(refs, e.batchSize()) {
		results, err := e.getBatchOnce(ctx, part)
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	return all, nil
}

func (e *env) getBatchOnce(ctx context.Context, refs []provider.Ref) ([]provider.Result, error) {
	b := e.client.(provider.Batcher)
	asked := slices.Clone(refs)
	first := b.GetBatch(ctx, refs)
	kept := make([]provider.Result, len(first))
	for i, r := range first {
		kept[i] = provider.Result{Value: clone(r.Value), Err: r.Err}
		overwrite(r.Value)
	}
	second := b.GetBatch(ctx, refs)
	if !slices.Equal(asked, refs) {
		return nil, errors.New("GetBatch changed the refs that it was given")
	}
	if len(first) != len(refs) || len(second) != len(refs) {
		return nil, errors.Errorf("%d, then %d results for %d refs", len(first), len(second), len(refs))
	}
	for i := range kept {
		if err := sameTwice(kept[i], second[i]); err != nil {
			return nil, errors.Wrapf(err, "GetBatch twice, entry %d", i)
		}
	}
	return second, nil
}

// entry is an expected result: the value of a leaf, or an error of a class.
type entry struct {
	ref   provider.Ref
	leaf  string
	class provider.Class
}

// batch reads the refs of all entries and compares the results.
func (e *env) batch(ctx context.Context, entries ...entry) error {
	var refs []provider.Ref
	for _, en := range entries {
		refs = append(refs, en.ref)
	}
	results, err := e.getBatch(ctx, refs)
	if err != nil {
		return err
	}
	var errs []error
	for i, en := range entries {
		errs = append(errs, errors.Wrapf(e.sameEntry(en, results[i]), "entry %d", i))
	}
	return errors.Join(errs...)
}

func (e *env) sameEntry(want entry, got provider.Result) error {
	if want.class != "" {
		return errors.Wrapf(hasClass(got.Err, want.class), "%+v", want.ref)
	}
	if got.Err != nil {
		return errors.Wrapf(got.Err, "%+v", want.ref)
	}
	return e.same(want.ref, value(want.leaf), got.Value)
}

// shuffled returns names in an order that is neither ascending nor descending.
func shuffled(names []string) []string {
	out := slices.Clone(names)
	slices.Reverse(out)
	if len(out) > 2 {
		out[0], out[1] = out[1], out[0]
	}
	return out
}

func batchOf(ctx context.Context, e *env, names ...string) error {
	var entries []entry
	sorted := slices.Sorted(slices.Values(names))
	if _, err := e.putAll(ctx, sorted...); err != nil {
		return err
	}
	for _, n := range names {
		entries = append(entries, entry{ref: provider.Ref{Key: e.key(n)}, leaf: n})
	}
	return e.batch(ctx, entries...)
}

func batchVersion(ctx context.Context, e *env) error {
	key := e.key("a")
	if err := e.write(ctx, key, value("old"), nil); err != nil {
		return err
	}
	old, err := e.get(ctx, provider.Ref{Key: key})
	if err != nil {
		return err
	}
	if err := e.write(ctx, key, value("new"), nil); err != nil {
		return err
	}
	return e.batch(ctx,
		entry{ref: provider.Ref{Key: key}, leaf: "new"},
		entry{ref: provider.Ref{Key: key, Version: old.Version}, leaf: "old"},
		entry{ref: provider.Ref{Key: key, Version: e.h.NoVersion}, class: provider.NotFound},
	)
}

func batchMetadata(ctx context.Context, e *env) error {
	key, tags := e.key("tagged"), map[string]string{"team": "shop"}
	if err := e.write(ctx, key, value("tagged"), tags); err != nil {
		return err
	}
	refs, err := e.putAll(ctx, "plain")
	if err != nil {
		return err
	}
	refs = append(refs, provider.Ref{Key: key, Metadata: true})
	results, err := e.getBatch(ctx, refs)
	if err != nil {
		return err
	}
	return errors.Join(
		e.sameEntry(entry{ref: refs[0], leaf: "plain"}, results[0]),
		e.sameEntry(entry{ref: refs[1], leaf: "tagged"}, results[1]),
		hasTags(results[1].Value, tags),
	)
}

func batchMixed(ctx context.Context, e *env) error {
	refs, err := e.putAll(ctx, "a", "denied", "b", "c")
	if err != nil {
		return err
	}
	return e.under(Fault{Failure: Denied, Key: refs[1].Key}, func() error {
		return e.batch(ctx,
			entry{ref: provider.Ref{Key: e.key("missing")}, class: provider.NotFound},
			entry{ref: refs[0], leaf: "a"},
			entry{ref: refs[1], class: provider.Denied},
			entry{ref: refs[3], leaf: "c"},
			entry{ref: refs[2], leaf: "b"},
		)
	})
}

func batchFailureOfOne(ctx context.Context, e *env) error {
	refs, err := e.putAll(ctx, "a", "bad", "b")
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range classes {
		errs = append(errs, e.under(Fault{Failure: c.failure, Key: refs[1].Key}, func() error {
			return e.batch(ctx,
				entry{ref: refs[0], leaf: "a"},
				entry{ref: refs[1], class: c.class},
				entry{ref: refs[2], leaf: "b"},
			)
		}))
	}
	return errors.Join(errs...)
}

func batchDropped(ctx context.Context, e *env) error {
	refs, err := e.putAll(ctx, "a", "dropped", "b")
	if err != nil {
		return err
	}
	return e.under(Fault{Failure: Dropped, Key: refs[1].Key}, func() error {
		return e.batch(ctx,
			entry{ref: refs[0], leaf: "a"},
			entry{ref: refs[1], class: provider.Unavailable},
			entry{ref: refs[2], leaf: "b"},
		)
	})
}

func batchFailure(ctx context.Context, e *env) error {
	refs, err := e.putAll(ctx, "a", "b")
	if err != nil {
		return err
	}
	missing := provider.Ref{Key: e.key("missing")}
	var errs []error
	for _, c := range classes {
		errs = append(errs,
			e.under(Fault{Failure: c.failure}, func() error {
				return e.batch(ctx,
					entry{ref: refs[0], class: c.class},
					entry{ref: missing, class: c.class},
					entry{ref: refs[1], class: c.class},
				)
			}),
			errors.Wrapf(e.batch(ctx,
				entry{ref: refs[0], leaf: "a"},
				entry{ref: missing, class: provider.NotFound},
				entry{ref: refs[1], leaf: "b"},
			), "after %s", c.failure),
		)
	}
	return errors.Join(errs...)
}

func batchHang(ctx context.Context, e *env) error {
	refs, err := e.putAll(ctx, "a", "b")
	if err != nil {
		return err
	}
	refs = append(refs, provider.Ref{Key: e.key("missing")})
	return e.givesUp(ctx, func(ctx context.Context) error {
		return worst(batchErrors(ctx, e.client, refs), notAnswered)
	})
}
