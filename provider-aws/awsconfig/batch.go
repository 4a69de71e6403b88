package awsconfig

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// DeniedPause is how long Denied remembers an entry.
	DeniedPause = 5 * time.Minute
	// parallel is the maximum number of concurrent single reads for one batch.
	parallel = 8
)

// Denied remembers for DeniedPause which requests were denied, so that not every read repeats them. It forgets
// because permissions change. The zero value is ready for concurrent use.
type Denied struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu sync.Mutex
	// Bound: the requests that were denied within DeniedPause.
	until map[string]time.Time
}

// Note records that a request was denied.
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

// Has reports whether a request was denied within the last DeniedPause.
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

// IsOfWholeBatch reports whether the failure of a whole batch leaves open what is wrong with its entries:
// a permission is missing, or a single entry makes AWS reject the whole call.
func (c *Config) IsOfWholeBatch(failure error, codes Codes) bool {
	code := CodeOf(failure)
	if code == "" {
		return false
	}
	class := provider.ClassOf(c.Explain(failure, "", codes))
	return IsAccessDenied(code) || class == provider.Invalid || class == provider.NotFound
}

// Each calls do for each place of a batch, with at most parallel calls at the same time.
func Each(places []int, do func(place int)) {
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, i := range places {
		g.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = g.Wait() // Each result carries its own error.
}
