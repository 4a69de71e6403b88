package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/provider"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// A Store is a provider. Each write of a secret creates a version.
type Store struct {
	secrets map[string]*remote
	births  int
	closed  chan struct{}
	// Refuse returns the error for a write by the login of a store; nil if it is allowed.
	Refuse func(store, verb, key string) error
	// Login returns the error for a login of a store; nil if it succeeds.
	Login func(store string) error

	// place is where the Store is, and elsewhere are the Stores of other places.
	place     string
	elsewhere map[string]*Store
}

type remote struct {
	data     []byte
	version  int
	id, mark string
}

// NewStore returns an empty Store.
func NewStore() *Store {
	return &Store{secrets: map[string]*remote{}, closed: make(chan struct{}), elsewhere: map[string]*Store{}}
}

// At returns the Store of a place; "" for this one. Other Stores give their secrets the same IDs.
func (s *Store) At(place string) *Store {
	if place == s.place {
		return s
	}
	if s.elsewhere[place] == nil {
		s.elsewhere[place] = NewStore()
		s.elsewhere[place].place = place
	}
	return s.elsewhere[place]
}

func (s *Store) close() { close(s.closed) }

// Put writes a secret as a user does.
func (s *Store) Put(key, value string) {
	r := s.secrets[key]
	if r == nil {
		s.births++
		r = &remote{id: fmt.Sprintf("id-%d", s.births)}
	}
	s.secrets[key] = &remote{data: []byte(value), version: r.version + 1, id: r.id, mark: r.mark}
}

// Remove deletes a secret as a user does.
func (s *Store) Remove(key string) { delete(s.secrets, key) }

// Value returns the value of a secret, and whether it exists.
func (s *Store) Value(key string) (string, bool) {
	r := s.secrets[key]
	if r == nil {
		return "", false
	}
	return string(r.data), true
}

func (s *Store) digest() (sum uint64) {
	for _, key := range slices.Sorted(maps.Keys(s.secrets)) {
		r := s.secrets[key]
		sum += join(key, string(r.data), fmt.Sprint(r.version), r.id, r.mark)
	}
	for _, place := range slices.Sorted(maps.Keys(s.elsewhere)) {
		sum += join(place, fmt.Sprint(s.elsewhere[place].digest()))
	}
	return sum
}

// OtherKinds returns the single Kind OtherFakeStore, the store of another module, for that module's operator.
func (s *Store) OtherKinds(o *Operator) []provider.Kind {
	return []provider.Kind{provider.KindOf(func(context.Context, *fakev1.OtherFakeStore, provider.Credentials) (provider.Client, error) {
		return &storeClient{s, o, ""}, nil
	})}
}

// Kinds returns the Kind FakeStore and its cluster twin, for an operator. A store leads to the place that is its backend.
func (s *Store) Kinds(o *Operator) []provider.Kind {
	connect := func(name, backend string) (provider.Client, error) {
		if s.Login != nil {
			if err := s.Login(name); err != nil {
				return nil, err
			}
		}
		return &storeClient{s.At(backend), o, name}, nil
	}
	return []provider.Kind{
		provider.KindOf(func(_ context.Context, st *fakev1.FakeStore, _ provider.Credentials) (provider.Client, error) {
			return connect(st.Name, st.Spec.Backend)
		}),
		provider.ClusterKindOf(func(_ context.Context, st *fakev1.ClusterFakeStore, _ provider.Credentials) (provider.Client, error) {
			return connect(st.Name, st.Spec.Backend)
		}),
	}
}

type storeClient struct {
	s     *Store
	o     *Operator
	store string
}

// Identity implements provider.Identifier.
func (c *storeClient) Identity(context.Context) (provider.Identity, error) {
	return provider.Identity{Place: "simulation " + c.s.place}, nil
}

