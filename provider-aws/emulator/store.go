package emulator

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A tag is one tag of a secret or parameter, in the service's own encoding.
type tag struct {
	Key   string
	Value string
}

// A secret is protected by the emulator's lock, except for accessed.
type secret struct {
	seq         uint64
	name        string
	arn         string
	description string
	kmsKeyID    string
	kind        string
	tags        []tag
	replicas    []replica
	policy      string
	created     time.Time
	changed     time.Time
	deleteAt    time.Time // the zero time means not scheduled for deletion
	accessed    atomic.Int64
	versions    []*version // in order of creation
}

func (e *Emulator) arnPrefix() string {
	return "arn:aws:secretsmanager:" + e.region + ":" + e.account + ":secret:"
}

// arnSuffix returns the random characters that the service appends to the name, so that policies for a deleted
// secret do not apply to a new one of the same name.
func arnSuffix() string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	b := []byte("-------")
	for i := 1; i < len(b); i++ {
		b[i] = alphabet[rand.IntN(len(alphabet))]
	}
	return string(b)
}

// lookup finds a secret by its name, its ARN, or its ARN without the random suffix. It returns nil if the
// secret is deleted. The caller holds the lock.
func (e *Emulator) lookup(id string) *secret {
	name := id
	if strings.HasPrefix(id, "arn:") {
		rest, ok := strings.CutPrefix(id, e.arnPrefix())
		if !ok {
			return nil
		}
		name = rest
		if n := len(rest) - len("-aBc123"); n > 0 {
			if s := e.secrets[rest[:n]]; s != nil && s.arn == id {
				name = s.name
			}
		}
	}
	s := e.secrets[name]
	if s == nil || s.deleted(e.now()) {
		return nil
	}
	return s
}

// find is lookup with the service's errors: for an invalid id, a secret that does not exist, and a secret that
// is scheduled for deletion.
func (e *Emulator) find(id string) (*secret, error) {
	s, err := e.findAny(id)
	if err != nil {
		return nil, err
	}
	if s.scheduled() {
		return nil, markedForDeletion()
	}
	return s, nil
}

// findAny also finds a secret that is scheduled for deletion.
func (e *Emulator) findAny(id string) (*secret, error) {
	if s := e.lookup(id); s != nil {
		return s, nil
	}
	if !strings.HasPrefix(id, "arn:") && !nameChars.MatchString(id) {
		return nil, invalidName()
	}
	return nil, notFound()
}

// insert adds a new secret, or replaces one whose recovery window has ended.
func (e *Emulator) insert(name string) *secret {
	if old := e.secrets[name]; old != nil {
		e.remove(old)
	}
	e.seq++
	now := e.now()
	s := &secret{seq: e.seq, name: name, arn: e.arnPrefix() + name + arnSuffix(), created: now, changed: now}
	e.secrets[name] = s
	e.order = append(e.order, s)
	return s
}

func (e *Emulator) remove(s *secret) {
	delete(e.secrets, s.name)
	for i := range e.order {
		if e.order[i] == s {
			e.order = append(e.order[:i:i], e.order[i+1:]...)
			return
		}
	}
}

func (s *secret) scheduled() bool { return !s.deleteAt.IsZero() }

func (s *secret) deleted(now time.Time) bool { return s.scheduled() && !now.Before(s.deleteAt) }

// touch records a read. The service shows only the day.
func (s *secret) touch(now time.Time) { s.accessed.Store(now.Unix()) }

func (s *secret) lastAccess() time.Time {
	sec := s.accessed.Load()
	if sec == 0 {
		return time.Time{}
	}
	return time.Unix(sec, 0).UTC().Truncate(24 * time.Hour)
}

// withTags returns tags with more added. A tag with the same key is replaced.
func withTags(tags, more []tag) []tag {
	all := slices.Clone(tags)
	for _, t := range more {
		if i := slices.IndexFunc(all, func(o tag) bool { return o.Key == t.Key }); i >= 0 {
			all[i] = t
		} else {
			all = append(all, t)
		}
	}
	return all
}
