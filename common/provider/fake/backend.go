package fake

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const defaultBatchSize = 20

// A Backend is a secret service in memory. It is safe for concurrent use, and can be changed while clients read it.
type Backend struct {
	CallLog[Record]
	Faults[Fault]
	// Queue has the messages for event sources.
	Queue Queue

	batchSize int
	lacks     map[string]bool
	features  provider.Features
	late      bool

	mu       sync.Mutex
	secrets  map[string]*secret
	made     int            // It counts all created secrets.
	last     map[string]int // It is the last generated version of each key, and is kept after a deletion.
	password string

	now      func() time.Time
	renewals *int
	serial   int // It counts all issued credentials.
	issued   map[string]*credential
	onRevoke func(name string)
}

type secret struct {
	versions []version // The last one is current.
	tags     map[string]string
	mark     string
	id       string
}

type version struct {
	name string
	data []byte
}

// An Option configures a Backend.
type Option func(*Backend)

// BatchSize sets how many secrets one call to GetBatch reads. Default: 20.
func BatchSize(n int) Option { return func(b *Backend) { b.batchSize = n } }

// Without omits optional interfaces of the clients, by their capability. For example, with provider.CapabilityBatch
// the clients do not implement provider.Batcher. Clients without one of the other interfaces are no Writers either.
func Without(capabilities ...string) Option {
	return func(b *Backend) {
		for _, c := range capabilities {
			b.lacks[c] = true
		}
	}
}

// ReadOnly omits every optional interface: clients have only Get and Close.
func ReadOnly() Option {
	return Without(provider.CapabilityBatch, provider.CapabilityFind, provider.CapabilityCheck)
}

// New returns an empty Backend that accepts any password.
func New(opts ...Option) *Backend {
	b := &Backend{
		batchSize: defaultBatchSize,
		lacks:     map[string]bool{},
		features:  provider.Features{Exclusive: true, Guarded: true},
		secrets:   map[string]*secret{},
		last:      map[string]int{},
		now:       time.Now,
	}
	for _, o := range opts {
		o(b)
	}
	return b
}

// SetPassword sets the password that clients must have; an empty one accepts any. Clients with another password are
// denied from then on.
func (b *Backend) SetPassword(p string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.password = p
}

// A PutOption changes a Put.
type PutOption func(*put)

type put struct {
	version string
	tags    map[string]string
}

// Version sets the name of the stored version. It replaces an existing version of that name. Default: v1, v2 and so
// on, never the same name again for a key.
func Version(name string) PutOption { return func(p *put) { p.version = name } }

// Tags sets the tags of the secret. Without this option it keeps its tags.
func Tags(t map[string]string) PutOption {
	return func(p *put) { p.tags = maps.Clone(t) }
}

// Put stores data as the current version of key, and returns the version's name. Older versions are kept.
func (b *Backend) Put(key string, data []byte, opts ...PutOption) string {
	var p put
	for _, o := range opts {
		o(&p)
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	return b.putLocked(key, data, p)
}

// Delete deletes a secret with all its versions, if it exists.
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

// Connect returns a client with a password. The backend checks it at the first call, like real services.
func (b *Backend) Connect(ctx context.Context, password string) (provider.Client, error) {
	return b.connect(ctx, "", password)
}

// Writer returns a client without a password, as a Writer.
func (b *Backend) Writer(ctx context.Context) (provider.Writer, error) {
	c, err := b.Connect(ctx, "")
	if err != nil {
		return nil, err
	}
	w, ok := c.(provider.Writer)
	if !ok {
		return nil, errors.New("the backend cannot be written")
	}
	return w, nil
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

// admit returns an error if the password is wrong.
func (b *Backend) admit(password string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.password == "" || password == ambient || password == b.password {
		return nil
	}
	return provider.NewError(provider.Denied, "the backend rejects the password")
}

// read returns the stored value of ref.
func (b *Backend) read(ref provider.Ref) (provider.Value, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.secrets[nameOf(ref.Key)]
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

// list returns the keys that match, sorted.
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
