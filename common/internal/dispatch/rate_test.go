package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// TestRate reads objects as often as possible. The store is called no more often than its tenant is allowed to, and a
// new object does not wait for that limit.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := filled(1, fake.BatchSize(1))
		l := connected(t, connectTo(b), Options{})
		begin := time.Now()
		const reads = 10_000
		for range reads {
			a := ask(l, Periodic, "k0")
			for a.done.Load() == 0 {
				time.Sleep(ms)
				synctest.Wait()
			}
			a.values()
		}
		took := time.Since(begin)
		if want := (reads - quota.Burst - 1) * time.Second / quota.Rate; took < want {
			t.Errorf("%d reads took %s, want at least %s", reads, took, want)
		}
		begin = time.Now()
		a := ask(l, New, "k0")
		time.Sleep(10 * ms)
		synctest.Wait()
		if a.done.Load() == 0 {
			t.Errorf("a new object waits for longer than %s", time.Since(begin))
		}
		a.values()
		idle(t, l)
	})
}

// TestRateIsReported uses a tenant far above its limit. Requests that fail because of that report it, and later requests
// are read.
func TestRateIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := connected(t, connectTo(filled(1, fake.BatchSize(1))), Options{})
		l.tenant.Spend(time.Now(), quota.Call*(3*quota.Burst+2*heldBackFor.Milliseconds()/1000*quota.Rate))
		a := ask(l, New, "k0")
		time.Sleep(heldBackFor + time.Second)
		synctest.Wait()
		if diff := cmp.Diff(same(string(provider.Throttled), "k0"), a.values()); diff != "" {
			t.Errorf("a request that waits: -want, +got:\n%s", diff)
		}
		a = ask(l, New, "k0")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if outcome := a.values()["k0"]; outcome != string(provider.Throttled) {
			t.Errorf("a request that waits again: %q", outcome)
		}
		a = ask(l, New, "k0")
		time.Sleep(time.Second)
		synctest.Wait()
		if diff := cmp.Diff(same("k0", "k0"), a.values()); diff != "" {
			t.Errorf("a request when that is over: -want, +got:\n%s", diff)
		}
		idle(t, l)
	})
}

// TestTooMuchIsNotRead requests more than one object is allowed to read. Once the limit is reached, the rest is not
// read.
func TestTooMuchIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secrets = 40
		b := large(secrets)
		l := connected(t, connectTo(b), Options{MaxCalls: 1})
		a := ask(l, New, keys(0, secrets)...)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(a.values()) != secrets {
			t.Error("not every secret has an answer")
		}
		if diff := cmp.Diff(maxRequest>>20+1, b.Reads()); diff != "" {
			t.Errorf("reads: -want, +got:\n%s", diff)
		}
		idle(t, l)
	})
}

// TestTooMuchIsCountedOnce has a request exceed the limit twice, while another one waits for a read of both.
func TestTooMuchIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := connected(t, connectTo(large(10)), Options{MaxCalls: 6})
		former := ask(l, New, "k9")
		time.Sleep(50 * time.Millisecond)
		r := l.start(trace.Parent{}, readsOf(append([]string{"k9"}, keys(0, 6)...)...), true, time.Now()) // k9 must wait.
		other := ask(l, Fresh, "k9")
		time.Sleep(time.Minute)
		synctest.Wait()
		if r.missing != 0 {
			t.Errorf("%d of its reads have no result, want 0", r.missing)
		}
		l.release(r)
		former.drop()
		other.drop()
		synctest.Wait()
		idle(t, l)
	})
}
