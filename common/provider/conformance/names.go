package conformance

import (
	"context"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// nameChecks read keys that a careless client, or a component between it and the provider, might confuse with the key
// of another secret.
var nameChecks = []check{
	odd("space", "A space is part of a key.", "victim", last("vic tim")),
	odd("space-before", "Leading white space is part of a key.", "victim", last(" victim")),
	odd("space-after", "Trailing white space is part of a key.", "victim", last("victim ")),
	odd("newline", "A line break is part of a key.", "victim", last("victim\n")),
	odd("control", "Control characters are not removed.", "victim", last("vic\x01tim")),
	odd("nul", "A key does not end at a NUL.", "victim", last("victim\x00x")),
	odd("not-utf8", "A key does not end at a byte that is not UTF-8.", "victim", last("victim\xff")),
	odd("upper-case", "Keys are case-sensitive.", "victim", last("VICTIM")),
	odd("unicode", "Letters that are not ASCII are kept.", "victim", last("víctim–秘密🔑")),
	odd("full-width", "Characters that look similar are different.", "victim", last("ｖictim")),
	odd("invisible", "Characters without a width are kept.", "victim", last("vic\u200btim")),
	odd("decomposed", "Two encodings of one letter are two keys.", "v\u00edctim", last("vi\u0301ctim")),
	odd("composed", "Two encodings of one letter are two keys.", "vi\u0301ctim", last("v\u00edctim")),
	odd("dot", "A dot is not the current folder.", "victim", last("./victim")),
	odd("dot-dot", "Two dots do not lead out of a folder, or out of the store's part of the provider.", "victim", last("x/../victim")),
	odd("double-slash", "Two slashes are not one.", "victim", last("/victim")),
	odd("leading-slash", "A leading slash is part of a key.", "victim", func(folder, leaf string) string { return "/" + folder + leaf }),
	odd("trailing-slash", "A trailing slash is part of a key.", "victim", last("victim/")),
	odd("backslash", "A backslash is not a slash.", "victim", last(`x\..\victim`)),
	odd("encoded", "A key is not percent-decoded.", "victim", last("%76ictim")),
	odd("encoded-slash", "A slash in a key is not percent-decoded.", "victim", last("x%2F..%2Fvictim")),
	odd("encoded-nul", "A NUL in a key is not percent-decoded.", "victim", last("victim%00")),
	odd("query", "A key does not end at a question mark.", "victim", last("victim?x=1")),
	odd("fragment", "A key does not end at a hash.", "victim", last("victim#x")),
	odd("parameter", "A key does not end at a semicolon.", "victim", last("victim;x=1")),
	odd("wildcard", "A key is not a pattern.", "victim", last("v*")),
	odd("long", "A key of 10,000 characters is not cut.", strings.Repeat("v", 200), last(strings.Repeat("v", 10_000))),
}

// A speller returns a modified key. It gets the key of the other secret in two parts: its folder and its last part.
type speller func(folder, leaf string) string

// last replaces the last part.
func last(name string) speller { return func(folder, _ string) string { return folder + name } }

// odd returns a check that compares a modified key with the key of another secret.
func odd(name, reason, otherKey string, spell speller) check {
	return check{"names/" + name, provider.CapabilityRead, reason, func(ctx context.Context, e *env) error {
		key := e.key(otherKey)
		return e.distinguishes(ctx, key, spell(strings.TrimSuffix(key, otherKey), otherKey))
	}}
}

// distinguishes reads a key while the provider has only the other secret, and then, if it accepts the key, while
// it has both.
func (e *env) distinguishes(ctx context.Context, otherKey, key string) error {
	held := map[string][]byte{}
	if e.takes(ctx, otherKey, value("victim")) {
		held[otherKey] = value("victim")
	}
	errs := []error{errors.Wrap(e.reads(ctx, held, otherKey, key), "one secret")}
	if e.takes(ctx, key, value("odd")) {
		held[key] = value("odd")
		errs = append(errs, errors.Wrap(e.reads(ctx, held, otherKey, key), "both secrets"))
	}
	return errors.Join(errs...)
}

// takes stores a secret that the provider can refuse, and reports whether it was accepted.
func (e *env) takes(ctx context.Context, key string, data []byte) bool {
	if e.h.Put(ctx, key, data, nil) != nil {
		return false
	}
	if e.puts == nil {
		e.puts = map[string]bool{}
	}
	e.puts[key] = true
	return true
}

// reads reads keys, one by one and in a batch. Each must have the stored value, or fail with an error that is not
// retried, so that the user learns about it.
func (e *env) reads(ctx context.Context, held map[string][]byte, keys ...string) error {
	var errs []error
	var refs []provider.Ref
	for _, key := range keys {
		refs = append(refs, provider.Ref{Key: key})
		v, err := e.get(ctx, provider.Ref{Key: key})
		errs = append(errs, errors.Wrapf(e.isHeld(held, key, v, err), "Get %.100q", key))
	}
	if _, ok := e.client.(provider.Batcher); !ok {
		return errors.Join(errs...)
	}
	results, err := e.getBatch(ctx, refs)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for i, r := range results {
		errs = append(errs, errors.Wrapf(e.isHeld(held, keys[i], r.Value, r.Err), "GetBatch, %.100q", keys[i]))
	}
	return errors.Join(errs...)
}

// isHeld compares an answer with the stored value. A client can refuse any unusual key as Invalid, but a stored
// secret must not be NotFound.
func (e *env) isHeld(held map[string][]byte, key string, v provider.Value, err error) error {
	data, there := held[key]
	refusals := []provider.Class{provider.Invalid}
	if !there {
		refusals = []provider.Class{provider.Invalid, provider.NotFound, provider.Denied}
	}
	switch {
	case err == nil && there:
		return e.same(provider.Ref{Key: key}, data, v)
	case err == nil:
		return errors.New("there is a value, but no such secret")
	case !slices.Contains(refusals, provider.ClassOf(err)):
		return errors.Errorf("error of class %s, want one of %s: %v", provider.ClassOf(err), refusals, err)
	}
	return holdsNoValue(err)
}
