package fake

import (
	"context"

	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/common/store/storetest"
)

// Harness joins the conformance suite to a backend. A provider that is being written may wrap what it
// connects to, until it has a service of its own.
func Harness(b *Backend) storetest.Harness {
	const password = "right"
	b.SetPassword(password)
	return storetest.Harness{
		Connect:       func(ctx context.Context) (store.Client, error) { return b.Connect(ctx, password) },
		ConnectDenied: func(ctx context.Context) (store.Client, error) { return b.Connect(ctx, "wrong") },
		Put: func(_ context.Context, key string, data []byte, tags map[string]string) error {
			b.Put(key, data, Tags(tags))
			return nil
		},
		Delete: func(_ context.Context, key string) error {
			b.Delete(key)
			return nil
		},
		Inject: func(f storetest.Fault) (func(), error) {
			return b.Inject(map[storetest.Failure]Fault{
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
		MaxWrite:  maxSize,
		Metadata:  []string{`{"tags":{"team":"shop"}}`, `{"tags":{"team":"bank"}}`},
		Without:   map[string]string{"transport": "a provider in memory has no network"},
	}
}
