package operator

import (
	"context"
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// held is a lock on a Lease with a holder.
type held struct {
	resourcelock.Interface

	holder string
}

func (held) Identity() string { return "me_7a0e_1s" }

func (h held) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: h.holder, LeaseDurationSeconds: 15}, []byte("raw"), nil
}

func TestEarly(t *testing.T) {
	cases := map[string]struct {
		reason, holder string
		want           int
	}{
		"Others":   {"A standby replica shortens the duration, because it sees renewals late.", "other_7a0e_1s", 9},
		"Times":    {"The retry period of the holder counts, not that of the standby replica.", "other_7a0e_250ms", 14},
		"Own":      {"The leader does not shorten the duration.", "me_7a0e_1s", 15},
		"Former":   {"A holder of an earlier version does not report its retry period.", "other_7a0e", 15},
		"Released": {"A Lease without a holder is free anyway.", "", 15},
		"Long":     {"An operator would refuse such a retry period.", "other_7a0e_2s", 15},
		"Short":    {"An operator would refuse such a retry period.", "other_7a0e_1ms", 15},
		"Negative": {"An operator would refuse such a retry period.", "other_7a0e_-1s", 15},
		"Overflow": {"An operator would refuse such a retry period.", "other_7a0e_2049638230412172401ns", 15},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, raw, err := early{held{holder: tc.holder}}.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := &resourcelock.LeaderElectionRecord{HolderIdentity: tc.holder, LeaseDurationSeconds: tc.want}
			if diff := cmp.Diff(want, r); diff != "" || string(raw) != "raw" {
				t.Errorf("%s\nGet(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLeaseName checks the name of the Lease for leader election.
func TestLeaseName(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
		err    string
	}{
		"Module":    {reason: "Each module has its own Lease.", want: "provider-fake.direct-secrets.io"},
		"Class":     {reason: "Operators of different classes work at the same time.", args: []string{"--controller-class=blue"}, want: "provider-fake.blue.direct-secrets.io"},
		"Given":     {reason: "The chart names the Lease after the release.", args: []string{"--leader-election-id=team-a.provider-fake.direct-secrets.io"}, want: "team-a.provider-fake.direct-secrets.io"},
		"GivenMore": {reason: "A release that changes its class keeps its Lease.", args: []string{"--controller-class=blue", "--leader-election-id=mine"}, want: "mine"},
		"NoName":    {reason: "An invalid name of a Lease is refused.", args: []string{"--leader-election-id=Team_A"}, err: `--leader-election-id is "Team_A"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := New("provider-fake", "fake.direct-secrets.io")
			set := flag.NewFlagSet("module", flag.ContinueOnError)
			o.flags.Bind(set)
			if err := set.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			err := o.flags.Check()
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nCheck(): got %v, want an error with %s", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, o.leaseName()); diff != "" {
				t.Errorf("%s\nleaseName(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLeaseTiming checks that no flags let two replicas lead at the same time.
func TestLeaseTiming(t *testing.T) {
	const duration, deadline, retry = "--leader-election-lease-duration=", "--leader-election-renew-deadline=", "--leader-election-retry-period="
	cases := map[string]struct {
		reason string
		args   []string
		err    string
	}{
		"Default":  {reason: "the defaults are valid"},
		"Slow":     {reason: "a slow API server", args: []string{duration + "60s", deadline + "40s", retry + "2s"}},
		"Fast":     {reason: "a fast takeover", args: []string{duration + "6s", deadline + "1s", retry + "250ms"}},
		"Short":    {reason: "another replica would lead before this one stops", args: []string{duration + "14s"}, err: "--leader-election-lease-duration is 14s; it must be at least 15s"},
		"Late":     {reason: "the deadline counts", args: []string{deadline + "6s"}, err: "--leader-election-lease-duration is 15s; it must be at least 16s"},
		"TooOften": {reason: "the API server would get too many requests", args: []string{retry + "10ms"}, err: "--leader-election-retry-period is 10ms"},
		"NoRetry":  {reason: "one failed request would end the work", args: []string{retry + "4s"}, err: "--leader-election-renew-deadline is 5s; it must be at least twice"},
		"Negative": {reason: "a negative time", args: []string{deadline + "-1s"}, err: "--leader-election-renew-deadline is -1s"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := New("provider-fake", "fake.direct-secrets.io")
			set := flag.NewFlagSet("module", flag.ContinueOnError)
			o.flags.Bind(set)
			if err := set.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			if err := o.flags.Check(); (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.err)
			}
		})
	}
}
