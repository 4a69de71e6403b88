package secretmanager

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

func TestPushModel(t *testing.T) { conformance.PushModel(t, harness(start(t))) }

func TestRoundTrip(t *testing.T) { conformance.RoundTrip(t, harness(start(t)), 1000) }

func pusher(c *Client, mark string) conformance.Pusher {
	return conformance.Pusher{Store: fake.Link("GCPSecretManager", c), Policies: conformance.PushPolicies{
		Update: common.UpdateReplace, Adoption: common.AdoptionAdopt, Mark: mark, Features: c.Features(),
	}}
}

// TestPushCrosses adds a version of another writer after the last read of a push, but before its write.
func TestPushCrosses(t *testing.T) {
	cases := map[string]struct {
		reason               string
		stored, theirs, want string
		fault                emulator.Fault
	}{
		"Added":   {"A property that the other writer added is kept.", `{"x":"1"}`, `{"x":"1","theirs":"1"}`, `{"ours":"1","theirs":"1","x":"1"}`, emulator.Fault{}},
		"Removed": {"A property that the other writer removed stays removed.", `{"x":"1"}`, `{}`, `{"ours":"1"}`, emulator.Fault{}},
		"Created": {"A value that the other writer stores in a new secret is kept.", ``, `{"theirs":"1"}`, `{"ours":"1","theirs":"1"}`, emulator.Fault{}},
		"NoJSON":  {"A value that cannot hold a property is restored.", `{"x":"1"}`, `text`, `text`, emulator.Fault{}},
		"Cut":     {"Restoring the value is retried after an error.", `{"x":"1"}`, `{"x":"1","theirs":"1"}`, `{"ours":"1","theirs":"1","x":"1"}`, emulator.Fault{Code: codes.Unavailable}},
		"Lost":    {"Restoring the value is retried after a lost answer.", `{"x":"1"}`, `{"x":"1","theirs":"1"}`, `{"ours":"1","theirs":"1","x":"1"}`, emulator.Fault{Body: emulator.BodyLost}},
		"Slow":    {"Restoring the value is retried after throttling.", `{"x":"1"}`, `{"x":"1","theirs":"1"}`, `{"ours":"1","theirs":"1","x":"1"}`, emulator.Fault{Code: codes.ResourceExhausted, RetryAfter: time.Millisecond}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			if tc.stored != "" {
				srv.Put("db", []byte(tc.stored))
			}
			c := client(t, srv)
			ctx := soon(t)
			release := srv.Inject(emulator.Fault{Call: add, Hang: true})
			go func() {
				defer release()
				if err := srv.Wait(ctx, 1, add); err != nil {
					t.Error(err)
				}
				srv.Put("db", []byte(tc.theirs))
				tc.fault.Call, tc.fault.Times = add, 1
				srv.Inject(tc.fault)
			}()
			p := pusher(c, mark)
			o := p.Apply(ctx, target(""), []conformance.PushValue{{Property: "ours", Data: []byte("1")}}, nil)
			if bad := tc.want == tc.theirs; (o.Err != nil) != bad {
				t.Errorf("%s\nerror %v, want one: %t", tc.reason, o.Err, bad)
			}
			if diff := cmp.Diff(tc.want, string(observe(t, c, "").Data)); diff != "" {
				t.Errorf("%s\nvalue: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPushProperties(t *testing.T) {
	srv := start(t)
	conformance.PushProperties(t, harness(srv), func(string) int { return srv.Count(add) })
}
