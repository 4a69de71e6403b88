package secretsmanager

import (
	"context"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/common/store/storetest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestConformance(t *testing.T) {
	aws := startDropping(t)
	storetest.Run(t, storetest.Harness{
		Connect:       func(context.Context) (store.Client, error) { return connectTo(t, aws.url) },
		ConnectDenied: func(context.Context) (store.Client, error) { return connectTo(t, aws.url, withKey("wrong", "wrong")) },
		Put: func(_ context.Context, key string, data []byte, tags map[string]string) error {
			aws.Put(key, data, emulator.Tags(tags))
			return nil
		},
		Delete: func(_ context.Context, key string) error {
			aws.Delete(key)
			return nil
		},
		Inject: func(f storetest.Fault) (func(), error) { return aws.inject(f), nil },
	})
}

var failures = map[storetest.Failure]emulator.Fault{
	storetest.Denied:      {Code: "AccessDeniedException", Message: "User is not authorized"},
	storetest.Throttled:   emulator.Throttled(),
	storetest.Unavailable: {Code: "InternalServiceError"},
	storetest.Hang:        {Hang: true},
}

// inject makes every call fail, or the reads of one secret, by itself and within a batch.
func (d *dropping) inject(f storetest.Fault) func() {
	if f.Failure == storetest.Dropped {
		d.dropped.Store(&f.Key)
		return func() { d.dropped.Store(nil) }
	}
	call := failures[f.Failure]
	if f.Key == "" {
		return d.Inject(call)
	}
	call.SecretID, call.Operation = f.Key, "GetSecretValue"
	entry := call
	entry.Operation, entry.Entry = "", true
	removeCall, removeEntry := d.Inject(call), d.Inject(entry)
	return func() { removeCall(); removeEntry() }
}
