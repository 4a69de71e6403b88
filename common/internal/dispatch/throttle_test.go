package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// throttled returns the error of a provider that throttles, with a time to wait.
func throttled(after time.Duration) error {
	return &provider.Error{Class: provider.Throttled, Message: "slow down", RetryAfter: after}
}

func TestLearn(t *testing.T) {
	const no, ok = "no", "ok"
	times := func(n int, s string) (out []string) {
		for range n {
			out = append(out, s)
		}
		return out
	}
	cases := map[string]struct {
		reason  string
		answers []string
		want    rate.Limit
	}{
		"Healthy":   {"Without a Throttled answer there is no limit.", times(3, ok), rate.Inf},
		"First":     {"The first Throttled answer limits the rate.", []string{no}, 8},
		"Second":    {"Each further Throttled answer halves the rate.", []string{no, no}, 4},
		"Third":     {"Each further Throttled answer halves the rate.", []string{no, no, no}, 2},
		"Lowest":    {"The rate never falls below one call in two seconds.", times(20, no), 0.5},
		"Recovers":  {"Another answer raises the rate by a tenth.", []string{no, ok}, 8.8},
		"Recovered": {"Above 64 calls a second the limit is removed.", append([]string{no}, times(22, ok)...), rate.Inf},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := limiter{bucket: rate.NewLimiter(rate.Inf, 1)}
			now := time.Now()
			for _, a := range tc.answers {
				results := []provider.Answer{{}, {}}
				if a == no {
					results[1].Err = throttled(0)
				}
				m.learn(now, results)
			}
			near := cmp.Comparer(func(a, b rate.Limit) bool { return a == b || max(a-b, b-a) < 1e-9 })
			if diff := cmp.Diff(tc.want, m.bucket.Limit(), near); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestThrottled requests k0 from a provider that throttles its first calls. After k0 has failed, it requests the next
// keys one by one.
func TestThrottled(t *testing.T) {
	type args struct {
		err   error
		times int
		// next is when each further key is requested, after the start.
		next []time.Duration
	}
	type want struct {
		Calls    []time.Duration
		Outcomes []string
		// AnsweredAt is when each of the further keys was answered.
		AnsweredAt []time.Duration
	}
	const s = time.Second
	cases := map[string]struct {
		reason string
		args   args
		want   want
	}{
		"RetryAfter": {
			"No call is made before the provider's time to wait is over.",
			args{throttled(10 * s), 1, []time.Duration{s, 2 * s}},
			want{[]time.Duration{0, 10 * s, 10*s + 114*ms}, []string{"Throttled", "k1", "k2"}, []time.Duration{10 * s, 10*s + 114*ms}},
		},
		"NoRetryAfter": {
			"Without a time to wait, only the rate delays calls.",
			args{throttled(0), 1, []time.Duration{s, s, s}},
			want{[]time.Duration{0, s, s + 114*ms, s + 217*ms}, []string{"Throttled", "k1", "k2", "k3"}, []time.Duration{s, s + 114*ms, s + 217*ms}},
		},
		"HeldBack": {
			"After 30 s a delayed request fails with the reason, without a call.",
			args{throttled(time.Hour), 1, []time.Duration{s, 2 * s}},
			want{[]time.Duration{0}, []string{"Throttled", "Throttled", "Throttled"}, []time.Duration{31 * s, 32 * s}},
		},
		"Hours": {
			"A time to wait of hours is cut to five minutes.",
			args{throttled(719 * time.Hour), 1, []time.Duration{4*time.Minute + 50*s, 5*time.Minute + s}},
			want{[]time.Duration{0, 5 * time.Minute, 5*time.Minute + s}, []string{"Throttled", "k1", "k2"}, []time.Duration{5 * time.Minute, 5*time.Minute + s}},
		},
		"HeldBackDespiteNews": {
			"Later requests do not extend the wait of earlier ones.",
			args{throttled(time.Hour), 1, []time.Duration{s, 20 * s, 30 * s, 30*s + 999*ms}},
			want{[]time.Duration{0}, []string{"Throttled", "Throttled", "Throttled", "Throttled", "Throttled"}, []time.Duration{31 * s, 50 * s, 60 * s, 60*s + 999*ms}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := filled(10, fake.ReadOnly())
				b.Inject(fake.Fault{Call: fake.CallGet, Times: tc.args.times, Err: tc.args.err})
				l := connected(t, connectTo(b), Options{MaxCalls: 1})
				start := time.Now()
				all := []*asked{ask(l, New, "k0")}
				for i, at := range tc.args.next {
					time.Sleep(time.Until(start.Add(at)))
					synctest.Wait()
					all = append(all, ask(l, New, keys(i+1, i+2)...))
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()

				var got want
				for _, c := range calls(b, start) {
					got.Calls = append(got.Calls, c.At)
				}
				for i, a := range all {
					for _, o := range a.values() {
						got.Outcomes = append(got.Outcomes, o)
					}
					if n := a.done.Load(); n != 1 {
						t.Fatalf("\n%s\ndone was called %d times, want once", tc.reason, n)
					}
					if i > 0 {
						got.AnsweredAt = append(got.AnsweredAt, a.at.Load().Sub(start))
					}
				}
				near := cmp.Comparer(func(a, b time.Duration) bool { return max(a-b, b-a) < 2*ms })
				if diff := cmp.Diff(tc.want, got, near); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestHeldBackBehindUrgent has an urgent request come while an older one is held back. Each fails after its own 30 s.
func TestHeldBackBehindUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := filled(3, fake.ReadOnly())
		b.Inject(fake.Fault{Call: fake.CallGet, Times: 1, Err: throttled(time.Hour)})
		l := connected(t, connectTo(b), Options{MaxCalls: 1})
		ask(l, New, "k0")
		time.Sleep(time.Second)
		start := time.Now()
		all := []*asked{ask(l, Periodic, "k1")}
		time.Sleep(20 * time.Second)
		all = append(all, ask(l, New, "k2"))
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, want := range []time.Duration{30 * time.Second, 50 * time.Second} {
			if got := all[i].at.Load().Sub(start).Round(time.Second); got != want {
				t.Errorf("request %d fails after %s, want %s", i, got, want)
			}
		}
	})
}

// TestDelayedRequestHasRetryAfter checks that the error of a delayed request has the provider's RetryAfter.
func TestDelayedRequestHasRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := filled(2)
		b.Inject(fake.Fault{Call: fake.CallGetBatch, Times: 1, Err: throttled(time.Hour)})
		l := connected(t, connectTo(b), Options{})
		ask(l, New, "k0")
		time.Sleep(time.Minute)
		a := ask(l, New, "k1")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		results, _ := a.take()
		got := provider.RetryAfter(results[provider.Read{Ref: provider.Ref{Key: "k1"}}].Err)
		if want := 5*time.Minute - 90*time.Second; got < want || got > want+time.Second {
			t.Errorf("RetryAfter of a delayed request: %s, want %s", got, want)
		}
	})
}
