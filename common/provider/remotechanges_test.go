package provider_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestNoRemoteChangesWriter calls every method of a Writer. Reads must reach the provider, and changes must be refused
// before any call.
func TestNoRemoteChangesWriter(t *testing.T) {
	server := fake.NewServer()
	b := server.Backend("main")
	b.Put("db", []byte("one"))
	kind := server.Kinds()[0]
	o := &fakev1.FakeStore{Spec: fakev1.FakeStoreSpec{Backend: "main"}}
	plain, err := fake.Connect(t.Context(), kind, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := fake.Connect(t.Context(), kind.WithoutRemoteChanges(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain.Capabilities(), c.Capabilities()); diff != "" {
		t.Errorf("capabilities: -plain, +without remote changes:\n%s", diff)
	}
	to := provider.Target{Key: "db"}
	seen, err := c.Observe(t.Context(), to)
	if err != nil || string(seen.Data) != "one" {
		t.Fatalf("Observe: %q, %v", seen.Data, err)
	}
	if v, err := c.Get(t.Context(), provider.Ref{Key: "db"}); err != nil || string(v.Data) != "one" {
		t.Errorf("Get: %q, %v", v.Data, err)
	}
	if err := c.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	for name, change := range map[string]func(ctx context.Context) error{
		"Create": func(ctx context.Context) error {
			_, err := c.Create(ctx, provider.Target{Key: "new"}, nil, "m")
			return err
		},
		"Update": func(ctx context.Context) error { _, err := c.Update(ctx, to, seen, []byte("two")); return err },
		"Mark":   func(ctx context.Context) error { return c.Mark(ctx, to, seen, "m") },
		"Delete": func(ctx context.Context) error { return c.Delete(ctx, to, seen) },
	} {
		if err := change(t.Context()); !errors.Is(err, provider.ErrNoRemoteChanges) {
			t.Errorf("%s: got %v, want ErrNoRemoteChanges", name, err)
		}
	}
	if n := b.Writes(); n > 0 {
		t.Errorf("%d writes", n)
	}
	if err := c.Close(); err != nil || b.Closes() != 1 {
		t.Errorf("Close: %v, %d closes", err, b.Closes())
	}
}

// TestNoRemoteChangesGenerator calls every method of a generator that revokes. A Kind that is ReadOnly may generate.
func TestNoRemoteChangesGenerator(t *testing.T) {
	server := fake.NewServer()
	b := server.Backend("gen")
	o := &fakev1.FakeGenerator{Spec: fakev1.FakeGeneratorSpec{Backend: "gen", TTL: "1h"}}
	kind := server.GeneratorKinds()[0]
	if kind.HoldsBack() || !kind.WithoutRemoteChanges().HoldsBack() || kind.ReadOnly().WithoutRemoteChanges().HoldsBack() {
		t.Error("HoldsBack does not follow WithoutRemoteChanges and ReadOnly")
	}
	for _, readOnly := range []bool{false, true} {
		k := kind
		if readOnly {
			k = k.ReadOnly()
		}
		g, err := fake.Connect(t.Context(), k.WithoutRemoteChanges(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !g.Can(provider.CapabilityCleanup) {
			t.Errorf("capabilities are %q", g.Capabilities())
		}
		if _, err := g.Generate(t.Context()); errors.Is(err, provider.ErrNoRemoteChanges) == readOnly {
			t.Errorf("Generate: %v, with ReadOnly %t", err, readOnly)
		}
		calls := b.Count(fake.CallRenew, fake.CallCleanup)
		if _, err := g.Renew(t.Context(), "state"); !errors.Is(err, provider.ErrNoRemoteChanges) {
			t.Errorf("Renew: %v", err)
		}
		if err := g.Cleanup(t.Context(), "state"); !errors.Is(err, provider.ErrNoRemoteChanges) {
			t.Errorf("Cleanup: %v", err)
		}
		if n := b.Count(fake.CallRenew, fake.CallCleanup); n != calls {
			t.Errorf("%d calls", n-calls)
		}
	}
	if n := b.Count(fake.CallGenerate); n != 1 {
		t.Errorf("%d calls of Generate, want that of the ReadOnly Kind", n)
	}
}
