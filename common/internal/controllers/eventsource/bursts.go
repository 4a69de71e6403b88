package eventsource

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
)

// burstFor is the time within which the changes of one secret are one read.
const burstFor = time.Second

// secret identifies the secrets of the stores of a Kind that have the same keys, separated by NUL.
type secret struct{ kind, keys string }

// bursts publish the first change of a secret at once, and those of the next second as one.
type bursts struct {
	to func(refresh.Event)

	mu sync.Mutex
	// open are the secrets that have changed lately. swept is when the others were last removed.
	open  map[secret]*burst
	swept time.Time
}

// burst is a secret that has changed lately.
type burst struct {
	until time.Time
	// waiting are the changes to publish at the end. They are held.
	waiting []refresh.Event
}

func newBursts(to func(refresh.Event)) *bursts {
	return &bursts{to: to, open: map[secret]*burst{}}
}

// publish publishes a change, now or at the end of the burst.
func (b *bursts) publish(e refresh.Event) {
	if b.first(secret{e.Kind.GoName(), strings.Join(e.Change.Keys, "\x00")}, e, time.Now()) {
		b.to(e)
	}
}

// first reports whether a change is the first of a burst. If it is not, it waits for the end.
func (b *bursts) first(of secret, e refresh.Event, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.swept) > burstFor {
		for s, o := range b.open {
			if len(o.waiting) == 0 && now.After(o.until) {
				delete(b.open, s)
			}
		}
		b.swept = now
	}
	o := b.open[of]
	if o == nil || len(o.waiting) == 0 && now.After(o.until) {
		b.open[of] = &burst{until: now.Add(burstFor)}
		return true
	}
	e.Change.Hold()
	if o.waiting = append(o.waiting, e); len(o.waiting) == 1 {
		time.AfterFunc(o.until.Sub(now), func() { b.flush(o) })
	}
	return false
}

// flush publishes the waiting changes of a burst as one.
func (b *bursts) flush(o *burst) {
	b.mu.Lock()
	waiting := o.waiting
	o.waiting, o.until = nil, time.Now().Add(burstFor)
	b.mu.Unlock()
	e := waiting[len(waiting)-1]
	e.Change = merged(waiting)
	b.to(e)
	e.Change.Release()
}

// merged returns one change for several of the same secret.
func merged(all []refresh.Event) *refresh.Change {
	last := all[len(all)-1].Change
	c := refresh.NewChange(func(matched bool) {
		for _, e := range all {
			if matched {
				e.Change.Match()
			}
			e.Change.Release()
		}
	})
	c.Keys, c.Version, c.At, c.By = last.Keys, last.Version, last.At, last.By
	if slices.ContainsFunc(all, func(e refresh.Event) bool { return e.Change.Version != last.Version }) {
		c.Version = "" // Which of them is current is not known.
	}
	c.Reaches = func(store types.NamespacedName, namespace string) bool {
		return slices.ContainsFunc(all, func(e refresh.Event) bool { return e.Change.Reaches(store, namespace) })
	}
	return c
}
