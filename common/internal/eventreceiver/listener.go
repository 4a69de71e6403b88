package eventreceiver

import (
	"net"
	"net/netip"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

const (
	// connections limits the connections of one network.
	//limit:events Connections of one network of senders | metric=directsecrets_event_requests_refused_total | A further one is closed. All networks together have four times as many; the last third is for those that have less than half of this.
	connections = 512
	// perConnection are the bytes for which one counts, so that a tenant of a quota has as many.
	perConnection = quota.Own / connections
)

// listener closes connections above the limits.
type listener struct {
	net.Listener

	networks quota.Quotas
	refused  func(path, reason string)
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		of, release := l.networks.TryHold(network(c.RemoteAddr().String()), perConnection)
		if of != nil {
			return &connection{c, release}, nil
		}
		_ = c.Close() // There is nothing else to do.
		if l.refused != nil {
			l.refused("", "Connections")
		}
	}
}

// connection is counted until it is closed.
type connection struct {
	net.Conn

	release func()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// network returns the addresses that count as one sender: those that one host, or one node with its pods, usually has. X-Forwarded-For is not
// used, because anyone can set it.
func network(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	ip, bits := a.Addr().Unmap(), 64
	if ip.Is4() {
		bits = 24
	}
	p, _ := ip.Prefix(bits) // The address has as many bits.
	return p.String()
}
