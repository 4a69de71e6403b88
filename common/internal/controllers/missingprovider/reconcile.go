package missingprovider

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

type reconciler struct {
	// client does not read from a cache; cache does.
	client       client.Client
	cache        cache.Cache
	events       events.EventRecorder
	kind         kind
	absence      absence
	waiting      waiting
	writeLimiter flowcontrol.RateLimiter
}

// check returns the store of an object, and the verdict if no running operator serves it. If that is not certain yet, wait
// is the delay until the next check.
func (r *reconciler) check(o client.Object) (ref v1alpha1.StoreRef, v *status.Verdict, wait time.Duration) {
	key := client.ObjectKeyFromObject(o)
	if o.GetDeletionTimestamp() == nil {
		ref = ptr.Deref(r.kind.leading(o), ref)
		v, wait = r.absence.find(ref, key.Namespace, r.waiting.since(o, ref))
	}
	if v == nil && wait == 0 {
		r.waiting.forget(key)
	}
	return ref, v, wait
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=get

// Reconcile reports on one object, if no running operator serves it.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o := r.kind.empty()
	if err := r.cache.Get(ctx, req.NamespacedName, o); err != nil {
		r.waiting.forget(req.NamespacedName)
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot read the object")
	}
	ref, v, wait := r.check(o)
	if v == nil || !r.absence.held() {
		return reconcile.Result{RequeueAfter: wait}, nil // The next holder of the duties checks all objects.
	}
	if rest, reported := r.waiting.reported(o); reported {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	if err := r.writeLimiter.Wait(ctx); err != nil {
		return reconcile.Result{}, nil //nolint:nilerr // The process is shutting down.
	}
	live := r.kind.empty()
	if err := r.client.Get(ctx, req.NamespacedName, live); err != nil {
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot read the object")
	}
	if live.GetUID() != o.GetUID() || live.GetDeletionTimestamp() != nil || ptr.Deref(r.kind.leading(live), v1alpha1.StoreRef{}) != ref {
		return reconcile.Result{}, nil // The event of that change enqueues the object again.
	}
	return r.report(ctx, live, *v)
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets/status;pushsecrets/status,verbs=patch

// report writes the conditions of an object that no running operator serves. It writes nothing while the object is
// suspended, or in sync and not due: then it does not need the module yet.
func (r *reconciler) report(ctx context.Context, live client.Object, v status.Verdict) (reconcile.Result, error) {
	key, s := client.ObjectKeyFromObject(live), r.kind.stateOf(live)
	rest := time.Duration(0)
	if s.inSync && !s.due.IsZero() {
		rest = time.Until(s.due)
	}
	next := slices.Clone(s.conditions)
	if s.stalls {
		status.Conclude(&next, live.GetGeneration(), v)
	} else {
		status.Set(&next, v1alpha1.ConditionReady, live.GetGeneration(), v)
	}
	switch {
	case s.inSync && rest > 0:
		r.waiting.idle(key, live.GetResourceVersion(), s.due)
		return reconcile.Result{RequeueAfter: rest}, nil
	case s.suspended, s.inSync && s.due.IsZero():
		r.waiting.idle(key, live.GetResourceVersion(), time.Time{})
		return reconcile.Result{}, nil
	}
	r.waiting.count(key, metrics.Of(next, live.GetCreationTimestamp().Time))
	request := live.GetAnnotations()[v1alpha1.RefreshRequestAnnotation]
	if equality.Semantic.DeepEqual(s.conditions, next) && s.attempted == request {
		r.waiting.record(key, live.GetResourceVersion(), time.Time{})
		return reconcile.Result{}, nil
	}
	// A conflict is not retried: the module may have started meanwhile, and have written its own conditions.
	out := r.kind.empty()
	err := status.Once(ctx, r.client, live, live.GetResourceVersion(), reported{s.conditions, s.observed, s.attempted}, reported{next, max(s.observed, 0), request}, out)
	if kerrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if err != nil {
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot write the status")
	}
	r.waiting.record(key, out.GetResourceVersion(), time.Time{})
	r.events.Eventf(live, nil, corev1.EventTypeWarning, v.Reason, "Sync", "%s", v.Message)
	return reconcile.Result{}, nil
}

// reported is the part of a status that this controller writes. The conditions have the present generation, but
// status.observedGeneration does not, because no module has observed the spec. A negative observedGeneration is
// removed, since tools that wait for an object would ignore its conditions.
type reported struct {
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	// AttemptedRefreshRequest is answered by the conditions.
	AttemptedRefreshRequest string `json:"attemptedRefreshRequest,omitempty"`
}
