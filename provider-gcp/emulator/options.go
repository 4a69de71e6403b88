package emulator

import (
	"crypto/tls"
	"time"
)

// What an Emulator is without options.
const (
	// DefaultProject is the id of the project.
	DefaultProject = "test-project"
	// DefaultProjectNumber appears in the names that answers hold, as Google does it.
	DefaultProjectNumber = "123456789012"
	// MaxPayload is the size limit of Secret Manager for one value.
	MaxPayload = 64 << 10
)

// An Option changes the settings of an Emulator while it is made.
type Option func(*config)

type config struct {
	address     string
	projects    map[string]string // number by id
	pageSize    int
	latency     time.Duration
	tokenLife   time.Duration
	machine     string // email of its service account
	now         func() time.Time
	verifyToken func(token string) error
	tls         *tls.Config
}

func configure(opts []Option) config {
	c := config{
		address:   "127.0.0.1:0",
		projects:  map[string]string{DefaultProject: DefaultProjectNumber},
		pageSize:  100,
		tokenLife: time.Hour,
		now:       time.Now,
	}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// WithAddress sets the address that Start listens on, which must be a loopback one; the default is
// a free port on 127.0.0.1.
func WithAddress(address string) Option { return func(c *config) { c.address = address } }

// WithProject adds a project.
func WithProject(id, number string) Option { return func(c *config) { c.projects[id] = number } }

// WithPageSize sets how many entries a page holds at most; the default is 100.
func WithPageSize(n int) Option { return func(c *config) { c.pageSize = n } }

// WithLatency delays every call.
func WithLatency(d time.Duration) Option { return func(c *config) { c.latency = d } }

// WithTokenLife sets how long access tokens live; the default is an hour.
func WithTokenLife(d time.Duration) Option { return func(c *config) { c.tokenLife = d } }

// WithClock replaces the clock behind dates and the end of tokens.
func WithClock(now func() time.Time) Option { return func(c *config) { c.now = now } }

// WithMachine has the server be a metadata server, too, which gives access tokens of a service account to
// who asks at all. Google's libraries find it by the variable GCE_METADATA_HOST, without a scheme.
func WithMachine(email string) Option { return func(c *config) { c.machine = email } }

// WithTokenVerifier has the token exchange call verify with each subject token; an error rejects
// it. Without it signatures of subject tokens are not checked, only their claims.
func WithTokenVerifier(verify func(token string) error) Option {
	return func(c *config) { c.verifyToken = verify }
}

// WithTLS serves TLS.
func WithTLS(t *tls.Config) Option { return func(c *config) { c.tls = t } }
