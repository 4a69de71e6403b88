package emulator

import (
	"crypto/tls"
	"time"
)

// These are the settings of an Emulator without options.
const (
	// DefaultProject is the id of the project.
	DefaultProject = "test-project"
	// DefaultProjectNumber appears in the names in answers, as with Google.
	DefaultProjectNumber = "123456789012"
	// MaxPayload is the size limit of Secret Manager for one value.
	MaxPayload = 64 << 10
)

// An Option changes the settings of a new Emulator.
type Option func(*config)

type config struct {
	projects    map[string]string // numbers by id
	pageSize    int
	machine     string // the email of its service account
	now         func() time.Time
	verifyToken func(token string) error
	tls         *tls.Config
}

func configure(opts []Option) config {
	c := config{
		projects: map[string]string{DefaultProject: DefaultProjectNumber},
		pageSize: 100,
		now:      time.Now,
	}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// WithProject adds a project.
func WithProject(id, number string) Option { return func(c *config) { c.projects[id] = number } }

// WithPageSize sets the maximum number of entries of a page; the default is 100.
func WithPageSize(n int) Option { return func(c *config) { c.pageSize = n } }

// WithClock replaces the clock for dates and the expiry of tokens.
func WithClock(now func() time.Time) Option { return func(c *config) { c.now = now } }

// WithMachine makes the server a metadata server, too. It returns access tokens of a service account to any
// caller. Google's libraries find it with the variable GCE_METADATA_HOST, without a scheme.
func WithMachine(email string) Option { return func(c *config) { c.machine = email } }

// WithTokenVerifier makes the token exchange call verify with each subject token. An error rejects the token.
// Without a verifier only the claims of subject tokens are checked, not their signatures.
func WithTokenVerifier(verify func(token string) error) Option {
	return func(c *config) { c.verifyToken = verify }
}

// WithTLS serves TLS.
func WithTLS(t *tls.Config) Option { return func(c *config) { c.tls = t } }
