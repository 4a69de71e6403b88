package client

import (
	"sync"
	"time"
)

const (
	// placeLifetime is how long the place of an item is used without another search by title. A read compares the title each
	// time, but an item with the same title can be created in the meantime.
	placeLifetime = 5 * time.Minute
	// maxPlaces is the maximum number of places that are kept.
	maxPlaces = 10_000
)

// A place is where an item is.
type place struct {
	vault vault
	id    string
	title string
	until time.Time
}

// places are the places of items by key. They are safe for concurrent use. The zero places are empty.
type places struct {
	mu sync.Mutex
	// Bound: maxPlaces.
	all map[string]place
}

// known returns the place of a key, if it is known.
func (p *places) known(key string) (place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.all[key]
	return at, ok && time.Now().Before(at.until)
}

func (p *places) keep(key string, at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil || len(p.all) >= maxPlaces {
		p.all = map[string]place{}
	}
	at.until = time.Now().Add(placeLifetime)
	p.all[key] = at
}

func (p *places) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, key)
}
