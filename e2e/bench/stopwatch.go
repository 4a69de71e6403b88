package bench

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// stopwatch records when the creation of each object started.
type stopwatch struct {
	mu sync.Mutex
	at map[types.NamespacedName]time.Time
}

func newStopwatch() *stopwatch { return &stopwatch{at: map[types.NamespacedName]time.Time{}} }

func (w *stopwatch) start(o Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at[o.NamespacedName] = time.Now()
}

// until returns how long each object waited for its Secret.
func (w *stopwatch) until(a *arrivals, objects []Object) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	waits := make([]time.Duration, 0, len(objects))
	for _, o := range objects {
		waits = append(waits, a.at(o).Sub(w.at[o.NamespacedName]))
	}
	return waits
}
