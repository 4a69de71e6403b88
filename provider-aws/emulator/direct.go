package emulator

import (
	"bytes"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

// A PutOption sets other properties of a secret than its value.
type PutOption func(*secret, *putSettings)

type putSettings struct{ binary bool }

// Binary stores the value as SecretBinary even if it is text.
func Binary() PutOption {
	return func(_ *secret, p *putSettings) { p.binary = true }
}

// Tags sets tags of the secret; other tags stay.
func Tags(tags map[string]string) PutOption {
	return func(s *secret, _ *putSettings) {
		s.tags = withTags(s.tags, tagsOf(tags))
	}
}

// tagsOf returns tags in order.
func tagsOf(tags map[string]string) (all []tag) {
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, tag{Key: k, Value: tags[k]})
	}
	return all
}

// Put adds a version to a secret and returns the version's id. It creates or restores the secret if necessary.
// It is not counted as a call, and has no size limit. Text is stored as SecretString, other bytes as
// SecretBinary. Queues get the event of a call.
func (e *Emulator) Put(name string, value []byte, opts ...PutOption) (versionID string) {
	arn, id := e.put(name, value, opts...)
	if e.hasQueues() {
		e.trail("PutSecretValue", map[string]string{"secretId": name, "clientRequestToken": id}, map[string]string{"arn": arn})
	}
	return id
}

func (e *Emulator) put(name string, value []byte, opts ...PutOption) (arn, versionID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.lookup(name)
	if s == nil {
		s = e.insert(name)
	}
	s.deleteAt = time.Time{}
	p := putSettings{binary: !utf8.Valid(value)}
	for _, o := range opts {
		o(s, &p)
	}
	return s.arn, s.put(newUUID(), payload{data: bytes.Clone(value), binary: p.binary}, []string{stageCurrent}, e.now()).id
}

// Get returns the current value of a secret, and whether a client could read it.
func (e *Emulator) Get(name string) (value []byte, ok bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	s, err := e.find(name)
	if err != nil {
		return nil, false
	}
	v, err := s.read("", "")
	if err != nil {
		return nil, false
	}
	return bytes.Clone(v.value.data), true
}

// Delete deletes a secret without a recovery window.
func (e *Emulator) Delete(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.secrets[name]; s != nil {
		e.remove(s)
	}
}
