package operator

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/sync/singleflight"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	// podIP is the environment variable with the IP address of the pod. The chart sets it if EventReceivers receive.
	podIP = "POD_IP"
	// leaderFor is how long a read of the leader's Lease is used, also a failed one.
	leaderFor = time.Second
)

// receiverAddress returns the address at which other replicas reach the server for events; invalid if there is none. It has the IP
// address of the pod, unless the server listens at another one only.
func (a *addresses) receiverAddress() netip.AddrPort {
	host, port, err := net.SplitHostPort(a.EventReceiverAddress)
	if err != nil {
		return netip.AddrPort{}
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = os.Getenv(podIP)
	}
	return parseAddress(net.JoinHostPort(host, port))
}

// parseAddress returns an IP address and a port; invalid for any other text, and for addresses that no pod has. Link-local
// addresses include the metadata services of clouds.
func parseAddress(text string) netip.AddrPort {
	a, err := netip.ParseAddrPort(text)
	ip := a.Addr()
	if err != nil || a.String() != text || a.Port() == 0 || ip.Zone() != "" || ip.Is4In6() || !ip.IsGlobalUnicast() && !ip.IsLoopback() {
		return netip.AddrPort{}
	}
	return a
}

// holderAddress returns the address in the identity of a Lease's holder; see identity. It is invalid if there is none.
func holderAddress(identity string) netip.AddrPort {
	parts := strings.Split(identity, "_")
	if len(parts) < 4 {
		return netip.AddrPort{}
	}
	return parseAddress(parts[len(parts)-2])
}

// A leaderReader reads the address of the leader from the Lease, at most once per leaderFor.
type leaderReader struct {
	// lock is not that of the leader election, because a lock is for one goroutine.
	lock resourcelock.Interface
	// own is the address of this replica.
	own netip.AddrPort

	// one is for one read at a time. Only its function uses the fields below.
	one     singleflight.Group
	read    time.Time
	address netip.AddrPort
	err     error
}

// leaderReader returns what reads the leader's Lease; nil without leader election.
func (o *Operator) leaderReader(cfg *rest.Config) (*leaderReader, error) {
	lock, err := o.lock(cfg)
	if lock == nil || err != nil {
		return nil, err
	}
	return &leaderReader{lock: lock, own: o.flags.receiverAddress()}, nil
}

// Address returns the address of the leader, if that is another replica. Callers at the same time wait for one read, whose client has
// a timeout.
func (l *leaderReader) Address(ctx context.Context) (netip.AddrPort, error) {
	ctx = context.WithoutCancel(ctx) // The read is also for others.
	a, err, _ := l.one.Do("", func() (any, error) {
		if l.read.IsZero() || time.Since(l.read) >= leaderFor {
			l.address, l.err = l.fetch(ctx)
			l.read = time.Now()
		}
		return l.address, l.err
	})
	address, _ := a.(netip.AddrPort) // It always is.
	return address, err
}

func (l *leaderReader) fetch(ctx context.Context) (netip.AddrPort, error) {
	r, _, err := l.lock.Get(ctx)
	if err != nil {
		return netip.AddrPort{}, errors.Wrap(err, "cannot read the leader's Lease")
	}
	a := holderAddress(r.HolderIdentity)
	switch {
	case !a.IsValid():
		return a, errors.New("the leader's Lease has no address of a leader that receives events")
	case a == l.own:
		return netip.AddrPort{}, errors.New("this replica is the leader, and it is starting")
	}
	return a, nil
}
