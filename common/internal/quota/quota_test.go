package quota_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

const piece, most = 64 << 10, 1 << 20

// fill counts pieces until there is no room, and returns how many bytes these are.
func fill(t *quota.Tenant, most int64) (n int64) {
	for ; t.Room(most); n += piece {
		t.Add(piece)
	}
	return n
}

// TestShares lets many tenants hold as much as they can. The last third is for those that hold less than an eighth, and only one at a time
// exceeds its share. All bytes are free again after their release.
func TestShares(t *testing.T) {
	t.Parallel()
	var q quota.Quotas
	tenants, beyond := map[*quota.Tenant]int64{}, 0
	for i := range 200 {
		tenant := q.Tenant(fmt.Sprint(i))
		if tenants[tenant] = fill(tenant, most); tenants[tenant] > quota.Own {
			beyond++
		}
	}
	if beyond != 1 {
		t.Errorf("%d tenants exceed their share, want 1", beyond)
	}
	if used := q.Used(); used < quota.Total || used > quota.Total+most+piece {
		t.Errorf("all tenants together hold %d bytes", used)
	}
	for tenant, n := range tenants {
		tenant.Add(-n)
	}
	if q.Used() != 0 {
		t.Errorf("%d bytes are never released", q.Used())
	}
	if n := fill(q.Tenant("last"), most); n != quota.Own+most {
		t.Errorf("a tenant alone holds %d bytes, want %d", n, quota.Own+most)
	}
}

// TestLastThird fills two thirds of all bytes. The rest is for tenants that hold little.
func TestLastThird(t *testing.T) {
	t.Parallel()
	var q quota.Quotas
	for i := range 3 {
		fill(q.Tenant(fmt.Sprint("large-", i)), 0)
	}
	for i := range 2 {
		if n := fill(q.Tenant(fmt.Sprint("small-", i)), 0); n != quota.Total/8 {
			t.Errorf("while others hold two thirds, a tenant holds %d bytes, want %d", n, quota.Total/8)
		}
	}
}

// TestTenantIsOne checks that a tenant is the same after its stores were deleted and created again, as long as something counts.
func TestTenantIsOne(t *testing.T) {
	t.Parallel()
	var q quota.Quotas
	one := q.Tenant("shop")
	fill(one, most)
	one.EndUse()
	q.Tenant("new")
	if q.Tenant("shop").Room(most) {
		t.Error("a tenant has more room after deleting its stores and creating them again")
	}
}

// TestCall makes the maximum number of calls, and one more.
func TestCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q quota.Quotas
		shop, ctx := q.Tenant("shop"), t.Context()
		var ends []func(int64)
		for range quota.Calls {
			end, err := shop.Call(ctx)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := shop.Call(short); err == nil {
			t.Error("a call above the limit is made")
		}
		if _, err := q.Tenant("other").Call(ctx); err != nil {
			t.Errorf("another tenant: %v", err)
		}
		time.AfterFunc(time.Minute, func() { ends[0](0) })
		start := time.Now()
		if _, err := shop.Call(ctx); err != nil || time.Since(start) != time.Minute {
			t.Errorf("a call when another ends: %v after %s", err, time.Since(start))
		}
	})
}

// TestReleaseWaiting releases bytes while more of them are waited for. None count in the end.
func TestReleaseWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q quota.Quotas
		shop := q.Tenant("shop")
		shop.Add(quota.Own + most)
		h := shop.Holder(nil)
		go func() { _ = h.Grow(t.Context(), most, most) }()
		synctest.Wait()
		h.Release()
		shop.Add(-quota.Own - most)
		if synctest.Wait(); q.Used() != 0 {
			t.Errorf("%d bytes are never released", q.Used())
		}
	})
}

// TestWork has one tenant ask for heavy work again and again. Another one waits for one piece of work only.
func TestWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q quota.Quotas
		ctx, cancel := context.WithCancel(t.Context())
		running := 0
		work := func(ctx context.Context, tenant string) {
			end, err := q.Tenant(tenant).Work(ctx)
			if err != nil {
				return
			}
			if running++; running > 1 {
				t.Errorf("%d at the same time", running)
			}
			time.Sleep(time.Second)
			running--
			end()
		}
		for range 200 {
			go func() {
				for ctx.Err() == nil {
					work(ctx, "hostile")
				}
			}()
		}
		time.Sleep(time.Minute + time.Second/2)
		start := time.Now()
		if work(t.Context(), "shop"); time.Since(start) > 2*time.Second {
			t.Errorf("another tenant waits %s", time.Since(start)-time.Second)
		}
		cancel()
		work(t.Context(), "hostile") // Those that have given up hold no turn.
	})
}

// TestSlots takes slots for two tenants and for none. Those who wait get what their tenant may have.
func TestSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := quota.Quotas{Slots: 8}
		ctx, cancel := context.WithCancel(t.Context())
		ends := map[string][]func(){}
		take := func(tenant string) {
			go func() {
				if end, err := q.Slot(ctx, tenant); err == nil {
					ends[tenant] = append(ends[tenant], end)
				}
			}()
			synctest.Wait()
		}
		end := func(tenant string) {
			release := ends[tenant][0]
			ends[tenant] = ends[tenant][1:]
			release() // Another goroutine may note its slot.
			synctest.Wait()
		}
		want := func(reason string, shop, team, none int) {
			t.Helper()
			if diff := cmp.Diff([]int{shop, team, none}, []int{len(ends["shop"]), len(ends["team"]), len(ends[""])}); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", reason, diff)
			}
		}
		for range 4 {
			take("shop")
		}
		take("team")
		for range 6 {
			take("")
		}
		want("A tenant gets its quarter, others get the rest.", 2, 1, 5)
		end("team")
		want("A free slot goes to the first that waits.", 2, 0, 6)
		end("shop")
		want("A tenant that has given back a slot gets another one.", 2, 0, 6)
		cancel()
	})
}