// Get implements provider.Client.
func (c *storeClient) Get(ctx context.Context, ref provider.Ref) (v provider.Value, err error) {
	err = c.do(ctx, "read", ref.Key, func() error {
		r := c.s.secrets[ref.Key]
		if r == nil {
			return provider.NewError(provider.NotFound, "no secret %q", ref.Key)
		}
		v = provider.Value{Data: slices.Clone(r.data), Version: fmt.Sprint(r.version)}
		return nil
	})
	return v, err
}

// do executes a call in its turn.
func (c *storeClient) do(ctx context.Context, verb, key string, f func() error) error {
	return c.o.Do(ctx, "provider: "+verb+" "+key, func() (uint64, error) {
		err := f()
		return c.s.digest(), err
	})
}

var _ provider.Writer = &storeClient{}

// Features implements provider.Writer.
func (c *storeClient) Features() provider.Features {
	return provider.Features{Exclusive: true, Guarded: true}
}

// Observe implements provider.Writer.
func (c *storeClient) Observe(ctx context.Context, t provider.Target) (is provider.Observed, err error) {
	err = c.do(ctx, "observe", t.Key, func() error {
		r := c.s.secrets[t.Key]
		if r == nil {
			return provider.NewError(provider.NotFound, "no secret %q", t.Key)
		}
		is = provider.Observed{Data: slices.Clone(r.data), Version: fmt.Sprint(r.version), ID: r.id, Mark: r.mark}
		return nil
	})
	return is, err
}

// Create implements provider.Writer.
func (c *storeClient) Create(ctx context.Context, t provider.Target, data []byte, mark string) (w provider.Written, err error) {
	err = c.write(ctx, "create", t.Key, func(r *remote) error {
		if r != nil {
			return provider.NewError(provider.Conflict, "secret %q exists", t.Key)
		}
		c.s.Put(t.Key, string(data))
		c.s.secrets[t.Key].mark = mark
		w = c.written(t.Key)
		return nil
	})
	return w, err
}

// Update implements provider.Writer.
func (c *storeClient) Update(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (w provider.Written, err error) {
	err = c.write(ctx, "update", t.Key, func(r *remote) error {
		if r == nil || r.id != seen.ID || fmt.Sprint(r.version) != seen.Version {
			return provider.NewError(provider.Conflict, "secret %q has changed", t.Key)
		}
		if data != nil && string(data) != string(r.data) {
			c.s.Put(t.Key, string(data))
		}
		w = c.written(t.Key)
		return nil
	})
	return w, err
}

// Mark implements provider.Writer.
func (c *storeClient) Mark(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
	return c.write(ctx, "mark", t.Key, func(r *remote) error {
		if r == nil || r.id != seen.ID || fmt.Sprint(r.version) != seen.Version || r.mark != seen.Mark {
			return provider.NewError(provider.Conflict, "secret %q has changed", t.Key)
		}
		r.mark = mark
		return nil
	})
}

// Delete implements provider.Writer.
func (c *storeClient) Delete(ctx context.Context, t provider.Target, seen provider.Observed) error {
	return c.write(ctx, "delete", t.Key, func(r *remote) error {
		if r != nil && (r.id != seen.ID || fmt.Sprint(r.version) != seen.Version || r.mark != seen.Mark) {
			return provider.NewError(provider.Conflict, "secret %q has changed", t.Key)
		}
		c.s.Remove(t.Key)
		return nil
	})
}

func (c *storeClient) written(key string) provider.Written {
	r := c.s.secrets[key]
	return provider.Written{Version: fmt.Sprint(r.version), ID: r.id}
}

// write is do for a write, which Refuse may refuse.
func (c *storeClient) write(ctx context.Context, verb, key string, f func(*remote) error) error {
	return c.do(ctx, verb, key, func() error {
		if c.s.Refuse != nil {
			if err := c.s.Refuse(c.store, verb, key); err != nil {
				return err
			}
		}
		return f(c.s.secrets[key])
	})
}
