package provider_test

import (
	"context"
	"errors"
	"slices"
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
	plain, err := kind.Connect(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kind.WithoutRemoteChanges().Connect(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(provider.Capabilities(plain), provider.Capabilities(c)); diff != "" {
		t.Errorf("capabilities: -plain, +without remote changes:\n%s", diff)
	}
	if _, ok := c.(provider.Writer); ok {
		t.Error("a type assertion gives the Writer of the provider")
	}
	w, err := provider.AsWriter(c)
	if err != nil {
		t.Fatal(err)
	}
	to := provider.Target{Key: "db"}
	seen, err := provider.Observe(t.Context(), "FakeStore", w, to)
	if err != nil || string(seen.Data) != "one" {
		t.Fatalf("Observe: %q, %v", seen.Data, err)
	}
	if v, err := provider.Get(t.Context(), "FakeStore", c, provider.Ref{Key: "db"}); err != nil || string(v.Data) != "one" {
		t.Errorf("Get: %q, %v", v.Data, err)
	}
	if err := provider.Check(t.Context(), "FakeStore", c); err != nil {
		t.Errorf("Check: %v", err)
	}
	for name, change := range map[string]func(ctx context.Context) error{
		"Create": func(ctx context.Context) error {
			_, err := w.Create(ctx, provider.Target{Key: "new"}, nil, "m")
			return err
		},
		"Update": func(ctx context.Context) error { _, err := w.Update(ctx, to, seen, []byte("two")); return err },
		"Mark":   func(ctx context.Context) error { return w.Mark(ctx, to, seen, "m") },
		"Delete": func(ctx context.Context) error { return w.Delete(ctx, to, seen) },
	} {
		if err := change(t.Context()); !errors.Is(err, provider.ErrNoRemoteChanges) {
			t.Errorf("%s: got %v, want ErrNoRemoteChanges", name, err)
		}
	}
	if n := b.Writes(); n > 0 {
		t.Errorf("%d writes", n)
	}
	if err := provider.Close(c); err != nil || b.Closes() != 1 {
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
		g, err := k.WithoutRemoteChanges().ConnectGenerator(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		if caps := provider.Capabilities(g); !slices.Contains(caps, provider.CapabilityCleanup) {
			t.Errorf("capabilities are %q", caps)
		}
		if _, err := provider.Generate(t.Context(), "FakeGenerator", g); errors.Is(err, provider.ErrNoRemoteChanges) == readOnly {
			t.Errorf("Generate: %v, with ReadOnly %t", err, readOnly)
		}
		calls := b.Count(fake.CallRenew, fake.CallCleanup)
		if _, err := provider.Renew(t.Context(), "FakeGenerator", g, "state"); !errors.Is(err, provider.ErrNoRemoteChanges) {
			t.Errorf("Renew: %v", err)
		}
		if err := provider.Cleanup(t.Context(), "FakeGenerator", g, "state"); !errors.Is(err, provider.ErrNoRemoteChanges) {
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
