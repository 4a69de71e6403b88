package room_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/room"
)

// TestHold checks that readers wait for the room of their tenant, also for more than there is in total, and that what they do not
// need is given back.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := room.NewReader(struct{ client.Reader }{})
		var order []string
		hold := func(ctx context.Context, name string, bytes int64) *room.Held {
			h, err := r.Hold(ctx, "shop", bytes)
			if err != nil {
				name += " fails"
			}
			order = append(order, name)
			return h
		}
		first := hold(t.Context(), "first", room.Total-room.One)
		second := hold(t.Context(), "second", room.One)
		short, cancel := context.WithCancel(t.Context())
		go hold(short, "short", room.One)
		synctest.Wait()
		cancel()
		synctest.Wait()
		go func() { hold(t.Context(), "all", 2*room.Total).Release() }()
		synctest.Wait()
		go func() { hold(t.Context(), "third", 1).Release() }()
		synctest.Wait()
		if other, err := r.HoldIn(t.Context(), "other", room.Total); err != nil {
			t.Error(err)
		} else {
			other.Release()
		}
		first.Keep(1)
		second.Keep(2 * room.One) // It has less.
		synctest.Wait()
		order = append(order, "released")
		first.Release()
		first.Release()
		second.Release()
		synctest.Wait()
		if diff := cmp.Diff([]string{"first", "second", "short fails", "released", "all", "third"}, order); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}
