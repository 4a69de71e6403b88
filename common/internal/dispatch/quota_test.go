package dispatch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// large returns a backend with n secrets of one MiB each.
func large(n int) *fake.Backend {
	b := fake.New(fake.BatchSize(1))
	for _, k := range keys(0, n) {
		b.Put(k, bytes.Repeat([]byte("v"), 1<<20))
	}
	return b
}

// TestQuotaOfAStore uses a store with large answers that are not taken. It is read only up to its share, other
// stores are read meanwhile, and its reads continue as soon as answers are taken.
func TestQuotaOfAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 100
		shared := &quota.Quotas{}
		l := connected(t, connectTo(large(objects)), Options{Quotas: shared, Tenant: "shop"})
		var all []*asked
		for _, k := range keys(0, objects) {
			all = append(all, ask(l, New, k))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		// The answers to calls that were under way before the first answer count, too.
		if got := shared.Used(); got < quota.Own || got > quota.Own+maxRequest+32<<20 {
			t.Errorf("%d MiB are held, want %d and what was under way", got>>20, quota.Own>>20)
		}
		other := connected(t, connectTo(filled(1)), Options{Quotas: shared, Tenant: "other"})
		a := ask(other, New, "k0")
		time.Sleep(time.Second)
		synctest.Wait()
		if diff := cmp.Diff(map[string]string{"k0": "k0"}, a.values()); diff != "" {
			t.Errorf("another store: -want, +got:\n%s", diff)
		}
		taken := 0
		for range objects {
			for i, a := range all {
				if a != nil && a.values() != nil {
					taken, all[i] = taken+1, nil
				}
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if taken != objects {
			t.Errorf("%d of %d objects got their answers", taken, objects)
		}
		idle(t, l)
		idle(t, other)
	})
}

// TestQuotaOfAnObject asks for more than a Secret can hold. Answers above the limit are errors, and are not held in
// memory.
func TestQuotaOfAnObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secrets = 40
		l := connected(t, connectTo(large(secrets)), Options{})
		a := ask(l, New, keys(0, secrets)...)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := l.tenant.Used(); got > maxRequest {
			t.Errorf("%d MiB are held for one object, want at most %d", got>>20, maxRequest>>20)
		}
		failed := 0
		for _, outcome := range a.values() {
			if outcome == string(provider.Invalid) {
				failed++
			}
		}
		if diff := cmp.Diff(secrets-maxRequest>>20, failed); diff != "" {
			t.Errorf("failed reads: -want, +got:\n%s", diff)
		}
		idle(t, l)
	})
}

// TestQuotaComesBack requests, takes and drops secrets in any order, with errors in between. In the end no bytes
// count.
func TestQuotaComesBack(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint("Seed", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0))
				b := large(30)
				b.Inject(fake.Fault{Key: "k3", Err: errBoom})
				b.Inject(fake.Fault{Call: fake.CallGet, Latency: time.Second})
				l := connected(t, connectTo(b), Options{})
				var all []*asked
				for range 60 {
					from := random.IntN(31)
					all = append(all, ask(l, Urgency(random.IntN(3)), keys(from, min(31, from+1+random.IntN(25)))...))
					time.Sleep(time.Duration(random.IntN(1500)) * ms)
					i := random.IntN(len(all))
					if random.IntN(2) == 0 {
						all[i].take()
					} else {
						all[i].drop()
					}
				}
				for range 100 {
					time.Sleep(time.Minute)
					synctest.Wait()
					for _, a := range all {
						a.take()
					}
				}
				for i, a := range all {
					if a.done.Load() == 0 && a.ctx.Err() == nil {
						t.Errorf("request %d never got all of its answers", i)
					}
				}
				idle(t, l)
			})
		})
	}
}
