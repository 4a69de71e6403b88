package emulator

import (
	"crypto/tls"
	"time"
)

// An Option changes the settings of a new Emulator.
type Option func(*config)

type config struct {
	address string
	vaults  []string
	latency time.Duration
	now     func() time.Time
	lag     int
	tls     *tls.Config
}

func configure(opts []Option) config {
	c := config{address: "127.0.0.1:0", vaults: []string{DefaultVault}, now: time.Now}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// WithAddress sets the address that Start listens on, which must be a loopback one; the default is a free port on 127.0.0.1.
func WithAddress(address string) Option { return func(c *config) { c.address = address } }

// WithVault adds a vault. Two vaults can have one name.
func WithVault(name string) Option { return func(c *config) { c.vaults = append(c.vaults, name) } }

// WithLatency delays every call.
func WithLatency(d time.Duration) Option { return func(c *config) { c.latency = d } }

// WithClock replaces the clock for the times of items.
func WithClock(now func() time.Time) Option { return func(c *config) { c.now = now } }

// WithLag omits each new item from the next lists that would have it.
func WithLag(lists int) Option { return func(c *config) { c.lag = lists } }

// WithTLS serves TLS.
func WithTLS(t *tls.Config) Option { return func(c *config) { c.tls = t } }
