package emulator

import "crypto/tls"

// An Option changes the settings of a new Emulator.
type Option func(*config)

type config struct {
	vaults []string
	lag    int
	tls    *tls.Config
}

// WithVault adds a vault. Two vaults can have one name.
func WithVault(name string) Option { return func(c *config) { c.vaults = append(c.vaults, name) } }

// WithLag omits each new item from the next lists that would have it.
func WithLag(lists int) Option { return func(c *config) { c.lag = lists } }

// WithTLS serves TLS.
func WithTLS(t *tls.Config) Option { return func(c *config) { c.tls = t } }
