package eventreceiver

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// arriving is a listener to which connections are added.
type arriving struct {
	net.Listener

	all chan net.Conn
}

func (a arriving) Accept() (net.Conn, error) { return <-a.all, nil }

// idleFrom is a connection of an address.
type idleFrom struct {
	net.Conn

	address net.Addr
	closed  *int
}

func (c idleFrom) RemoteAddr() net.Addr { return c.address }
func (c idleFrom) Close() error         { *c.closed++; return nil }

// TestConnections opens more idle connections from one network than there can be. One of another network is accepted.
func TestConnections(t *testing.T) {
	a, closed, refused := arriving{all: make(chan net.Conn, 2101)}, 0, 0
	l := &listener{Listener: a, refused: func(string, string) { refused++ }}
	open := func(n int, format string) {
		for i := range n {
			a.all <- idleFrom{address: &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf(format, i%200))}, closed: &closed}
		}
	}
	open(2100, "192.0.2.%d")
	open(1, "198.51.100.%d")
	var accepted []net.Conn
	for {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if accepted = append(accepted, c); strings.HasPrefix(c.RemoteAddr().String(), "198.") {
			break
		}
	}
	got, want := []int{len(accepted) - 1, closed, refused}, []int{connections + 1, 2099 - connections, 2099 - connections}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("accepted, closed and reported connections of the network: -want, +got:\n%s", diff)
	}
	for _, c := range accepted {
		_, _ = c.Close(), c.Close() // They return no error.
	}
	if n := l.networks.Used(); n != 0 {
		t.Errorf("%d bytes count after the end", n)
	}
}

func TestNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"10.1.2.3:80": "10.1.2.0/24", "[::ffff:10.1.2.3]:80": "10.1.2.0/24", "[2001:db8:1:2:3::1]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64", "pipe": "pipe",
	} {
		if got := network(address); got != want {
			t.Errorf("network(%q) = %q, want %q", address, got, want)
		}
	}
}
