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
		"SmallBatch": {"The suite copes with a batch that is smaller than what it asks for.", []fake.Option{fake.BatchSize(2)}},
		"ReadOnly":   {"A client with Get alone conforms.", []fake.Option{fake.ReadOnly()}},
		"NoBatch":    {"Find and Check do not need Batch.", []fake.Option{fake.Without(provider.CapabilityBatch)}},
		"Weak":       {"A Writer may promise nothing.", []fake.Option{fake.Weak()}},
		"Late":       {"A Writer may find out afterwards what it has covered.", []fake.Option{fake.Late()}},
		"OnlyBatch":  {"Batch needs neither Find nor Check.", []fake.Option{fake.Without(provider.CapabilityFind, provider.CapabilityCheck)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			conformance.Run(t, fake.Harness(fake.New(tc.opts...)))
		})
	}
}
