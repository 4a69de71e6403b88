package fake

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// MaxSize limits a written value, in bytes.
const MaxSize = 64 << 10

func tooLarge(data []byte) error {
	if len(data) > MaxSize {
		return provider.NewError(provider.Invalid, "the value has %d bytes, at most %d are allowed", len(data), MaxSize)
	}
	return nil
}

// Weak creates writers without guarantees, as some services have them: Create is not Exclusive, and Update not
// Guarded.
func Weak() Option { return func(b *Backend) { b.features = provider.Features{} } }

// Late creates writers that detect a concurrent write only after an Update, and then return the lost value.
func Late() Option { return func(b *Backend) { b.late = true } }

// writer writes secrets.
type writer struct{ c *conn }

// Features returns the features of the backend.
func (w writer) Features() provider.Features { return w.c.b.features }

// Observe reads the current state for a write.
func (w writer) Observe(ctx context.Context, t provider.Target) (provider.Observed, error) {
	tags, err := tagsOf(t)
	if err != nil {
		return provider.Observed{}, err
	}
	if err := w.begin(ctx, CallObserve, t); err != nil {
		return provider.Observed{}, err
	}
	return w.c.b.observe(t.Key, tags)
}

// Create creates a secret that does not exist.
func (w writer) Create(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
	tags, err := tagsOf(t)
	if err != nil {
		return provider.Written{}, err
	}
	if err := tooLarge(data); err != nil {
		return provider.Written{}, err
	}
	if err := w.begin(ctx, CallCreate, t); err != nil {
		return provider.Written{}, err
	}
	b := w.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.secrets[nameOf(t.Key)] != nil && b.features.Exclusive {
		return provider.Written{}, provider.NewError(provider.Conflict, "secret %q exists", t.Key)
	}
	if !b.features.Exclusive {
		mark = ""
	}
	version := b.putLocked(nameOf(t.Key), data, put{tags: tags})
	b.secrets[nameOf(t.Key)].mark = mark
	return provider.Written{Version: version, ID: b.secrets[nameOf(t.Key)].id}, nil
}

// Update changes a secret that has not changed since it was seen.
func (w writer) Update(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
	tags, err := tagsOf(t)
	if err != nil {
		return provider.Written{}, err
	}
	if err := tooLarge(data); err != nil {
		return provider.Written{}, err
	}
	if err := w.begin(ctx, CallUpdate, t); err != nil {
		return provider.Written{}, err
	}
	b := w.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.secrets[nameOf(t.Key)]
	if s == nil {
		return provider.Written{}, provider.NewError(provider.NotFound, "secret %q does not exist", t.Key)
	}
	var written provider.Written
	if data != nil && !bytes.Equal(s.current().data, data) {
		switch moved := s.current().name != seen.Version; {
		case moved && b.late:
			written.Lost = bytes.Clone(s.current().data)
		case moved && b.features.Guarded:
			return provider.Written{}, provider.ErrChanged
		}
		b.putLocked(nameOf(t.Key), data, put{})
	}
	if len(seen.Drift) > 0 {
		s.tags = merged(s.tags, tags)
	}
	written.Version, written.ID = s.current().name, s.id
	return written, nil
}

// Mark replaces the mark of a secret that has not changed since it was seen.
func (w writer) Mark(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
	if err := w.begin(ctx, CallMark, t); err != nil {
		return err
	}
	b := w.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.secrets[nameOf(t.Key)]
	if s == nil || s.id != seen.ID || s.current().name != seen.Version || s.mark != seen.Mark {
		return provider.ErrChanged
	}
	s.mark = mark
	return nil
}

// Delete deletes a secret that has not changed since it was seen.
func (w writer) Delete(ctx context.Context, t provider.Target, seen provider.Observed) error {
	if err := w.begin(ctx, CallDelete, t); err != nil {
		return err
	}
	b := w.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.secrets[nameOf(t.Key)]
	if s != nil && (s.current().name != seen.Version || s.mark != seen.Mark) {
		return provider.ErrChanged
	}
	delete(b.secrets, nameOf(t.Key))
	return nil
}

// begin applies the faults of the call and of the secret.
func (w writer) begin(ctx context.Context, c Call, t provider.Target) error {
	if err := w.c.begin(ctx, Record{Call: c, Refs: []provider.Ref{{Key: t.Key}}}); err != nil {
		return err
	}
	return w.c.b.suffer(ctx, c, t.Key)
}

func (b *Backend) observe(key string, tags map[string]string) (provider.Observed, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.secrets[nameOf(key)]
	if s == nil {
		return provider.Observed{}, provider.NewError(provider.NotFound, "secret %q does not exist", key)
	}
	o := provider.Observed{Data: bytes.Clone(s.current().data), Version: s.current().name, ID: s.id, Mark: s.mark}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		if v, ok := s.tags[k]; !ok || v != tags[k] {
			o.Drift = append(o.Drift, "tags."+k)
		}
	}
	return o, nil
}

func (s *secret) current() version { return s.versions[len(s.versions)-1] }

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

// tagsOf returns the tags in the metadata of a Target.
func tagsOf(t provider.Target) (map[string]string, error) {
	var m struct {
		Tags map[string]string `json:"tags"`
	}
	err := provider.DecodeMetadata(t.Metadata, &m, "tags, as a map of strings")
	return m.Tags, err
}

// Mark returns the mark of a secret, which shows its creator.
func (b *Backend) Mark(key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.secrets[key]; s != nil {
		return s.mark
	}
	return ""
}

// ID returns the ID of a secret; empty if it does not exist.
func (b *Backend) ID(key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.secrets[key]; s != nil {
		return s.id
	}
	return ""
}

// Value returns the current value of a secret; false if it does not exist.
func (b *Backend) Value(key string) ([]byte, bool) {
	v, err := b.read(provider.Ref{Key: key})
	return v.Data, err == nil
}

// TagsOf returns the tags of a secret.
func (b *Backend) TagsOf(key string) map[string]string {
	v, err := b.read(provider.Ref{Key: key, Metadata: true})
	if err != nil {
		return nil
	}
	return v.Metadata
}

// putLocked stores data as the current version of key.
func (b *Backend) putLocked(key string, data []byte, p put) string {
	if p.version == "" {
		b.last[key]++
		p.version = fmt.Sprintf("v%d", b.last[key])
	}
	s := b.secrets[key]
	if s == nil {
		b.made++
		s = &secret{id: fmt.Sprintf("%p/%d", b, b.made)} // No other backend has this ID.
		b.secrets[key] = s
	}
	s.versions = slices.DeleteFunc(s.versions, func(v version) bool { return v.name == p.version })
	s.versions = append(s.versions, version{name: p.version, data: bytes.Clone(data)})
	if p.tags != nil {
		s.tags = p.tags
	}
	return p.version
}
