package kit

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// TestSlotsOfTenants takes slots for two tenants and for none. Those who wait get what their tenant may have.
func TestSlotsOfTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(4, 2)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		var granted []string
		take := func(tenant string, priority int) {
			go func() {
				if s.take(ctx, tenant, priority) {
					granted = append(granted, tenant)
				}
			}()
			synctest.Wait()
		}
		want := func(reason string, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, granted); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", reason, diff)
			}
			granted = nil
		}
		for range 4 {
			take("shop", 1)
		}
		take("team", 0)
		want("A tenant gets its part, others get the rest.", "shop", "shop", "team")
		take("", 0)
		take("", 0)
		want("Without a tenant there is no part.", "")
		s.give("team")
		want("A free slot goes to the first whose tenant may have it.", "")
		s.give("shop")
		want("A tenant that has given back a slot gets another one.", "shop")
	})
}
