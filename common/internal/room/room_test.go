package room_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
)

// TestHold checks that readers wait for the bytes of their tenant, also for more than its share, and that what they do not need is given
// back.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		r := room.NewReader(struct{ client.Reader }{}, &quota.Quotas{})
		var order []string
		hold := func(ctx context.Context, name string, bytes int64) *room.Held {
			h, err := r.Hold(ctx, "shop", bytes)
			if err != nil {
				name += " fails"
			}
			order = append(order, name)
			return h
		}
		first := hold(t.Context(), "first", quota.Own)
		second := hold(t.Context(), "second", mib)
		short, cancel := context.WithCancel(t.Context())
		go hold(short, "short", mib)
		synctest.Wait()
		cancel()
		synctest.Wait()
		go func() { hold(t.Context(), "large", 2*quota.Own).Release() }()
		synctest.Wait()
		if other, err := r.HoldIn(t.Context(), "other", quota.Own); err != nil {
			t.Error(err)
		} else {
			other.Release()
		}
		first.Keep(1)
		second.Keep(2 * mib) // It has less.
		synctest.Wait()
		order = append(order, "released")
		first.Release()
		first.Release()
		second.Release()
		synctest.Wait()
		if diff := cmp.Diff([]string{"first", "second", "short fails", "large", "released"}, order); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}
