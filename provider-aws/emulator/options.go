package emulator

import "time"

const (
	// maxValueBytes is the size limit of Secrets Manager for one value.
	maxValueBytes = 65536
	// maxBatchBytes is how much secret data one answer of BatchGetSecretValue holds before the rest
	// moves to the next page.
	maxBatchBytes = 1 << 20
)

// An Option changes the settings of a new Emulator.
type Option func(*config)

type config struct {
	address       string
	region        string
	account       string
	maxBatchBytes int
	latency       time.Duration
	now           func() time.Time
	credentials   []Credential
	roles         []Role
}

func configure(opts []Option) config {
	c := config{
		address:       "127.0.0.1:0",
		region:        "us-east-1",
		account:       "000000000000",
		maxBatchBytes: maxBatchBytes,
		now:           time.Now,
	}
	for _, o := range opts {
		o(&c)
	}
	if len(c.credentials) == 0 {
		c.credentials = []Credential{{AccessKeyID: "test", SecretAccessKey: "test", UserName: "test"}}
	}
	return c
}

// WithAddress sets the loopback address that Start listens on; the default is a free
// port on 127.0.0.1.
func WithAddress(address string) Option { return func(c *config) { c.address = address } }

// WithRegion sets the region that appears in ARNs; the default is us-east-1.
func WithRegion(region string) Option { return func(c *config) { c.region = region } }

// WithAccount sets the account that appears in ARNs; the default is
// 000000000000.
func WithAccount(account string) Option { return func(c *config) { c.account = account } }

// WithCredentials replaces the default credentials test/test.
func WithCredentials(credentials ...Credential) Option {
	return func(c *config) { c.credentials = append(c.credentials, credentials...) }
}

// WithRoles registers roles that STS lets callers assume.
func WithRoles(roles ...Role) Option { return func(c *config) { c.roles = append(c.roles, roles...) } }

// WithMaxBatchBytes sets how many bytes of secret data one answer of BatchGetSecretValue holds.
func WithMaxBatchBytes(n int) Option { return func(c *config) { c.maxBatchBytes = n } }

// WithLatency delays every call of the AWS API.
func WithLatency(d time.Duration) Option { return func(c *config) { c.latency = d } }

// WithClock replaces the clock for dates, scheduled deletions and the expiry of sessions and tokens. The age of
// a signature is always measured with the real clock, because the SDK signs with it.
func WithClock(now func() time.Time) Option {
	return func(c *config) { c.now = now }
}
