package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

const ms = time.Millisecond

// req is a request at a time after the start.
type req struct {
	at      time.Duration
	urgency Urgency
	keys    []string
}

func TestCalls(t *testing.T) {
	hundredTimes := func(keys ...string) (out []req) {
		for range 100 {
			out = append(out, req{keys: keys})
		}
		return out
	}
	each := func(keys []string) (out []req) {
		for _, k := range keys {
			out = append(out, req{keys: []string{k}})
		}
		return out
	}

	type args struct {
		requests []req
		latency  time.Duration
		opts     Options
		backend  []fake.Option
	}
	cases := map[string]struct {
		reason string
		args   args
		want   []call
	}{
		"Single": {
			"A single request at an idle store is sent after 2 ms.",
			args{requests: []req{{keys: keys(0, 1)}}},
			[]call{{2 * ms, keys(0, 1)}},
		},
		"OneRefManyTimes": {
			"A hundred requests for one secret are one read, which does not wait for a batch.",
			args{requests: hundredTimes("k0")},
			[]call{{2 * ms, keys(0, 1)}},
		},
		"TenRefs": {
			"Ten secrets of one request are one batch, which waits for more reads.",
			args{requests: []req{{keys: keys(0, 10)}}},
			[]call{{50 * ms, keys(0, 10)}},
		},
		"TenTimesTheSameRef": {
			"Ten properties of one secret need one read.",
			args{requests: []req{{keys: []string{"k0", "k0", "k0", "k0", "k0", "k0", "k0", "k0", "k0", "k0"}}}},
			[]call{{2 * ms, keys(0, 1)}},
		},
		"HundredTogether": {
			"A hundred different secrets fill five batches, which are sent at once.",
			args{requests: each(keys(0, 100))},
			[]call{{0, keys(0, 20)}, {0, keys(20, 40)}, {0, keys(40, 60)}, {0, keys(60, 80)}, {0, keys(80, 100)}},
		},
		"FullAtOnce": {
			"A full batch does not wait for the window; the rest does.",
			args{requests: []req{{keys: keys(0, 10)}, {at: 10 * ms, keys: keys(10, 25)}}},
			[]call{{10 * ms, keys(0, 20)}, {60 * ms, keys(20, 25)}},
		},
		"SecondWithinIdleWindow": {
			"A second request within 2 ms makes the first wait up to 50 ms.",
			args{requests: []req{{keys: keys(0, 1)}, {at: ms, keys: keys(1, 2)}}},
			[]call{{50 * ms, keys(0, 2)}},
		},
		"SecondAfterIdleWindow": {
			"A batch of one read does not make the store busy.",
			args{requests: []req{{keys: keys(0, 1)}, {at: 10 * ms, keys: keys(1, 2)}}},
			[]call{{2 * ms, keys(0, 1)}, {12 * ms, keys(1, 2)}},
		},
		"BusyAfterBatch": {
			"After a larger batch the store is busy, and a single request waits for others.",
			args{requests: []req{{keys: keys(0, 2)}, {at: 100 * ms, keys: keys(2, 3)}}},
			[]call{{50 * ms, keys(0, 2)}, {150 * ms, keys(2, 3)}},
		},
		"IdleAgain": {
			"Half a second after the last larger batch the store is idle.",
			args{requests: []req{{keys: keys(0, 2)}, {at: 551 * ms, keys: keys(2, 3)}}},
			[]call{{50 * ms, keys(0, 2)}, {553 * ms, keys(2, 3)}},
		},
		"JoinsUnderWay": {
			"A request for a secret that is being read joins the read.",
			args{latency: time.Second, requests: []req{{keys: keys(0, 1)}, {at: 500 * ms, urgency: New, keys: keys(0, 1)}}},
			[]call{{2 * ms, keys(0, 1)}},
		},
		"FreshDoesNotJoinSent": {
			"A Fresh request does not join a read that has started before.",
			args{latency: time.Second, requests: []req{{keys: keys(0, 1)}, {at: 500 * ms, urgency: Fresh, keys: keys(0, 1)}}},
			[]call{{2 * ms, keys(0, 1)}, {502 * ms, keys(0, 1)}},
		},
		"FreshJoinsPending": {
			"A Fresh request joins a read that was not sent yet.",
			args{requests: []req{{keys: keys(0, 1)}, {at: ms, urgency: Fresh, keys: keys(0, 1)}}},
			[]call{{2 * ms, keys(0, 1)}},
		},
		"FreshShortlyAfter": {
			"Fresh requests that come one after another share the next read.",
			args{latency: time.Second, requests: []req{
				{keys: keys(0, 1)}, {at: 12 * ms, urgency: Fresh, keys: keys(0, 1)}, {at: 100 * ms, urgency: Fresh, keys: keys(0, 1)},
			}},
			[]call{{2 * ms, keys(0, 1)}, {202 * ms, keys(0, 1)}},
		},
		"TwoFresh": {
			"Two Fresh requests share the second read.",
			args{latency: time.Second, requests: []req{
				{keys: keys(0, 1)}, {at: 500 * ms, urgency: Fresh, keys: keys(0, 1)}, {at: 501 * ms, urgency: Fresh, keys: keys(0, 1)},
			}},
			[]call{{2 * ms, keys(0, 1)}, {502 * ms, keys(0, 1)}},
		},
		"UrgentFirst": {
			"New requests overtake periodic ones in the queue.",
			args{latency: time.Second, opts: Options{MaxCalls: 1}, backend: []fake.Option{fake.BatchSize(2)}, requests: []req{
				{keys: keys(0, 6)}, {at: 10 * ms, urgency: New, keys: []string{"new"}},
			}},
			[]call{{0, keys(0, 2)}, {time.Second, []string{"new", "k2"}}, {2 * time.Second, keys(3, 5)}, {3 * time.Second, keys(5, 6)}},
		},
		"Promoted": {
			"A periodic read becomes urgent when an urgent request joins it, and is still one read.",
			args{latency: time.Second, opts: Options{MaxCalls: 1}, backend: []fake.Option{fake.BatchSize(2)}, requests: []req{
				{keys: keys(0, 6)}, {at: 10 * ms, urgency: New, keys: keys(5, 6)},
			}},
			[]call{{0, keys(0, 2)}, {time.Second, []string{"k5", "k2"}}, {2 * time.Second, keys(3, 5)}},
		},
		"PromotedIsNotTwo": {
			"A single request that became urgent is still a batch of one, sent after 2 ms.",
			args{requests: []req{{keys: keys(0, 1)}, {at: ms, urgency: New, keys: keys(0, 1)}}},
			[]call{{2 * ms, keys(0, 1)}},
		},
		"PromotedFillNoBatch": {
			"Ten requests that became urgent do not count twice as a full batch of twenty.",
			args{requests: []req{{keys: keys(0, 10)}, {at: ms, urgency: New, keys: keys(0, 10)}}},
			[]call{{50 * ms, keys(0, 10)}},
		},
		"PromotedKeepsItsAge": {
			"A request that became urgent keeps the start of its wait.",
			args{requests: []req{{keys: keys(0, 1)}, {at: ms, urgency: New, keys: keys(1, 2)}, {at: ms, urgency: New, keys: keys(0, 1)}}},
			[]call{{50 * ms, keys(0, 2)}},
		},
		"MaxCalls": {
			"At most MaxCalls calls are under way; the end of each allows the next.",
			args{latency: time.Second, opts: Options{MaxCalls: 2}, requests: each(keys(0, 60))},
			[]call{{0, keys(0, 20)}, {0, keys(20, 40)}, {time.Second, keys(40, 60)}},
		},
		"NoBatcher": {
			"A client without batches gets each read at once.",
			args{backend: []fake.Option{fake.Without(provider.CapabilityBatch)}, requests: []req{{keys: keys(0, 1)}, {at: ms, keys: keys(1, 2)}}},
			[]call{{0, keys(0, 1)}, {ms, keys(1, 2)}},
		},
		"NoRefs": {
			"A request for no secrets causes no call.",
			args{requests: []req{{}}},
			nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := filled(100, tc.args.backend...)
				b.Put("new", []byte("new"))
				if tc.args.latency > 0 {
					b.Inject(fake.Fault{Call: fake.CallGetBatch, Latency: tc.args.latency})
				}
				l := connected(t, connectTo(b), tc.args.opts)
				start := time.Now()
				var all []*asked
				for _, r := range tc.args.requests {
					time.Sleep(time.Until(start.Add(r.at)))
					synctest.Wait()
					all = append(all, ask(l, r.urgency, r.keys...))
				}
				time.Sleep(time.Minute)
				synctest.Wait()

				if diff := cmp.Diff(tc.want, calls(b, start)); diff != "" {
					t.Errorf("\n%s\ncalls: -want, +got:\n%s", tc.reason, diff)
				}
				for i, a := range all {
					want := map[string]string{}
					for _, k := range tc.args.requests[i].keys {
						want[k] = k
					}
					if diff := cmp.Diff(want, a.values()); diff != "" {
						t.Errorf("\n%s\nrequest %d: -want, +got:\n%s", tc.reason, i, diff)
					}
					if n := a.done.Load(); n != 1 {
						t.Errorf("\n%s\nrequest %d: done was called %d times, want once", tc.reason, i, n)
					}
				}
			})
		})
	}
}
