package emulator

import (
	"crypto/tls"
	"sync/atomic"
	"time"
)

const (
	// DefaultTenant is the tenant of the vault.
	DefaultTenant = "11111111-1111-1111-1111-111111111111"
	// Resource is what tokens for the vault are requested for.
	Resource = "https://vault.azure.net"
	// RegistryResource is what tokens for the registry are requested for.
	RegistryResource = "https://containerregistry.azure.net"
	// MaxValue is the size limit of a value, in bytes.
	MaxValue = 25 << 10
)

// An Option changes the settings of a new Server.
type Option func(*config)

type config struct {
	tenant          string
	resources       []string
	authority       string
	pageSize        int
	purgeProtection bool
	keepsType       bool
	now             func() time.Time
	advanced        *atomic.Int64
	verifyToken     func(token string) error
	convert         func()
	tls             *tls.Config
}

// WithTenant sets the tenant; the default is DefaultTenant.
func WithTenant(tenant string) Option { return func(c *config) { c.tenant = tenant } }

// WithResources sets what tokens can be for; the default is Resource and RegistryResource. The first one is that of the vault, which a
// challenge names, and the last one that of the registry.
func WithResources(urls ...string) Option { return func(c *config) { c.resources = urls } }

// WithAuthority sets the authority that a challenge names, such as https://login.microsoftonline.com; the default is this server.
func WithAuthority(url string) Option { return func(c *config) { c.authority = url } }

// WithPageSize sets the number of entries of a page; the default is 25, as in Key Vault.
func WithPageSize(n int) Option { return func(c *config) { c.pageSize = n } }

// WithPurgeProtection makes the vault refuse to purge a deleted secret.
func WithPurgeProtection() Option { return func(c *config) { c.purgeProtection = true } }

// WithKeptContentType makes an empty content type in an update of a version without effect.
func WithKeptContentType() Option { return func(c *config) { c.keepsType = true } }

// Key Vault answers a deletion and a recovery at once, and was seen to need these times to complete them. A deleted secret cannot be
// recovered before DeletionTime. A recovered one cannot be read before RecoveryTime, and not be written before SettlingTime.
const (
	DeletionTime = 8 * time.Second
	RecoveryTime = 12 * time.Second
	SettlingTime = 15 * time.Second
)

// WithClock replaces the clock for dates and the expiry of tokens.
func WithClock(now func() time.Time) Option { return func(c *config) { c.now = now } }

// WithTokenVerifier makes logins with federated tokens call verify. An error rejects the token. Without a verifier only the claims of
// federated tokens are checked, not their signatures.
func WithTokenVerifier(verify func(token string) error) Option {
	return func(c *config) { c.verifyToken = verify }
}

// WithConversion calls do before each conversion of the archive of a certificate. do can change the vault.
func WithConversion(do func()) Option { return func(c *config) { c.convert = do } }

// WithTLS serves TLS.
func WithTLS(t *tls.Config) Option { return func(c *config) { c.tls = t } }
