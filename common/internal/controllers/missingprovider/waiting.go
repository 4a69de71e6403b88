package missingprovider

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
)

// waiting is the memory of the objects that no running module serves, and only of those.
type waiting struct {
	// ledger has the objects that are counted: they are neither in sync nor suspended.
	ledger ledger

	mu sync.Mutex
	// Bound: one per object.
	m map[types.NamespacedName]*wait
}

type ledger interface {
	Set(key types.NamespacedName, s metrics.State)
	Forget(key types.NamespacedName)
}

type wait struct {
	uid types.UID
	ref v1alpha1.StoreRef
	// since is when this process first saw that no running module serves the object.
	since time.Time
	// reportedVersion is the resourceVersion of the object that needs no further report before until; a zero until means never.
	reportedVersion string
	until           time.Time
}

// since returns when an object began to wait for the store that it refers to.
func (w *waiting) since(o client.Object, ref v1alpha1.StoreRef) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := client.ObjectKeyFromObject(o)
	if old := w.m[key]; old != nil && old.uid == o.GetUID() && old.ref == ref {
		return old.since
	}
	if w.m == nil {
		w.m = map[types.NamespacedName]*wait{}
	}
	w.m[key] = &wait{uid: o.GetUID(), ref: ref, since: time.Now()}
	return w.m[key].since
}

func (w *waiting) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.m, key)
	w.ledger.Forget(key)
}

// count adds an object to the ledger if it still waits.
func (w *waiting) count(key types.NamespacedName, s metrics.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.m[key] != nil {
		w.ledger.Set(key, s)
	}
}

// record records that a version of an object needs no further report before until.
func (w *waiting) record(key types.NamespacedName, version string, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.m[key]; s != nil {
		s.reportedVersion, s.until = version, until
	}
}

// idle removes an object from the ledger, and records the same as record.
func (w *waiting) idle(key types.NamespacedName, version string, until time.Time) {
	w.ledger.Forget(key)
	w.record(key, version, until)
}

// reported reports whether an object needs no report now, and for how long; 0 means for ever.
func (w *waiting) reported(o client.Object) (rest time.Duration, reported bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.m[client.ObjectKeyFromObject(o)]
	if s == nil || s.reportedVersion == "" || s.reportedVersion != o.GetResourceVersion() {
		return 0, false
	}
	if s.until.IsZero() {
		return 0, true
	}
	rest = time.Until(s.until)
	return rest, rest > 0
}
