package store_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/common/store/fake"
	"github.com/direct-secrets/direct-secrets/common/store/fake/apis/v1alpha1"
)

// A maker is a Generator that has no optional interface.
type maker func(ctx context.Context) (store.Generated, error)

func (m maker) Generate(ctx context.Context) (store.Generated, error) { return m(ctx) }

func connectMaker(context.Context, *v1alpha1.FakeGenerator, store.Credentials) (store.Generator, error) {
	return maker(nil), nil
}

func TestConnectGenerator(t *testing.T) {
	connect := func(k store.Kind) error {
		_, err := k.Connect(t.Context(), k.New(), nil)
		return err
	}
	connectGenerator := func(k store.Kind) error {
		_, err := k.ConnectGenerator(t.Context(), k.New(), nil)
		return err
	}
	cases := map[string]struct {
		reason  string
		kind    store.Kind
		connect func(store.Kind) error
		err     error
	}{
		"Connected": {"A generator Kind has Generators.", store.GeneratorKindOf(connectMaker), connectGenerator, nil},
		"None": {
			"A Generator that is nil is none.",
			store.GeneratorKindOf(func(context.Context, *v1alpha1.FakeGenerator, store.Credentials) (store.Generator, error) {
				return nil, nil
			}),
			connectGenerator, store.NewError(store.Unavailable, "the provider's code returned no Generator"),
		},
		"Panics": {
			"A panic proves nothing, and its value stays hidden.",
			store.GeneratorKindOf(func(context.Context, *v1alpha1.FakeGenerator, store.Credentials) (store.Generator, error) {
				panic(secret)
			}),
			connectGenerator, failed("connecting"),
		},
		"GeneratorAsStore": {"Nothing can be read of a generator.", store.GeneratorKindOf(connectMaker), connect, store.NewError(store.Unavailable, "the provider's code returned no Client")},
		"StoreAsGenerator": {
			"A store makes nothing.",
			store.KindOf(fakeStores(func(context.Context, *v1alpha1.FakeStore, store.Credentials) (store.Client, error) {
				return getter(echo), nil
			})),
			connectGenerator, store.NewError(store.Unavailable, "the provider's code returned no Generator"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.err, tc.connect(tc.kind), equateErrors()); diff != "" {
				t.Errorf("%s\n-want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGeneratorCapabilities(t *testing.T) {
	srv := fake.NewServer()
	srv.Backend("main")
	fakes := srv.GeneratorKinds()[0]
	cases := map[string]struct {
		reason string
		kind   store.Kind
		spec   v1alpha1.FakeGeneratorSpec
		want   []string
	}{
		"Generate": {"A Generator need not do more.", store.GeneratorKindOf(connectMaker), v1alpha1.FakeGeneratorSpec{}, []string{"Generate"}},
		"Check":    {"It may be checked.", fakes, v1alpha1.FakeGeneratorSpec{Backend: "main"}, []string{"Generate", "Check"}},
		"All":      {"What expires is renewed and revoked.", fakes, v1alpha1.FakeGeneratorSpec{Backend: "main", TTL: "1h"}, []string{"Generate", "Renew", "Cleanup", "Check"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := tc.kind.ConnectGenerator(t.Context(), &v1alpha1.FakeGenerator{Spec: tc.spec}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, store.Capabilities(g)); diff != "" {
				t.Errorf("%s\nCapabilities(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
