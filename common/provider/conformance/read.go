package conformance

import (
	"bytes"
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// classes are the injected failures, with the class that each error must have.
var classes = []struct {
	failure Failure
	class   provider.Class
}{
	{Denied, provider.Denied},
	{Throttled, provider.Throttled},
	{Unavailable, provider.Unavailable},
}

const large = 60 << 10

// samples are checks of values that must be returned unchanged.
func samples(h Harness) []check {
	size := large
	if h.MaxSize > 0 {
		size = min(size, h.MaxSize)
	}
	const frame = len(`{"c4n4ry":""}`)
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	table := []struct {
		name, reason string
		data         []byte
		json         bool
	}{
		{"json", "A secret is returned unchanged, including spacing, order of keys and format of numbers.", []byte(`{"c4n4ry": {"z":1, "a":[1.50,12345678901234567890]}, "b":null}`), true},
		{"empty-json", "An empty object is a value, not a missing secret.", []byte(`{}`), true},
		{"unicode", "Characters that are not ASCII are kept.", []byte(`{"c4n4ry":"pässwörd – 秘密 🔑 \u0001"}`), true},
		{"large", "A value near the limit of most providers is complete.", slices.Concat([]byte(`{"c4n4ry":"`), bytes.Repeat([]byte("x"), size-frame), []byte(`"}`)), true},
		{"text", "White space is part of the value.", []byte(" c4n4ry\r\n\n"), false},
		{"quoted", "Text that looks like JSON is not decoded.", []byte(`"c4n4ry"`), false},
		{"binary", "Binary secrets are returned byte for byte.", all[:], false},
	}
	var checks []check
	for _, s := range table {
		if h.JSONOnly && !s.json {
			continue
		}
		checks = append(checks, check{"read/" + s.name, provider.CapabilityRead, s.reason, func(ctx context.Context, e *env) error {
			key := e.key("a")
			if err := e.write(ctx, key, s.data, nil); err != nil {
				return err
			}
			return e.wants(ctx, provider.Ref{Key: key}, s.data)
		}})
	}
	return checks
}

func readChecks(h Harness) []check {
	return slices.Concat(samples(h), []check{
		{"read/version", provider.CapabilityRead, "The version of a value reads that value again, also when it is no longer current.", readVersion},
		{"read/metadata", provider.CapabilityRead, "Metadata, if requested, is returned with the value.", readMetadata},
		{"read/missing", provider.CapabilityRead, "A secret that has never existed is NotFound.", readMissing},
		{"read/missing-version", provider.CapabilityRead, "A version that has never existed is NotFound, although the secret exists.", readMissingVersion},
		{"read/deleted", provider.CapabilityRead, "A deleted secret is NotFound, with every version.", readDeleted},
		{"read/failure", provider.CapabilityRead, "A failure has its own class, and later reads work.", readFailure},
		{"read/failure-of-missing", provider.CapabilityRead, "While the provider fails, not even a missing secret is NotFound.", readFailureOfMissing},
		{"read/failure-of-one", provider.CapabilityRead, "The failure of one secret does not affect another one.", readFailureOfOne},
		{"read/hang", provider.CapabilityRead, "A call ends with its context, so that no worker is blocked.", readHang},
	})
}

func readVersion(ctx context.Context, e *env) error {
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
	current, err := e.get(ctx, provider.Ref{Key: key})
	if err != nil {
		return err
	}
	if old.Version == current.Version {
		return errors.Errorf("two values with the same version %q", old.Version)
	}
	return errors.Join(
		errors.Wrap(e.same(provider.Ref{Key: key}, value("new"), current), "current"),
		errors.Wrap(e.wants(ctx, provider.Ref{Key: key, Version: old.Version}, value("old")), "older version"),
		errors.Wrap(e.wants(ctx, provider.Ref{Key: key, Version: current.Version}, value("new")), "current version by name"),
	)
}

func readMetadata(ctx context.Context, e *env) error {
	key, tags := e.key("a"), map[string]string{"team": "shop", "stage": "test"}
	if err := e.write(ctx, key, value("a"), tags); err != nil {
		return err
	}
	ref := provider.Ref{Key: key, Metadata: true}
	v, err := e.get(ctx, ref)
	if err != nil {
		return err
	}
	bare, err := e.put(ctx, "bare")
	if err != nil {
		return err
	}
	without, err := e.get(ctx, provider.Ref{Key: bare, Metadata: true})
	if err != nil {
		return err
	}
	return errors.Join(e.same(ref, value("a"), v), hasTags(v, tags), errors.Wrap(hasTags(without, map[string]string{}), "without tags"))
}

// hasTags returns an error for missing or different tags. Providers can add other metadata.
func hasTags(v provider.Value, tags map[string]string) error {
	if v.Metadata == nil {
		return errors.Errorf("metadata of %q is nil; a secret without metadata must have an empty map, because nil means that it was not requested", v.Key)
	}
	got := map[string]string{}
	for k := range tags {
		if s, ok := v.Metadata[k]; ok {
			got[k] = s
		}
	}
	if diff := cmp.Diff(tags, got); diff != "" {
		return errors.Errorf("metadata of %q: -want, +got:\n%s", v.Key, diff)
	}
	return nil
}

func readMissing(ctx context.Context, e *env) error {
	return e.fails(ctx, provider.Ref{Key: e.key("missing")}, provider.NotFound)
}

func readMissingVersion(ctx context.Context, e *env) error {
	key, err := e.put(ctx, "a")
	if err != nil {
		return err
	}
	return e.fails(ctx, provider.Ref{Key: key, Version: e.h.NoVersion}, provider.NotFound)
}

func readDeleted(ctx context.Context, e *env) error {
	key, err := e.put(ctx, "a")
	if err != nil {
		return err
	}
	v, err := e.get(ctx, provider.Ref{Key: key})
	if err != nil {
		return err
	}
	if err := e.delete(ctx, key); err != nil {
		return err
	}
	return errors.Join(
		e.fails(ctx, provider.Ref{Key: key}, provider.NotFound),
		e.fails(ctx, provider.Ref{Key: key, Version: v.Version}, provider.NotFound),
	)
}

func readFailure(ctx context.Context, e *env) error {
	key, err := e.put(ctx, "a")
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range classes {
		errs = append(errs,
			e.under(Fault{Failure: c.failure}, func() error { return e.fails(ctx, provider.Ref{Key: key}, c.class) }),
			errors.Wrapf(e.wants(ctx, provider.Ref{Key: key}, value("a")), "after %s", c.failure),
		)
	}
	return errors.Join(errs...)
}

func readFailureOfMissing(ctx context.Context, e *env) error {
	var errs []error
	for _, c := range classes {
		errs = append(errs, e.under(Fault{Failure: c.failure}, func() error {
			return e.fails(ctx, provider.Ref{Key: e.key("missing")}, c.class)
		}))
	}
	return errors.Join(errs...)
}

func readFailureOfOne(ctx context.Context, e *env) error {
	refs, err := e.putAll(ctx, "bad", "good")
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range classes {
		errs = append(errs, e.under(Fault{Failure: c.failure, Key: refs[0].Key}, func() error {
			return errors.Join(e.fails(ctx, refs[0], c.class), e.wants(ctx, refs[1], value("good")))
		}))
	}
	return errors.Join(errs...)
}

func readHang(ctx context.Context, e *env) error {
	key, err := e.put(ctx, "a")
	if err != nil {
		return err
	}
	return e.givesUp(ctx, func(ctx context.Context) error {
		_, err := e.client.Get(ctx, provider.Ref{Key: key})
		return err
	})
}
