package fanout

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

const (
	// statusDelay is how long the results of namespaces are collected before the status is written.
	statusDelay = 250 * time.Millisecond
	// Maximum time for which pending namespaces delay the status.
	maxStatusDelay = 2 * time.Second
	// retry is the interval of retries after a refusal: not every change that helps causes an event.
	retry = time.Minute
)

// reconciler keeps the children of parents in sync. Only the holder of the shared duties does anything. An operator
// that takes them up reconciles all parents.
type reconciler struct {
	parents  *parents
	children *children
	duties   Duties
	ledger   *metrics.Ledger
	board    *board
	now      func() time.Time
	// add enqueues a request that no event has caused.
	add func(req request, priority int, after time.Duration)
}

// Reconcile handles one request.
func (r *reconciler) Reconcile(ctx context.Context, req request) (reconcile.Result, error) {
	if !r.duties.Held() {
		return reconcile.Result{}, nil
	}
	if req.scope == everything {
		r.board.clear()
		r.ledger.Clear()
		for _, name := range r.parents.names(ctx) {
			r.add(aboutParent(name), queue.High, 0)
		}
		return reconcile.Result{}, nil
	}
	parent, err := r.parents.cached(ctx, req.parent)
	if err != nil {
		return reconcile.Result{}, err
	}
	if parent == nil {
		r.board.forget(req.parent) // The garbage collector deletes its children.
		r.parents.forget(req.parent)
		r.ledger.Forget(types.NamespacedName{Name: req.parent})
		return reconcile.Result{}, nil
	}
	want, err := r.parents.wanted(ctx, parent)
	if err != nil {
		if kerrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: statusDelay}, nil // The cache is behind.
		}
		return reconcile.Result{}, err
	}
	choice, invalid := r.parents.check(want)
	switch {
	case req.scope == wholeParent:
		return r.oversee(ctx, parent, want, choice, invalid)
	case invalid != "":
		return reconcile.Result{}, nil // The wanted children are not known, so none is deleted.
	}
	return r.serve(ctx, parent, want, choice, req.namespace)
}

// oversee enqueues the namespaces of a parent that have no result yet, and writes its status.
func (r *reconciler) oversee(ctx context.Context, parent client.Object, want desired, chosen choice, invalid string) (reconcile.Result, error) {
	now := r.now()
	behind := r.board.behind(parent, now)
	next := want.status.DeepCopy()
	next.ObservedGeneration = parent.GetGeneration()
	pending := 0
	if invalid == "" {
		var err error
		if pending, err = r.survey(ctx, parent, chosen, next); err != nil {
			return reconcile.Result{}, err
		}
	}
	if pending > 0 && now.Sub(behind) < maxStatusDelay {
		return reconcile.Result{RequeueAfter: statusDelay}, nil
	}
	conclude(next, parent.GetGeneration(), pending, invalid)
	r.board.shown(parent)
	state := metrics.Of(next.Conditions, parent.GetCreationTimestamp().Time)
	r.ledger.Set(client.ObjectKeyFromObject(parent), state)
	metrics.Synced(r.parents.parent, state.Reason)
	if err := r.parents.patch(ctx, parent, want.status, next); err != nil {
		return reconcile.Result{}, err
	}
	if pending > 0 {
		return reconcile.Result{RequeueAfter: maxStatusDelay}, nil
	}
	return reconcile.Result{}, nil
}

// survey adds the results of the namespaces of a parent to a status, and enqueues the namespaces that have none yet.
// It returns how many of these are selected.
func (r *reconciler) survey(ctx context.Context, parent client.Object, chosen choice, st *v1alpha1.FanOutStatus) (pending int, err error) {
	namespaces, err := r.chosen(ctx, chosen)
	if err != nil {
		return 0, err
	}
	leftover, err := r.leftover(ctx, parent, namespaces)
	if err != nil {
		return 0, err
	}
	st.ProvisionedNamespaces, st.FailedNamespaces = nil, nil
	for i, ns := range slices.Concat(namespaces, leftover) {
		if is, ok := r.board.get(parent, ns); ok {
			report(st, ns, is)
			continue
		}
		r.add(aboutNamespace(parent.GetName(), ns), queue.Low, 0)
		if i < len(namespaces) {
			pending++
		}
	}
	return pending, nil
}