// TestRate makes one call after another for five minutes.
func TestRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q quota.Quotas
		shop, start, calls := q.Tenant("shop"), time.Now(), 0
		for time.Since(start) < 5*time.Minute {
			end, err := shop.Call(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			end(0)
			calls++
		}
		if perSecond := calls / 300; perSecond > 512 || perSecond < quota.Rate {
			t.Errorf("%d calls a second", perSecond)
		}
	})
}

func TestWait(t *testing.T) {
	t.Parallel()
	const full, second = quota.Burst * quota.Call, quota.Rate * quota.Call
	type wait struct{ Periodic, Urgent time.Duration }
	cases := map[string]struct {
		reason string
		bytes  []int64
		after  time.Duration
		want   wait
	}{
		"Nothing":   {"A tenant starts without debt.", nil, 0, wait{}},
		"Burst":     {"A burst causes no wait.", []int64{full}, 0, wait{}},
		"More":      {"Calls above the burst wait.", []int64{full, second}, 0, wait{Periodic: time.Second}},
		"Urgent":    {"Urgent calls have twice the burst.", []int64{full, full, second}, 0, wait{Periodic: quota.Burst*time.Second/quota.Rate + time.Second, Urgent: time.Second}},
		"Later":     {"Debt decreases over time.", []int64{full, second, second}, time.Second, wait{Periodic: time.Second}},
		"MuchLater": {"Debt never falls below zero.", []int64{full}, time.Hour, wait{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := (&quota.Quotas{}).Tenant("shop")
			now := time.Now()
			for _, n := range tc.bytes {
				s.Spend(now, n)
			}
			now = now.Add(tc.after)
			got := wait{s.Wait(now, false), s.Wait(now, true)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// trickle has the server of a tenant send one answer after another, each of which stops in the middle.
func trickle(ctx context.Context, t *quota.Tenant, bytes, most int64) {
	for ctx.Err() == nil {
		answer, abort := context.WithCancel(ctx)
		h := t.Holder(abort)
		var err error
		for n := int64(piece); n <= bytes && err == nil; n += piece {
			err = h.Grow(answer, n, most)
		}
		<-answer.Done()
		h.Release()
		abort()
	}
}

// TestSlowAnswers has the server of a tenant send answers that stop. Another one gets its answers within two seconds, whatever their
// size.
func TestSlowAnswers(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	cases := map[string]struct {
		reason      string
		sent, most  int64
		wants, of   int64
		immediately bool
	}{
		"Secret": {"A tenant's own share is free.", 5 * mib / 2, 3 * mib, 3 * mib, 3 * mib, true},
		"Find":   {"A slow list is ended for a large one.", 16 * mib, 16 * mib, 16 * mib, 16 * mib, false},
		"Usual":  {"A list of the usual size fits in addition.", 16 * mib, 16 * mib, 3 * mib, 16 * mib, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var q quota.Quotas
				ctx, cancel := context.WithCancel(t.Context())
				for range 10 {
					go trickle(ctx, q.Tenant("hostile"), tc.sent, tc.most)
				}
				time.Sleep(time.Minute)
				for range 5 {
					h, start := q.Tenant("shop").Holder(nil), time.Now()
					for n := int64(piece); n <= tc.wants; n += piece {
						if err := h.Grow(t.Context(), n, tc.of); err != nil {
							t.Fatal(err)
						}
					}
					if took := time.Since(start); took > 2*time.Second || tc.immediately && took > 0 {
						t.Errorf("%s\nthe bytes were held after %s", tc.reason, took)
					}
					if n := q.Used(); n > quota.Total+tc.most+tc.of {
						t.Errorf("%d bytes are held", n)
					}
					h.Release()
					time.Sleep(10 * time.Second)
				}
				cancel()
				if synctest.Wait(); q.Used() != 0 {
					t.Errorf("%d bytes are never released", q.Used())
				}
			})
		})
	}
}

// TestWaiting has a tenant use up each of its shares. The metric says so, with its name only if that is asked for.
func TestWaiting(t *testing.T) {
	t.Parallel()
	for _, perTenant := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q := quota.Quotas{Slots: 4, PerTenant: perTenant}
			ctx, cancel := context.WithCancel(t.Context())
			shop := q.Tenant("shop")
			for range quota.Calls + 1 {
				go func() { _, _ = shop.Call(ctx) }()
			}
			for range 2 {
				go func() { _, _ = shop.OwnWork(ctx) }()
				go func() { _, _ = q.Slot(ctx, "shop") }()
				go func() { _ = shop.Holder(nil).Grow(ctx, 2*quota.Own, 2*quota.Own) }()
			}
			defer shop.Waits("walks")()
			synctest.Wait()
			want := map[string]float64{"calls": 1, "lists": 0, "memory": 1, "rate": 0, "slots": 1, "walks": 1, "work": 1}
			if perTenant {
				for _, what := range []string{"calls", "memory", "slots", "walks", "work"} {
					want[what+" of shop"] = 1
				}
			}
			got := map[string]float64{}
			registry := prometheus.NewRegistry()
			registry.MustRegister(&q)
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range families[0].GetMetric() {
				what, tenant := m.GetLabel()[0].GetValue(), m.GetLabel()[1].GetValue()
				if tenant != "" {
					what += " of " + tenant
				}
				got[what] = m.GetGauge().GetValue()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("callers that wait: -want, +got:\n%s", diff)
			}
			cancel()
			synctest.Wait()
		})
	}
}
