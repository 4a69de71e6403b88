package provider_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// A maker is a Generator without optional interfaces.
type maker func(ctx context.Context) (provider.Generated, error)

func (m maker) Generate(ctx context.Context) (provider.Generated, error) { return m(ctx) }

func connectMaker(context.Context, *v1alpha1.FakeGenerator, provider.Credentials) (provider.Generator, error) {
	return maker(nil), nil
}

func TestConnectGenerator(t *testing.T) {
	connect := func(k provider.Kind) error {
		_, err := k.Connect(t.Context(), k.New(), nil)
		return err
	}
	connectGenerator := func(k provider.Kind) error {
		_, err := k.ConnectGenerator(t.Context(), k.New(), nil)
		return err
	}
	cases := map[string]struct {
		reason  string
		kind    provider.Kind
		connect func(provider.Kind) error
		err     error
	}{
		"Connected": {"A generator Kind creates a Generator.", provider.GeneratorKindOf(connectMaker), connectGenerator, nil},
		"None": {
			"A nil Generator is an error.",
			provider.GeneratorKindOf(func(context.Context, *v1alpha1.FakeGenerator, provider.Credentials) (provider.Generator, error) {
				return nil, nil
			}),
			connectGenerator, provider.NewError(provider.Unavailable, "the provider's code returned no Generator"),
		},
		"Panics": {
			"A panic is Unavailable, and its value is not shown.",
			provider.GeneratorKindOf(func(context.Context, *v1alpha1.FakeGenerator, provider.Credentials) (provider.Generator, error) {
				panic(secret)
			}),
			connectGenerator, failed("connecting"),
		},
		"GeneratorAsStore": {"A generator Kind cannot create a Client.", provider.GeneratorKindOf(connectMaker), connect, provider.NewError(provider.Unavailable, "the provider's code returned no Client")},
		"StoreAsGenerator": {
			"A store Kind cannot create a Generator.",
			provider.KindOf(fakeStores(func(context.Context, *v1alpha1.FakeStore, provider.Credentials) (provider.Client, error) {
				return getter(echo), nil
			})),
			connectGenerator, provider.NewError(provider.Unavailable, "the provider's code returned no Generator"),
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
		kind   provider.Kind
		spec   v1alpha1.FakeGeneratorSpec
		want   []string
	}{
		"Generate": {"A Generator needs only Generate.", provider.GeneratorKindOf(connectMaker), v1alpha1.FakeGeneratorSpec{}, []string{"Generate"}},
		"Check":    {"A Generator can be a Checker.", fakes, v1alpha1.FakeGeneratorSpec{Backend: "main"}, []string{"Generate", "Check"}},
		"All":      {"Values that expire can be renewed and revoked.", fakes, v1alpha1.FakeGeneratorSpec{Backend: "main", TTL: "1h"}, []string{"Generate", "Renew", "Cleanup", "Check"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := tc.kind.ConnectGenerator(t.Context(), &v1alpha1.FakeGenerator{Spec: tc.spec}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, provider.Capabilities(g)); diff != "" {
				t.Errorf("%s\nCapabilities(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
