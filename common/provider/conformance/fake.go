package conformance

import (
	"context"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// Fake connects the suite to a provider in memory. A new provider can wrap the returned clients until it has a service of
// its own.
func Fake(b *fake.Backend) Harness {
	const password = "right"
	b.SetPassword(password)
	return Harness{
		Connect:          func(ctx context.Context) (provider.Client, error) { return b.Connect(ctx, password) },
		ConnectDenied:    func(ctx context.Context) (provider.Client, error) { return b.Connect(ctx, "wrong") },
		Spell:            func(_ context.Context, key string) (string, error) { return fake.Full + key, nil },
		ConnectElsewhere: func(ctx context.Context) (provider.Client, error) { return fake.New().Connect(ctx, password) },
		Put: func(_ context.Context, key string, data []byte, tags map[string]string) error {
			b.Put(key, data, fake.Tags(tags))
			return nil
		},
		Delete: func(_ context.Context, key string) error {
			b.Delete(key)
			return nil
		},
		Inject: func(f Fault) (func(), error) {
			return b.Inject(map[Failure]fake.Fault{
				Denied:      {Key: f.Key, Err: provider.NewError(provider.Denied, "not allowed")},
				Throttled:   {Key: f.Key, Err: provider.NewError(provider.Throttled, "slow down")},
				Unavailable: {Key: f.Key, Err: provider.NewError(provider.Unavailable, "internal error")},
				Hang:        {Key: f.Key, Hang: true},
				Dropped:     {Key: f.Key, Drop: true},
			}[f.Failure]), nil
		},
		// A format that differs from the default tests that the suite uses Key.
		Key:       func(name string) string { return "/fake/" + name },
		NoVersion: "v0",
		MaxWrite:  fake.MaxSize,
		Metadata:  []string{`{"tags":{"team":"shop"}}`, `{"tags":{"team":"bank"}}`},
		Without:   map[string]string{"transport": "a provider in memory has no network"},
	}
}
