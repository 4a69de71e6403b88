package conformance

import (
	"cmp"
	"context"
	"regexp"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// many is more than two pages of most providers, which have at most 100 results each.
const many = 230

var findChecks = []check{
	{"find/all", provider.CapabilityFind, "An empty query selects all secrets.", findAll},
	{"find/name", provider.CapabilityFind, "The regular expression matches any part of the key.", findName},
	{"find/path", provider.CapabilityFind, "The path selects only the keys below it.", findPath},
	{"find/tags", provider.CapabilityFind, "A secret must have every tag of the query, with its value.", findTags},
	{"find/combined", provider.CapabilityFind, "A secret must match all fields of the query.", findCombined},
	{"find/nothing", provider.CapabilityFind, "No match is an empty list, not an error.", findNothing},
	{"find/deleted", provider.CapabilityFind, "A deleted secret is not found.", findDeleted},
	{"find/many", provider.CapabilityFind, "The list includes all pages of the provider, and each secret once.", findMany},
	{"find/stop", provider.CapabilityFind, "A caller can stop at any result, and list again later.", findStop},
	{"find/failure", provider.CapabilityFind, "A failed list is an error of its class, never an empty list.", findFailure},
	{"find/failure-midway", provider.CapabilityFind, "A list that fails midway ends with an error: a shorter list would delete keys.", findFailureMidway},
	{"find/dropped", provider.CapabilityFind, "A listed secret without its value is an error, and is not omitted.", findDropped},
	{"find/hang", provider.CapabilityFind, "A list ends with its context, and then with an error.", findHang},
}

// list returns the results of a query, sorted by key.
func list(ctx context.Context, c provider.Client, q provider.Query) (values []provider.Value, err error) {
	for v, e := range c.(provider.Finder).Find(ctx, q) {
		if err != nil {
			return nil, errors.Errorf("Find continues after its error %v", err)
		}
		if e != nil {
			err = e
			continue
		}
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b provider.Value) int { return cmp.Compare(a.Key, b.Key) })
	return values, err
}

// find lists twice. Both lists must be equal.
func (e *env) find(ctx context.Context, q provider.Query) ([]provider.Value, error) {
	first, err := list(ctx, e.client, q)
	second, again := list(ctx, e.client, q)
	if err != nil || again != nil {
		return nil, cmp.Or(sameTwice(provider.Result{Err: err}, provider.Result{Err: again}), again)
	}
	if diff := gocmp.Diff(first, second); diff != "" {
		return nil, errors.Errorf("Find twice: -first, +second:\n%s", diff)
	}
	return second, nil
}

// finds lists, and compares the result with the values of leaves.
func (e *env) finds(ctx context.Context, q provider.Query, names ...string) error {
	got, err := e.find(ctx, q)
	if err != nil {
		return err
	}
	return e.sameList(got, names)
}

func (e *env) sameList(got []provider.Value, names []string) error {
	byKey := map[string]string{}
	var want []string
	for _, n := range names {
		byKey[e.key(n)] = n
		want = append(want, e.key(n))
	}
	var keys []string
	for _, v := range got {
		keys = append(keys, v.Key)
	}
	slices.Sort(want)
	if diff := gocmp.Diff(want, keys); diff != "" {
		return errors.Errorf("keys: -want, +got:\n%s", diff)
	}
	var errs []error
	for _, v := range got {
		errs = append(errs, e.same(provider.Ref{Key: v.Key}, value(byKey[v.Key]), v))
	}
	return errors.Join(errs...)
}

// named returns a query for a part of a name that no other check uses.
func named(part string) provider.Query {
	return provider.Query{Name: regexp.MustCompile(regexp.QuoteMeta(part))}
}

func findAll(ctx context.Context, e *env) error {
	names := []string{"all-a", "all-b", "all-c"}
	if _, err := e.putAll(ctx, names...); err != nil {
		return err
	}
	got, err := list(ctx, e.client, provider.Query{})
	if err != nil {
		return err
	}
	// The provider might have secrets that the suite has not stored.
	got = slices.DeleteFunc(got, func(v provider.Value) bool { return !e.puts[v.Key] })
	return e.sameList(got, names)
}

func findName(ctx context.Context, e *env) error {
	if _, err := e.putAll(ctx, "name-red-1", "name-red-2", "name-green-1"); err != nil {
		return err
	}
	return errors.Join(
		e.finds(ctx, named("name-red-"), "name-red-1", "name-red-2"),
		e.finds(ctx, provider.Query{Name: regexp.MustCompile(`name-[a-z]+-1$`)}, "name-green-1", "name-red-1"),
		e.finds(ctx, provider.Query{Name: regexp.MustCompile(`^` + regexp.QuoteMeta(e.key("name-red-2")) + `$`)}, "name-red-2"),
	)
}

