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
	cases := map[string]struct {
		reason string
		kind   provider.Kind
		err    error
	}{
		"Connected": {"A generator Kind creates a Generator.", provider.GeneratorKindOf(connectMaker), nil},
		"None": {
			"A nil Generator is an error.",
			provider.GeneratorKindOf(func(context.Context, *v1alpha1.FakeGenerator, provider.Credentials) (provider.Generator, error) {
				return nil, nil
			}),
			provider.NewError(provider.Unavailable, "the provider's code returned no Generator"),
		},
		"Panics": {
			"A panic is Unavailable, and its value is not shown.",
			provider.GeneratorKindOf(func(context.Context, *v1alpha1.FakeGenerator, provider.Credentials) (provider.Generator, error) {
				panic(secret)
			}),
			failed("connecting"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := fake.Connect(t.Context(), tc.kind, tc.kind.New(), nil)
			if diff := cmp.Diff(tc.err, err, equateErrors()); diff != "" {
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
			g, err := fake.Connect(t.Context(), tc.kind, &v1alpha1.FakeGenerator{Spec: tc.spec}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, g.Capabilities()); diff != "" {
				t.Errorf("%s\nCapabilities(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
