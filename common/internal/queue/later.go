package queue

import (
	"math/rand/v2"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Later comes back after a time, at low priority, so that new objects go first. It does not come back after 0.
func Later(wait time.Duration) reconcile.Result {
	if wait <= 0 {
		return reconcile.Result{}
	}
	low := Low
	return reconcile.Result{RequeueAfter: wait, Priority: &low}
}

// Soon comes back when the world has moved on under a write.
func Soon() reconcile.Result {
	return reconcile.Result{RequeueAfter: 20*time.Millisecond + rand.N(80*time.Millisecond)}
}

// Misses counts the passes in a row under which the world has moved on.
type Misses int

// Again is Soon, but later each time: who is behind the API server for long would read the provider
// again and again. The event that is missing brings the object back at once.
func (m *Misses) Again() reconcile.Result {
	res := Soon()
	res.RequeueAfter <<= min(*m, 6)
	*m++
	return res
}
