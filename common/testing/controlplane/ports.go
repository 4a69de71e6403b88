package controlplane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are below those that the system gives to outgoing connections (from 32768 on Linux, from 49152 elsewhere), so
// that no client takes one before its server listens.
const firstPort, lastPort = 20000, 32767

var (
	givenMu sync.Mutex
	given   = map[int]bool{}
)

// FreePorts returns n ports of the loopback address without a listener. It never returns a port twice.
func FreePorts(n int) ([]string, error) {
	givenMu.Lock()
	defer givenMu.Unlock()
	var ports []string
	for range lastPort - firstPort {
		if len(ports) == n {
			return ports, nil
		}
		p := firstPort + rand.IntN(lastPort-firstPort+1)
		if given[p] {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(p)))
		if err != nil {
			continue // The port has a listener.
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
		given[p] = true
		ports = append(ports, strconv.Itoa(p))
	}
	return nil, fmt.Errorf("cannot find %d free ports between %d and %d", n, firstPort, lastPort)
}
