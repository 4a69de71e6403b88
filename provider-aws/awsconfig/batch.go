package awsconfig

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// DeniedPause is how long a Denied remembers.
	DeniedPause = 5 * time.Minute
	// parallel bounds the single reads of one batch that are under way at the same time.
	parallel = 8
)

// Denied remembers for a while what was denied, so that it is not asked for at every read. Permissions
// change, so it forgets. The zero value is ready for use, by many goroutines.
type Denied struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu    sync.Mutex
	until map[string]time.Time
}

// Note remembers that something was denied.
func (d *Denied) Note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	maps.DeleteFunc(d.until, func(_ string, until time.Time) bool { return !now.Before(until) })
	if d.until == nil {
		d.until = map[string]time.Time{}
	}
	d.until[what] = now.Add(DeniedPause)
}

// Has reports whether something was denied a short while ago.
func (d *Denied) Has(what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	until, ok := d.until[what]
	return ok && d.now().Before(until)
}

func (d *Denied) now() time.Time {
	if d.Now == nil {
		return time.Now()
	}
	return d.Now()
}

// SaysNothingOfEntries reports whether the failure of a whole batch says nothing of its entries: a
// permission is missing, or one entry spoils the call.
func (c *Config) SaysNothingOfEntries(failure error, codes Codes) bool {
	code := CodeOf(failure)
	if code == "" {
		return false
	}
	class := provider.ClassOf(c.Explain(failure, "", codes))
	return IsAccessDenied(code) || class == provider.Invalid || class == provider.NotFound
}

// Each does something for some places of a batch, not too many at the same time.
func Each(places []int, do func(place int)) {
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, i := range places {
		g.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = g.Wait() // Each result has its own error.
}
