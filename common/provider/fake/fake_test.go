package fake_test

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

func TestConformance(t *testing.T) {
	cases := map[string]struct {
		reason string
		opts   []fake.Option
	}{
		"Everything": {"A client with every optional interface conforms.", nil},
		"SmallBatch": {"The suite supports a small batch.", []fake.Option{fake.BatchSize(2)}},
		"ReadOnly":   {"A client with only Get conforms.", []fake.Option{fake.ReadOnly()}},
		"NoBatch":    {"Find and Check do not need Batch.", []fake.Option{fake.Without(provider.CapabilityBatch)}},
		"Weak":       {"A Writer can have no guarantees.", []fake.Option{fake.Weak()}},
		"Late":       {"A Writer can return overwritten values as lost.", []fake.Option{fake.Late()}},
		"OnlyBatch":  {"Batch does not need Find or Check.", []fake.Option{fake.Without(provider.CapabilityFind, provider.CapabilityCheck)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			conformance.Run(t, conformance.Fake(fake.New(tc.opts...)))
		})
	}
}
