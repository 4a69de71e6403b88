package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// nameLetters are the characters of random keys and properties: ordinary ones, and those with a meaning somewhere.
const nameLetters = "aaabbb01-_//..  :;%?#&=+*@|\\[](){}!~\"'<>,\n\x00é"

// connectWriter connects to the service until the test ends.
func (h Harness) connectWriter(t *testing.T) (provider.Client, provider.Writer) {
	t.Helper()
	c, err := h.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Close(c) }) // An error of Close does not matter here.
	w, ok := c.(provider.Writer)
	if !ok {
		t.Fatal("the client is no Writer")
	}
	return c, w
}

// RoundTrip pushes random properties to random keys. A read must return exactly what was pushed, and nothing else can
// change. A key or property that is refused must change nothing. It prints its seed.
func RoundTrip(t *testing.T, h Harness, count int) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h = h.complete()
	c, w := h.connectWriter(t)
	r := &roundTrip{
		Rand: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // A test needs no secure random numbers.
		w:    w, c: c, key: h.Key, stored: map[string]map[string]any{},
	}
	for range count {
		if err := r.step(t.Context()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for key, want := range r.stored {
		if diff := cmp.Diff(want, r.read(t.Context(), key).members); diff != "" {
			t.Errorf("seed %d: %q: -want, +got:\n%s", seed, key, diff)
		}
	}
	t.Logf("%d names pushed, %d refused", r.pushed, r.refused)
	if r.pushed < count/20 || r.refused == 0 {
		t.Errorf("seed %d: %d names pushed and %d refused of %d, want both", seed, r.pushed, r.refused, count)
	}
}

type roundTrip struct {
	*rand.Rand
	w   provider.Writer
	c   provider.Client
	key func(string) string
	// stored holds the members of each secret.
	stored          map[string]map[string]any
	pushed, refused int
}

func (r *roundTrip) name() string {
	letters := []rune(nameLetters)
	if r.IntN(3) == 0 {
		letters = letters[:12]
	}
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteRune(letters[r.IntN(len(letters))])
	}
	return b.String()
}

// A reading is what a client reads.
type reading struct {
	data    []byte
	members map[string]any
	err     error
}

func (r *roundTrip) read(ctx context.Context, key string) (got reading) {
	v, err := r.c.Get(ctx, provider.Ref{Key: key})
	got.data, got.err = v.Data, err
	if err == nil {
		got.err = json.Unmarshal(v.Data, &got.members)
	}
	return got
}

// step pushes one value.
func (r *roundTrip) step(ctx context.Context) error {
	key, value := r.key("round-trip/k")+r.name(), fmt.Sprint("v", r.IntN(1000))
	want := push.Value{Data: fmt.Appendf(nil, `{"a":%q}`, value)}
	if r.w.Features().Guarded && r.IntN(3) > 0 {
		want = push.Value{Property: r.name(), Data: []byte(value)}
	}
	p := push.Pusher{Store: fake.Link("test", r.w), Policies: push.Policies{Mark: "00000000-0000-4000-8000-000000000001", Features: r.w.Features()}}
	err := p.Apply(ctx, provider.Target{Key: key}, []push.Value{want}, nil).Err
	got, before := r.read(ctx, key), r.stored[key]
	if err != nil {
		r.refused++
		return r.isRefused(key, want.Property, err, got)
	}
	r.pushed++
	r.stored[key] = got.members
	switch {
	case got.err != nil:
		return fmt.Errorf("%q can be pushed and not read: %w", key, got.err)
	case want.Property == "":
		if diff := cmp.Diff(map[string]any{"a": value}, got.members); diff != "" {
			return fmt.Errorf("%q: -want, +got:\n%s", key, diff)
		}
		return nil
	}
	if text, err := render.Property(got.data, want.Property); err != nil || string(text) != value {
		return fmt.Errorf("%q: property %q is read as %q, error %w; want %q", key, want.Property, text, err, value)
	}
	if n := changed(before, got.members); n > 1 {
		return fmt.Errorf("%q: property %q changes %d members", key, want.Property, n)
	}
	return nil
}

// isRefused checks that a refused push has changed nothing, and that a refused key cannot be read either.
func (r *roundTrip) isRefused(key, property string, err error, got reading) error {
	before, there := r.stored[key]
	switch {
	case provider.ClassOf(err) != provider.Invalid:
		return fmt.Errorf("%q, property %q: error of class %s, want Invalid: %w", key, property, provider.ClassOf(err), err)
	case !there && got.err == nil && r.isVersion(key): // A key can end in the version of another one that was pushed.
	case !there && provider.ClassOf(got.err) != provider.Invalid && !provider.IsNotFound(got.err):
		return fmt.Errorf("%q cannot be pushed (%w), and a read returns %w", key, err, got.err)
	case there && (got.err != nil || changed(before, got.members) > 0):
		return fmt.Errorf("%q, property %q: the refused push changes the secret: %w", key, property, got.err)
	}
	return nil
}

// isVersion reports whether a key is that of a stored secret, with a version behind a colon.
func (r *roundTrip) isVersion(key string) bool {
	name, _, found := strings.Cut(key, ":")
	_, there := r.stored[name]
	return found && there
}

// changed counts the members that differ.
func changed(before, after map[string]any) (n int) {
	for k := range before {
		if v, ok := after[k]; !ok || !cmp.Equal(before[k], v) {
			n++
		}
	}
	for k := range after {
		if _, ok := before[k]; !ok {
			n++
		}
	}
	return n
}
