package operator

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// TestReceiverAddress checks which address a replica writes into the Lease, and that it reads the same.
func TestReceiverAddress(t *testing.T) {
	const none = "invalid AddrPort"
	cases := map[string]struct{ reason, pod, listen, want, identity string }{
		"IPv4":        {"A server for all addresses is reached at that of the pod.", "10.1.2.3", ":8082", "10.1.2.3:8082", "pod_7a0e_10.1.2.3:8082_1s"},
		"IPv6":        {"A pod can have an IPv6 address.", "fd00::a:1", ":8082", "[fd00::a:1]:8082", "pod_7a0e_[fd00::a:1]:8082_1s"},
		"AllIPv4":     {"0.0.0.0 means all addresses.", "10.1.2.3", "0.0.0.0:8082", "10.1.2.3:8082", "pod_7a0e_10.1.2.3:8082_1s"},
		"AllIPv6":     {":: means all addresses.", "10.1.2.3", "[::]:8082", "10.1.2.3:8082", "pod_7a0e_10.1.2.3:8082_1s"},
		"One":         {"A server for one address is reached there only.", "10.1.2.3", "10.9.9.9:8082", "10.9.9.9:8082", "pod_7a0e_10.9.9.9:8082_1s"},
		"Off":         {"Without a server there is no address.", "10.1.2.3", "0", none, "pod_7a0e_1s"},
		"Empty":       {"Without a server there is no address.", "10.1.2.3", "", none, "pod_7a0e_1s"},
		"NoPod":       {"Without the address of the pod there is none.", "", ":8082", none, "pod_7a0e_1s"},
		"NoPort":      {"A random port is unknown.", "10.1.2.3", ":0", none, "pod_7a0e_1s"},
		"PortName":    {"A port has a number.", "10.1.2.3", ":http", none, "pod_7a0e_1s"},
		"Name":        {"A name is no address.", "10.1.2.3", "localhost:8082", none, "pod_7a0e_1s"},
		"NameOfAPod":  {"A name is no address.", "pod.example.com", ":8082", none, "pod_7a0e_1s"},
		"PodWithPort": {"The variable has no port.", "10.1.2.3:80", ":8082", none, "pod_7a0e_1s"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(podIP, tc.pod)
			got := (&addresses{EventReceiverAddress: tc.listen}).receiverAddress()
			identity := (&leases{RetryPeriod: time.Second}).identity("pod_7a0e", got)
			if diff := cmp.Diff([]string{tc.want, tc.identity, tc.want}, []string{got.String(), identity, holderAddress(identity).String()}); diff != "" {
				t.Errorf("%s\naddress, identity, address of the holder: -want, +got:\n%s", tc.reason, diff)
			}
			if got := holderLateness(&resourcelock.LeaderElectionRecord{HolderIdentity: identity, LeaseDurationSeconds: 15}); got != lateness(time.Second) {
				t.Errorf("%s\nholderLateness(): %s", tc.reason, got)
			}
		})
	}
}

// TestHolderAddress reads identities that no replica of this version writes.
func TestHolderAddress(t *testing.T) {
	cases := map[string]struct{ reason, identity string }{
		"Released":    {"No replica leads.", ""},
		"Former":      {"An earlier version writes no address.", "pod_7a0e_1s"},
		"FormerFirst": {"The first version writes no times.", "pod_7a0e"},
		"Underscores": {"A host can have underscores.", "a_host_7a0e_1s"},
		"NoReplica":   {"An address is not the name of a replica.", "10.1.2.3:8082_1s"},
		"Name":        {"A name could be resolved to anything.", "pod_7a0e_example.com:8082_1s"},
		"URL":         {"A path is no port.", "pod_7a0e_10.1.2.3:8082/x?_1s"},
		"User":        {"There is no user.", "pod_7a0e_x@10.1.2.3:8082_1s"},
		"NoPort":      {"There is no default port.", "pod_7a0e_10.1.2.3_1s"},
		"PortZero":    {"No server listens at port 0.", "pod_7a0e_10.1.2.3:0_1s"},
		"LargePort":   {"A port has 16 bits.", "pod_7a0e_10.1.2.3:65536_1s"},
		"Padded":      {"An address has one form.", "pod_7a0e_10.1.2.3:08082_1s"},
		"Octal":       {"An address has one form.", "pod_7a0e_010.1.2.3:8082_1s"},
		"Long":        {"An address has one form.", "pod_7a0e_[fd00:0::1]:8082_1s"},
		"Zone":        {"A zone is valid on one host only.", "pod_7a0e_[fd00::1%eth0]:8082_1s"},
		"Mapped":      {"An IPv4 address has one form.", "pod_7a0e_[::ffff:169.254.169.254]:80_1s"},
		"Metadata":    {"The metadata service of a cloud is no replica.", "pod_7a0e_169.254.169.254:80_1s"},
		"LinkLocal":   {"A link-local address is that of no pod.", "pod_7a0e_[fe80::1]:8082_1s"},
		"All":         {"All addresses are no replica.", "pod_7a0e_0.0.0.0:8082_1s"},
		"Multicast":   {"A group is no replica.", "pod_7a0e_224.0.0.1:8082_1s"},
		"NewLine":     {"A line has one address.", "pod_7a0e_10.1.2.3:8082\n_1s"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := holderAddress(tc.identity); got.IsValid() {
				t.Errorf("%s\nholderAddress(%q) is %s", tc.reason, tc.identity, got)
			}
		})
	}
}

// counted is a lock on a Lease whose reads are counted and take some time.
type counted struct {
	held

	err   error
	reads atomic.Int64
}

func (c *counted) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	c.reads.Add(1)
	time.Sleep(100 * time.Millisecond) // It is the clock of a synctest bubble.
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if c.err != nil {
		return nil, nil, c.err
	}
	return c.held.Get(ctx)
}

// TestLeaderReader reads the Lease for many requests.
func TestLeaderReader(t *testing.T) {
	own, other := netip.MustParseAddrPort("10.1.2.3:8082"), "10.1.2.4:8082"
	cases := map[string]struct {
		reason string
		lock   *counted
		want   string
		err    string
	}{
		"Leader":   {reason: "The leader has an address.", lock: &counted{held: held{holder: "pod_7a0e_" + other + "_1s"}}, want: other},
		"None":     {reason: "The leader receives no events.", lock: &counted{held: held{holder: "pod_7a0e_1s"}}, err: "the leader's Lease has no address of a leader that receives events"},
		"Own":      {reason: "A replica does not forward to itself.", lock: &counted{held: held{holder: "pod_7a0e_" + own.String() + "_1s"}}, err: "this replica is the leader, and it is starting"},
		"NotFound": {reason: "A failure is remembered, too.", lock: &counted{err: errors.New("boom")}, err: "cannot read the leader's Lease: boom"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &leaderReader{lock: tc.lock, own: own}
				canceled, cancel := context.WithCancel(t.Context())
				cancel()
				read := func() {
					got, err := l.Address(canceled)
					if err != nil && err.Error() != tc.err || err == nil && got.String() != tc.want {
						t.Errorf("%s\nAddress(): %s, %v", tc.reason, got, err)
					}
				}
				var all sync.WaitGroup
				for range 50 {
					all.Go(read)
				}
				all.Wait()
				read()
				if n := tc.lock.reads.Load(); n != 1 {
					t.Errorf("%s\n51 requests cost %d reads", tc.reason, n)
				}
				time.Sleep(leaderFor)
				read()
				if n := tc.lock.reads.Load(); n != 2 {
					t.Errorf("%s\na later request: %d reads in total, want 2", tc.reason, n)
				}
			})
		})
	}
}