func findPath(ctx context.Context, e *env) error {
	if _, err := e.putAll(ctx, "in/path-a", "in/deep/path-b", "inside/path-c", "path-d"); err != nil {
		return err
	}
	return e.finds(ctx, provider.Query{Path: e.h.Path(e.dir() + "/in")}, "in/path-a", "in/deep/path-b")
}

// putTagged stores three secrets: two with team shop, one of which has stage test.
func putTagged(ctx context.Context, e *env, stem string) error {
	tags := map[string]map[string]string{
		stem + "-a": {"team": "shop-" + stem, "stage": "test"},
		stem + "-b": {"team": "shop-" + stem, "stage": "production"},
		stem + "-c": {"team": "shipping-" + stem, "stage": "test"},
	}
	var errs []error
	for leaf, t := range tags {
		errs = append(errs, e.write(ctx, e.key(leaf), value(leaf), t))
	}
	return errors.Join(errs...)
}

func findTags(ctx context.Context, e *env) error {
	if err := putTagged(ctx, e, "tags"); err != nil {
		return err
	}
	return errors.Join(
		e.finds(ctx, provider.Query{Tags: map[string]string{"team": "shop-tags"}}, "tags-a", "tags-b"),
		e.finds(ctx, provider.Query{Tags: map[string]string{"team": "shop-tags", "stage": "test"}}, "tags-a"),
		e.finds(ctx, provider.Query{Tags: map[string]string{"team": "shop"}}),
	)
}

func findCombined(ctx context.Context, e *env) error {
	if err := putTagged(ctx, e, "both"); err != nil {
		return err
	}
	q := named("both-")
	q.Tags = map[string]string{"stage": "test"}
	other := provider.Query{Name: regexp.MustCompile("both-b$"), Tags: q.Tags}
	return errors.Join(e.finds(ctx, q, "both-a", "both-c"), e.finds(ctx, other))
}

func findNothing(ctx context.Context, e *env) error {
	if _, err := e.put(ctx, "a"); err != nil {
		return err
	}
	return e.finds(ctx, named("no-such-name"))
}

func findDeleted(ctx context.Context, e *env) error {
	refs, err := e.putAll(ctx, "deleted-a", "deleted-b")
	if err != nil {
		return err
	}
	if err := e.delete(ctx, refs[0].Key); err != nil {
		return err
	}
	return e.finds(ctx, named("deleted-"), "deleted-b")
}

func findMany(ctx context.Context, e *env) error {
	names := leaves("many", many)
	if _, err := e.putAll(ctx, names...); err != nil {
		return err
	}
	return e.finds(ctx, named("many-"), names...)
}

func findStop(ctx context.Context, e *env) error {
	names := leaves("stop", 3)
	if _, err := e.putAll(ctx, names...); err != nil {
		return err
	}
	for _, err := range e.client.(provider.Finder).Find(ctx, named("stop-")) {
		if err != nil {
			return err
		}
		break
	}
	return e.finds(ctx, named("stop-"), names...)
}

func findFailure(ctx context.Context, e *env) error {
	if _, err := e.put(ctx, "failure-a"); err != nil {
		return err
	}
	var errs []error
	for _, c := range classes {
		errs = append(errs,
			e.under(Fault{Failure: c.failure}, func() error {
				_, err := e.find(ctx, named("failure-a"))
				return hasClass(err, c.class)
			}),
			errors.Wrapf(e.finds(ctx, named("failure-a"), "failure-a"), "after %s", c.failure),
		)
	}
	return errors.Join(errs...)
}

func findFailureMidway(ctx context.Context, e *env) error {
	refs, err := e.putAll(ctx, leaves("midway", many)...)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range classes {
		errs = append(errs, e.under(Fault{Failure: c.failure, Key: refs[many/2].Key}, func() error {
			_, err := e.find(ctx, named("midway-"))
			return hasClass(err, c.class)
		}))
	}
	return errors.Join(errs...)
}

func findDropped(ctx context.Context, e *env) error {
	refs, err := e.putAll(ctx, leaves("dropped", 3)...)
	if err != nil {
		return err
	}
	return e.under(Fault{Failure: Dropped, Key: refs[1].Key}, func() error {
		_, err := e.find(ctx, named("dropped-"))
		return hasClass(err, provider.Unavailable)
	})
}

func findHang(ctx context.Context, e *env) error {
	if _, err := e.put(ctx, "hang-a"); err != nil {
		return err
	}
	return e.givesUp(ctx, func(ctx context.Context) error {
		_, err := list(ctx, e.client, named("hang-a"))
		return err
	})
}
