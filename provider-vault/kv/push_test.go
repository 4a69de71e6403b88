package kv

import (
	"strconv"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

func TestPushModel(t *testing.T) {
	t.Parallel()
	conformance.PushModel(t, harness(t))
}

// TestPushAgain checks that a value in sync is not written again, however Vault spells it.
func TestPushAgain(t *testing.T) {
	srv, secrets := writable(t, "secret/*")
	c := connect(t, appRole(srv.URL), secrets)
	p := conformance.Pusher{Store: fake.Link("VaultKV", c), Policies: conformance.PushPolicies{Mark: mark, Features: c.Features()}}
	cases := map[string]struct {
		reason string
		want   conformance.PushValue
	}{
		"Whole":    {"A value with characters that Vault escapes is not written again.", conformance.PushValue{Data: []byte(`{"a":"<&>żółć𝕏","b":"x\n"}`)}},
		"Property": {"A property with characters that Vault escapes is not written again.", conformance.PushValue{Property: "p", Data: []byte("<&>\u2028\"\\")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			target := provider.Target{Key: name}
			first := p.Apply(t.Context(), target, []conformance.PushValue{tc.want}, nil)
			again := p.Apply(t.Context(), target, []conformance.PushValue{tc.want}, first.Entries)
			if first.Err != nil || !first.Wrote || again.Err != nil || again.Wrote {
				t.Errorf("%s first %+v, then %+v", tc.reason, first, again)
			}
		})
	}
}

func TestPushProperties(t *testing.T) {
	t.Parallel()
	h := harness(t)
	conformance.PushProperties(t, h, func(key string) int {
		c, err := h.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = provider.Close(c) }() // The test does not depend on a clean stop.
		v, err := c.Get(t.Context(), provider.Ref{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(v.Version) // KV v2 numbers its versions.
		if err != nil {
			t.Fatal(err)
		}
		return n
	})
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	conformance.RoundTrip(t, harness(t), 1000)
}
