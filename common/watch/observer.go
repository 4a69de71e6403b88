package watch

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
)

type subscription struct {
	known   string
	changed func()
}

// observer is the store that a reflector fills. It keeps one resourceVersion, and tells those who
// know another.
type observer struct {
	cancel context.CancelFunc

	mu     sync.Mutex
	synced bool
	seen   string
	subs   map[any]*subscription
}

func (o *observer) subscribe(owner any, s *subscription) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.subs[owner] = s
	if o.synced {
		o.tellLocked(s)
	}
}

func (o *observer) unsubscribe(owner any) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.subs, owner)
	return len(o.subs)
}

func (o *observer) see(resourceVersion string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.synced = true
	o.seen = resourceVersion
	for _, s := range o.subs {
		o.tellLocked(s)
	}
}

func (o *observer) tellLocked(s *subscription) {
	if s.known == o.seen {
		return
	}
	s.known = o.seen
	go s.changed()
}

// Add implements cache.Store.
func (o *observer) Add(obj any) error { return o.Update(obj) }

// Update implements cache.Store.
func (o *observer) Update(obj any) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	o.see(m.GetResourceVersion())
	return nil
}

// Delete implements cache.Store.
func (o *observer) Delete(any) error {
	o.see("")
	return nil
}

// Replace implements cache.Store.
func (o *observer) Replace(list []any, _ string) error {
	if len(list) == 0 {
		o.see("")
		return nil
	}
	return o.Update(list[0])
}

// Resync implements cache.Store.
func (o *observer) Resync() error { return nil }
