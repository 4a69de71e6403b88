package fake_test

import (
	"context"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/common/store/fake"
	"github.com/direct-secrets/direct-secrets/common/store/storetest"
)

func TestConformance(t *testing.T) {
	cases := map[string]struct {
		reason string
		opts   []fake.Option
	}{
		"Everything": {"A client with every optional interface conforms.", nil},
		"SmallBatch": {"The suite copes with a batch that is smaller than what it asks for.", []fake.Option{fake.BatchSize(2)}},
		"ReadOnly":   {"A client with Get alone conforms.", []fake.Option{fake.ReadOnly()}},
		"NoBatch":    {"Find and Check do not need Batch.", []fake.Option{fake.Without(store.CapabilityBatch)}},
		"OnlyBatch":  {"Batch needs neither Find nor Check.", []fake.Option{fake.Without(store.CapabilityFind, store.CapabilityCheck)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			storetest.Run(t, harness(fake.New(tc.opts...)))
		})
	}
}

// harness joins the conformance suite to a backend.
func harness(b *fake.Backend) storetest.Harness {
	const password = "right"
	b.SetPassword(password)
	return storetest.Harness{
		Connect:       func(ctx context.Context) (store.Client, error) { return b.Connect(ctx, password) },
		ConnectDenied: func(ctx context.Context) (store.Client, error) { return b.Connect(ctx, "wrong") },
		Put: func(_ context.Context, key string, data []byte, tags map[string]string) error {
			b.Put(key, data, fake.Tags(tags))
			return nil
		},
		Delete: func(_ context.Context, key string) error {
			b.Delete(key)
			return nil
		},
		Inject: func(f storetest.Fault) (func(), error) {
			return b.Inject(map[storetest.Failure]fake.Fault{
				storetest.Denied:      {Key: f.Key, Err: store.NewError(store.Denied, "not allowed")},
				storetest.Throttled:   {Key: f.Key, Err: store.NewError(store.Throttled, "slow down")},
				storetest.Unavailable: {Key: f.Key, Err: store.NewError(store.Unavailable, "internal error")},
				storetest.Hang:        {Key: f.Key, Hang: true},
				storetest.Dropped:     {Key: f.Key, Drop: true},
			}[f.Failure]), nil
		},
		// Another spelling than the default, so that the suite proves to use it.
		Key:       func(name string) string { return "/fake/" + name },
		NoVersion: "v0",
	}
}
