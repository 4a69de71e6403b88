package fake

import (
	"context"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
)

// Harness connects the conformance suite to a backend. A new provider can wrap the returned clients until it has a
// service of its own.
func Harness(b *Backend) conformance.Harness {
	const password = "right"
	b.SetPassword(password)
	return conformance.Harness{
		Connect:          func(ctx context.Context) (provider.Client, error) { return b.Connect(ctx, password) },
		ConnectDenied:    func(ctx context.Context) (provider.Client, error) { return b.Connect(ctx, "wrong") },
		ConnectElsewhere: func(ctx context.Context) (provider.Client, error) { return New().Connect(ctx, password) },
		Put: func(_ context.Context, key string, data []byte, tags map[string]string) error {
			b.Put(key, data, Tags(tags))
			return nil
		},
		Delete: func(_ context.Context, key string) error {
			b.Delete(key)
			return nil
		},
		Inject: func(f conformance.Fault) (func(), error) {
			return b.Inject(map[conformance.Failure]Fault{
				conformance.Denied:      {Key: f.Key, Err: provider.NewError(provider.Denied, "not allowed")},
				conformance.Throttled:   {Key: f.Key, Err: provider.NewError(provider.Throttled, "slow down")},
				conformance.Unavailable: {Key: f.Key, Err: provider.NewError(provider.Unavailable, "internal error")},
				conformance.Hang:        {Key: f.Key, Hang: true},
				conformance.Dropped:     {Key: f.Key, Drop: true},
			}[f.Failure]), nil
		},
		// A format that differs from the default tests that the suite uses Key.
		Key:       func(name string) string { return "/fake/" + name },
		NoVersion: "v0",
		MaxWrite:  maxSize,
		Metadata:  []string{`{"tags":{"team":"shop"}}`, `{"tags":{"team":"bank"}}`},
		Without:   map[string]string{"transport": "a provider in memory has no network"},
	}
}
