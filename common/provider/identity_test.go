package provider_test

import (
	"context"
	stderrors "errors"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

type identified struct {
	getter

	identity func() (provider.Identity, error)
}

func (i identified) Identity(context.Context) (provider.Identity, error) { return i.identity() }

func TestIdentify(t *testing.T) {
	here := provider.Identity{Place: "here", Prefix: "a/"}
	clientWith := func(i provider.Identity, err error) provider.Client {
		return identified{getter(echo), func() (provider.Identity, error) { return i, err }}
	}
	cases := map[string]struct {
		reason string
		client provider.Client
		want   provider.Identity
		err    error
	}{
		"Known":   {"The Identity of an Identifier is returned.", clientWith(here, nil), here, nil},
		"Unknown": {"A client that is not an Identifier is Unsupported, not a failed store.", getter(echo), provider.Identity{}, stderrors.ErrUnsupported},
		"Fails":   {"A result with an error is ignored.", clientWith(here, errBoom), provider.Identity{}, errBoom},
		"Empty":   {"An empty place is an error, because all empty places would be equal.", clientWith(provider.Identity{Prefix: "a/"}, nil), provider.Identity{}, provider.NewError(provider.Unavailable, "the provider's code returned no location of the secrets")},
		"Panics":  {"A panic is Unavailable, and its value is not shown.", identified{getter(echo), func() (provider.Identity, error) { panic(secret) }}, provider.Identity{}, failed("identifying")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := fake.Link("Test", tc.client).Identify(t.Context())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nIdentify(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.err, err, equateErrors()); diff != "" && !errors.Is(err, tc.err) {
				t.Errorf("%s\nIdentify(...): -want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOverlaps(t *testing.T) {
	at := func(place, prefix string) provider.Identity { return provider.Identity{Place: place, Prefix: prefix} }
	cases := map[string]struct {
		reason string
		a, b   provider.Identity
		want   bool
	}{
		"Same":     {"Equal identities overlap.", at("p", ""), at("p", ""), true},
		"Inside":   {"A prefix selects a part of its place.", at("p", "app/"), at("p", ""), true},
		"Siblings": {"Two different prefixes do not overlap.", at("p", "app/"), at("p", "web/"), false},
		"Other":    {"Two different places do not overlap.", at("p", "app/"), at("q", "app/"), false},
		"Unknown":  {"Unknown places do not overlap.", at("", ""), at("", ""), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]bool{tc.want, tc.want}, []bool{tc.a.Overlaps(tc.b), tc.b.Overlaps(tc.a)}); diff != "" {
				t.Errorf("%s\nboth ways: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