// chosen returns the selected namespaces, sorted, without those that are being deleted.
func (r *reconciler) chosen(ctx context.Context, chosen choice) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(resolve.NamespaceMetadata().GroupVersionKind())
	if err := r.parents.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrap(err, "cannot list namespaces")
	}
	var names []string
	for i := range list.Items {
		if chosen.admits(&list.Items[i]) {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// leftover returns the namespaces that have a child of a parent and are not selected.
func (r *reconciler) leftover(ctx context.Context, parent client.Object, chosen []string) ([]string, error) {
	children, err := r.children.list(ctx, parent)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range children {
		ns := c.GetNamespace()
		if _, found := slices.BinarySearch(chosen, ns); !found && !slices.Contains(names, ns) {
			names = append(names, ns)
		}
	}
	slices.Sort(names)
	return names, nil
}

// serve brings one namespace of a parent in sync.
func (r *reconciler) serve(ctx context.Context, parent client.Object, want desired, chosen choice, name string) (reconcile.Result, error) {
	namespace := resolve.NamespaceMetadata()
	err := r.parents.cache.Get(ctx, types.NamespacedName{Name: name}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, errors.Wrap(err, "cannot read the namespace")
	}
	if err != nil || namespace.DeletionTimestamp != nil {
		return r.note(parent, name, nil), nil // Its children are deleted with it.
	}
	was, _ := r.board.get(parent, name)
	is, admitted := result{revertBackoff: was.revertBackoff}, chosen.admits(namespace)
	wait := retry
	if admitted {
		var o outcome
		if o, err = r.children.provision(ctx, parent, want, name, was.revertBackoff); o.noNamespace {
			return r.note(parent, name, nil), nil
		}
		is = was.after(o, err == nil, r.now())
		if o.wait > 0 {
			wait = o.wait
		}
	}
	if err == nil && is.refused == "" {
		is.refused, err = r.children.withdraw(ctx, parent, want, chosen, name, admitted)
	}
	switch {
	case kerrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: statusDelay}, nil // Another writer was first, or the cache is behind.
	case err != nil:
		return r.failed(parent, name, is, err)
	case is.refused != "":
		r.note(parent, name, &is)
		return reconcile.Result{RequeueAfter: wait}, nil
	case !admitted:
		return r.note(parent, name, nil), nil
	}
	return r.note(parent, name, &is), nil
}

// failed records an error in a namespace. An error that back-off would not help is retried at a fixed interval.
func (r *reconciler) failed(parent client.Object, namespace string, is result, err error) (reconcile.Result, error) {
	is.refused = explain(err)
	r.note(parent, namespace, &is)
	if final(err) {
		return reconcile.Result{RequeueAfter: retry}, nil
	}
	return reconcile.Result{}, err
}

// note records the result of a namespace, and updates the status if that changes it.
func (r *reconciler) note(parent client.Object, namespace string, is *result) reconcile.Result {
	if r.board.set(parent, namespace, is, r.now()) {
		r.add(aboutParent(parent.GetName()), queue.High, statusDelay)
	}
	return reconcile.Result{}
}

// final reports whether the API server would refuse the same request again, so that back-off would not help.
func final(err error) bool {
	return kerrors.IsForbidden(err) || kerrors.IsInvalid(err) || kerrors.IsBadRequest(err)
}

// maxReason is the maximum length of the reason of one namespace, in bytes: there may be thousands of namespaces.
const maxReason = 300

// explain returns the text of an error for the status.
func explain(err error) string {
	var refusal kerrors.APIStatus
	text := err.Error()
	if errors.As(err, &refusal) {
		text = fmt.Sprintf("%s: %s", refusal.Status().Reason, refusal.Status().Message)
	}
	return status.Cut(text, maxReason)
}
