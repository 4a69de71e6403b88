package fake

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const defaultBatchSize = 20

// A Backend is a secret service in memory. It is safe for concurrent use, and may be changed while
// clients read it.
type Backend struct {
	batchSize int
	lacks     map[string]bool
	features  provider.Features
	late      bool

	mu       sync.Mutex
	secrets  map[string]*secret
	made     int            // secrets ever made
	last     map[string]int // versions ever made up, by key; outlives a deletion
	password string
	faults   []*injected

	now      func() time.Time
	renewals *int
	serial   int // credentials ever issued
	issued   map[string]*credential
	onRevoke func(name string)

	records []Record
	changed chan struct{} // closed when a record comes in
}

type secret struct {
	versions []version // the last one is current
	tags     map[string]string
	mark     string
	id       string
}

type version struct {
	name string
	data []byte
}

// An Option changes how a Backend is set up.
type Option func(*Backend)

// BatchSize sets how many secrets one call to GetBatch reads. Default: 20.
func BatchSize(n int) Option { return func(b *Backend) { b.batchSize = n } }

// Without leaves out optional interfaces of the clients, by the capability that they stand for; for
// example provider.CapabilityBatch makes clients that do not implement provider.Batcher. Clients without any of
// the others do not write either.
func Without(capabilities ...string) Option {
	return func(b *Backend) {
		for _, c := range capabilities {
			b.lacks[c] = true
		}
	}
}

// ReadOnly leaves out every optional interface: clients have Get, and Close, alone.
func ReadOnly() Option {
	return Without(provider.CapabilityBatch, provider.CapabilityFind, provider.CapabilityCheck)
}

// New returns an empty Backend that takes any password.
func New(opts ...Option) *Backend {
	b := &Backend{
		batchSize: defaultBatchSize,
		lacks:     map[string]bool{},
		features:  provider.Features{Exclusive: true, Guarded: true},
		secrets:   map[string]*secret{},
		last:      map[string]int{},
		now:       time.Now,
		changed:   make(chan struct{}),
	}
	for _, o := range opts {
		o(b)
	}
	return b
}

// SetPassword sets the password that clients must have; empty takes any. A client that connected
// with another one is denied from then on.
func (b *Backend) SetPassword(p string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.password = p
}

// A PutOption changes what Put stores.
type PutOption func(*put)

type put struct {
	version string
	tags    map[string]string
}

// Version names the version that is stored. An existing one of that name is replaced. Default: v1,
// v2 and so on, never the same again for a key.
func Version(name string) PutOption { return func(p *put) { p.version = name } }

// Tags sets the tags of the secret. Without this option it keeps those it has.
func Tags(t map[string]string) PutOption {
	return func(p *put) { p.tags = maps.Clone(t) }
}

// Put stores data as the current version of key, and returns the version's name. Older versions
// stay readable.
func (b *Backend) Put(key string, data []byte, opts ...PutOption) string {
	var p put
	for _, o := range opts {
		o(&p)
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	return b.putLocked(key, data, p)
}

// Delete removes a secret with all its versions, if it exists.
func (b *Backend) Delete(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.secrets, key)
}

// Versions returns the names of the versions of a secret, the current one last.
func (b *Backend) Versions(key string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	if s := b.secrets[key]; s != nil {
		for _, v := range s.versions {
			names = append(names, v.name)
		}
	}
	return names
}

// Connect returns a client that presents the password. The backend looks at it with the first
// call, as real services do.
func (b *Backend) Connect(ctx context.Context, password string) (provider.Client, error) {
	return b.connect(ctx, "", password)
}

func (b *Backend) connect(ctx context.Context, object, password string) (provider.Client, error) {
	c, err := b.dial(ctx, object, password)
	if err != nil {
		return nil, err
	}
	return newClient(c), nil
}

func (b *Backend) dial(ctx context.Context, object, password string) (*conn, error) {
	if err := b.begin(ctx, Record{Call: CallConnect, Store: object}); err != nil {
		return nil, err
	}
	return &conn{b: b, password: password}, nil
}

// admit tells whether a client with this password may call.
func (b *Backend) admit(password string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.password == "" || password == ambient || password == b.password {
		return nil
	}
	return provider.NewError(provider.Denied, "the backend rejects the password")
}

// read returns what is stored under ref.
func (b *Backend) read(ref provider.Ref) (provider.Value, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.secrets[ref.Key]
	if s == nil {
		return provider.Value{}, provider.NewError(provider.NotFound, "secret %q does not exist", ref.Key)
	}
	i := len(s.versions) - 1
	if ref.Version != "" {
		i = slices.IndexFunc(s.versions, func(v version) bool { return v.name == ref.Version })
	}
	if i < 0 {
		return provider.Value{}, provider.NewError(provider.NotFound, "secret %q has no version %q", ref.Key, ref.Version)
	}
	v := provider.Value{Key: ref.Key, Data: bytes.Clone(s.versions[i].data), Version: s.versions[i].name}
	if ref.Metadata {
		v.Metadata = map[string]string{}
		maps.Copy(v.Metadata, s.tags)
	}
	return v, nil
}

// list returns the keys that match, in order.
func (b *Backend) list(q provider.Query) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var keys []string
	for key, s := range b.secrets {
		if matches(q, key, s.tags) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
