package storehealth

import (
	"context"
	"fmt"
	"slices"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// otherClassInterval is the interval at which stores of another class are checked. That makes no call to a provider.
const otherClassInterval = time.Minute

// observedWait is how much longer a store waits that an operator has observed before: that one may have its Leases in another
// namespace, and be slow or restart after a change of the spec.
const observedWait = 5 * time.Minute

// skipped is a version of a store of another class.
type skipped struct {
	generation int64
	// since is when this process first saw that version.
	since time.Time
}

// elsewhere counts a store of another class that no running operator serves. If several operators could count it, only
// the first does. The store and its objects are reported only while no operator has observed the spec of the store: an
// operator whose Leases are in another namespace may serve it.
func (r *Reconciler) elsewhere(ctx context.Context, s provider.Object) (reconcile.Result, error) {
	key, class := client.ObjectKeyFromObject(s), provider.SourceSpec(s).Controller
	known, _ := r.known.Get(key, s.GetUID())
	if known.skipped.since.IsZero() {
		r.pool.Drop(s.GetUID())
	}
	if known.skipped.since.IsZero() || known.skipped.generation != s.GetGeneration() {
		*known = validated{uid: s.GetUID(), skipped: skipped{s.GetGeneration(), r.opts.Now()}}
	}
	missing, wait := r.board.MissingClass(&r.anyStore, class, key.Namespace, known.skipped.since)
	self, all := r.board.Self(), r.board.Serving(&r.anyStore, key.Namespace)
	first := len(all) > 0 && all[0].Class == self.Class && slices.Equal(all[0].Namespaces, self.Namespaces)
	if !missing || !first {
		r.ledger.Forget(key)
		r.classes.Set(r.ref(key.Name), key.Namespace, class, "")
		if wait > 0 {
			return queue.Later(wait), nil
		}
		return queue.Later(otherClassInterval), nil
	}
	r.ledger.Set(key, metrics.State{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonProviderNotRunning})
	observed := s.StoreStatus().ObservedGeneration
	if observed == s.GetGeneration() || observed > 0 && r.opts.Now().Sub(known.skipped.since) < observedWait {
		r.classes.Set(r.ref(key.Name), key.Namespace, class, "")
		return queue.Later(otherClassInterval), nil
	}
	message := missingClass(r.anyStore.Kind, key.Name, class)
	next := s.StoreStatus().DeepCopy()
	status.Conclude(&next.Conditions, s.GetGeneration(), status.Stalled(v1alpha1.ReasonProviderNotRunning, message))
	err := r.patch(ctx, s, s.GetResourceVersion(), next)
	if err != nil {
		message = ""
	}
	if kerrors.IsConflict(err) {
		err = nil // The operator that serves the store may have written its status.
	}
	r.classes.Set(r.ref(key.Name), key.Namespace, class, message)
	return queue.Later(otherClassInterval), err
}

// missingClass returns the message that no running operator serves the class of a store.
func missingClass(kind, name, class string) string {
	if class == "" {
		return fmt.Sprintf("no running operator serves %s %q, which has no spec.controller; set that field, or start an operator without --controller-class", kind, name)
	}
	return fmt.Sprintf("no running operator serves the class %q of %s %q; correct its spec.controller, or start an operator with --controller-class=%s (global.controllerClass in the chart)",
		class, kind, name, class)
}
