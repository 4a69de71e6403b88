package conformance

import (
	"context"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// nameChecks ask for keys that a careless client, or what lies between it and the provider, takes for
// another secret's.
var nameChecks = []check{
	odd("space", "A space is a character like any other.", "victim", last("vic tim")),
	odd("space-before", "White space belongs to a key.", "victim", last(" victim")),
	odd("space-after", "White space belongs to a key.", "victim", last("victim ")),
	odd("newline", "So does the end of a line.", "victim", last("victim\n")),
	odd("control", "Control characters do not vanish.", "victim", last("vic\x01tim")),
	odd("nul", "A key does not end at a NUL.", "victim", last("victim\x00x")),
	odd("not-utf8", "Nor at what is no character.", "victim", last("victim\xff")),
	odd("upper-case", "Upper and lower case differ.", "victim", last("VICTIM")),
	odd("unicode", "Letters beyond ASCII are letters.", "victim", last("víctim–秘密🔑")),
	odd("full-width", "What looks alike is not the same.", "victim", last("ｖictim")),
	odd("invisible", "Characters without a width count.", "victim", last("vic\u200btim")),
	odd("decomposed", "Two spellings of one letter are two keys: nobody can tell which was meant.", "v\u00edctim", last("vi\u0301ctim")),
	odd("composed", "Two spellings of one letter are two keys: nobody can tell which was meant.", "vi\u0301ctim", last("v\u00edctim")),
	odd("dot", "A dot is no place.", "victim", last("./victim")),
	odd("dot-dot", "Nor do two lead out of a folder, or out of the part of the provider that the store names.", "victim", last("x/../victim")),
	odd("double-slash", "Two slashes are not one.", "victim", last("/victim")),
	odd("leading-slash", "A slash in front counts.", "victim", func(folder, leaf string) string { return "/" + folder + leaf }),
	odd("trailing-slash", "A slash at the end counts.", "victim", last("victim/")),
	odd("backslash", "A backslash is no slash.", "victim", last(`x\..\victim`)),
	odd("encoded", "A key is not decoded.", "victim", last("%76ictim")),
	odd("encoded-slash", "A key is not decoded.", "victim", last("x%2F..%2Fvictim")),
	odd("encoded-nul", "A key is not decoded.", "victim", last("victim%00")),
	odd("query", "A question mark does not end a key.", "victim", last("victim?x=1")),
	odd("fragment", "Nor does a hash.", "victim", last("victim#x")),
	odd("parameter", "Nor does a semicolon.", "victim", last("victim;x=1")),
	odd("wildcard", "A key is no pattern.", "victim", last("v*")),
	odd("long", "A key of 10,000 characters is not cut.", strings.Repeat("v", 200), last(strings.Repeat("v", 10_000))),
}

// A speller makes a key of a victim's: of what comes before its last part, and that part.
type speller func(folder, leaf string) string

// last spells the last part otherwise.
func last(name string) speller { return func(folder, _ string) string { return folder + name } }

// odd checks a key beside that of a victim.
func odd(name, reason, victim string, spell speller) check {
	return check{"names/" + name, provider.CapabilityRead, reason, func(ctx context.Context, e *env) error {
		key := e.key(victim)
		return e.tellsApart(ctx, key, spell(strings.TrimSuffix(key, victim), victim))
	}}
}

// tellsApart reads a key while the provider may hold that of a victim, and then, if it takes such
// a key at all, both.
func (e *env) tellsApart(ctx context.Context, victim, key string) error {
	held := map[string][]byte{}
	if e.takes(ctx, victim, value("victim")) {
		held[victim] = value("victim")
	}
	errs := []error{errors.Wrap(e.reads(ctx, held, victim, key), "one secret")}
	if e.takes(ctx, key, value("odd")) {
		held[key] = value("odd")
		errs = append(errs, errors.Wrap(e.reads(ctx, held, victim, key), "both secrets"))
	}
	return errors.Join(errs...)
}

// takes puts a secret that the provider need not take, and reports whether it did.
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

// reads asks for keys, one by one and at once. Each must yield what is held under it, and otherwise
// fail for good: who asked for it must learn that.
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

// isHeld compares an answer with what is held under a key. A client may refuse any odd key as Invalid,
// but one that the provider holds is not missing.
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
