package queue

import (
	"math/rand/v2"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Later requeues the object after wait, with low priority, so that new objects come first. For 0 it does not requeue.
func Later(wait time.Duration) reconcile.Result {
	if wait <= 0 {
		return reconcile.Result{}
	}
	low := Low
	return reconcile.Result{RequeueAfter: wait, Priority: &low}
}

// Soon requeues after 20 to 100 ms: another writer has changed an object before this pass could write it, or the cache
// does not have it yet.
func Soon() reconcile.Result {
	return reconcile.Result{RequeueAfter: 20*time.Millisecond + rand.N(80*time.Millisecond)}
}

// IsSoon reports whether a result is one of Soon or Again: the pass has not come to an end.
func IsSoon(res reconcile.Result) bool { return res.RequeueAfter > 0 && res.Priority == nil }

// Misses counts the passes in a row that ended with Again.
type Misses int

// Again is Soon with a delay that doubles each time, up to 64-fold: with a cache far behind the API server, a short
// delay would repeat the reads of the provider. The missing watch event enqueues the object at once.
func (m *Misses) Again() reconcile.Result {
	res := Soon()
	res.RequeueAfter <<= min(*m, 6)
	*m++
	return res
}
