package fanout

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

const (
	// pace is how long what came of namespaces is collected before it is written.
	pace = 250 * time.Millisecond
	// patience is how long namespaces that nothing came of yet hold up the status.
	patience = 2 * time.Second
	// retry is how often what is refused is tried again: not all that is in the way goes with an event.
	retry = time.Minute
)

// Reconcile works on a task. Only who holds the shared duties does; what is passed over here is looked at when they
// are taken up.
func (r *reconciler) Reconcile(ctx context.Context, t task) (reconcile.Result, error) {
	if !r.duties.Held() {
		return reconcile.Result{}, nil
	}
	if t.Name == "" {
		r.board.clear()
		r.ledger.Clear()
		for _, name := range r.parents(ctx) {
			r.add(taskOf(name, ""), queue.High, 0)
		}
		return reconcile.Result{}, nil
	}
	parent := r.kind.Parent()
	err := r.cache.Get(ctx, types.NamespacedName{Name: t.Name}, parent)
	switch {
	case kerrors.IsNotFound(err) || err == nil && parent.GetDeletionTimestamp() != nil:
		r.board.forget(t.Name) // The collector removes what it owns.
		r.raws.forget(t.Name)
		r.ledger.Forget(types.NamespacedName{Name: t.Name})
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, errors.Wrap(err, "cannot read the object")
	}
	want := r.kind.Want(parent)
	if want.Name == "" {
		want.Name = parent.GetName()
	}
	choice, invalid := r.check(want)
	if want.Raw, err = r.raw(ctx, parent); err != nil {
		if kerrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: pace}, nil // The cache is behind.
		}
		return reconcile.Result{}, err
	}
	if t.Namespace == "" {
		return r.oversee(ctx, parent, want, choice, invalid)
	}
	if invalid != "" {
		return reconcile.Result{}, nil // Nobody knows what it wants; so nothing goes, either.
	}
	return r.serve(ctx, parent, want, choice, t)
}

// oversee hands out the namespaces of a parent that nothing is known of, and writes its status.
func (r *reconciler) oversee(ctx context.Context, parent client.Object, want Want, chosen choice, invalid string) (reconcile.Result, error) {
	now := r.now()
	behind := r.board.behind(parent, now)
	next := want.Status.DeepCopy()
	next.ObservedGeneration = parent.GetGeneration()
	var pending int
	if invalid == "" {
		next.ProvisionedNamespaces, next.FailedNamespaces = nil, nil
		namespaces, err := r.namespaces(ctx, chosen)
		if err != nil {
			return reconcile.Result{}, err
		}
		leftover, err := r.leftover(ctx, parent, namespaces)
		if err != nil {
			return reconcile.Result{}, err
		}
		for _, ns := range namespaces {
			if !r.report(parent, ns, next) {
				r.add(taskOf(parent.GetName(), ns), queue.Low, 0)
				pending++
			}
		}
		for _, ns := range leftover {
			if !r.report(parent, ns, next) {
				r.add(taskOf(parent.GetName(), ns), queue.Low, 0)
			}
		}
	}
	if pending > 0 && now.Sub(behind) < patience {
		return reconcile.Result{RequeueAfter: pace}, nil
	}
	conclude(next, parent.GetGeneration(), pending, invalid)
	r.board.shown(parent)
	standing := metrics.Of(next.Conditions, parent.GetCreationTimestamp().Time)
	r.ledger.Set(client.ObjectKeyFromObject(parent), standing)
	metrics.Synced(r.kind.ParentKind, standing.Reason)
	if err := r.patch(ctx, parent, want.Status, next); err != nil {
		return reconcile.Result{}, err
	}
	if pending > 0 {
		return reconcile.Result{RequeueAfter: patience}, nil
	}
	return reconcile.Result{}, nil
}

// namespaces returns those that are chosen, in order, but for those that are on their way out.
func (r *reconciler) namespaces(ctx context.Context, chosen choice) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(resolve.NamespaceMetadata().GroupVersionKind())
	if err := r.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
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

// leftover returns the namespaces that hold a child of a parent although they are not chosen.
func (r *reconciler) leftover(ctx context.Context, parent client.Object, chosen []string) ([]string, error) {
	children, err := r.children(ctx, parent)
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

// children returns what the cache has of the children of a parent. They must not be changed.
func (r *reconciler) children(ctx context.Context, parent client.Object, o ...client.ListOption) ([]client.Object, error) {
	list := r.kind.Children()
	o = append(o, client.MatchingFields{ownerIndex: string(parent.GetUID())}, client.UnsafeDisableDeepCopy)
	if err := r.cache.List(ctx, list, o...); err != nil {
		return nil, errors.Wrapf(err, "cannot list objects of kind %s", r.kind.ChildKind)
	}
	var out []client.Object
	err := meta.EachListItem(list, func(o runtime.Object) error {
		if c, ok := o.(client.Object); ok {
			out = append(out, c)
		}
		return nil
	})
	return out, err
}

// serve brings one namespace of a parent in step.
func (r *reconciler) serve(ctx context.Context, parent client.Object, want Want, chosen choice, t task) (reconcile.Result, error) {
	namespace := resolve.NamespaceMetadata()
	err := r.cache.Get(ctx, types.NamespacedName{Name: t.Namespace}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, errors.Wrap(err, "cannot read the namespace")
	}
	if err != nil || namespace.DeletionTimestamp != nil {
		return r.note(parent, t, nil), nil // All in it goes with it.
	}
	was, _ := r.board.get(parent, t.Namespace)
	is := result{fight: was.fight}
	admitted := chosen.admits(namespace)
	var wait time.Duration
	if admitted {
		var o outcome
		o, err = r.provision(ctx, parent, want, t.Namespace, is.fight)
		switch {
		case o.gone:
			return r.note(parent, t, nil), nil
		case o.written && was.made:
			is.fight = is.fight.Revert(r.now())
		}
		is.made = was.made || o.written || o.refused == "" && err == nil
		is.refused, wait = o.refused, o.wait
	}
	if err == nil && is.refused == "" {
		err = r.withdraw(ctx, parent, want, chosen, t.Namespace, admitted)
	}
	switch {
	case kerrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: pace}, nil // Somebody was faster, or the cache is behind.
	case err != nil:
		is.refused = explain(err)
		r.note(parent, t, &is)
		if final(err) {
			return reconcile.Result{RequeueAfter: retry}, nil
		}
		return reconcile.Result{}, err
	case is.refused != "":
		r.note(parent, t, &is)
		if wait == 0 {
			wait = retry
		}
		return reconcile.Result{RequeueAfter: wait}, nil
	case !admitted:
		return r.note(parent, t, nil), nil
	}
	return r.note(parent, t, &is), nil
}

// note remembers what came of a namespace, and has the status follow.
func (r *reconciler) note(parent client.Object, t task, is *result) reconcile.Result {
	if r.board.set(parent, t.Namespace, is, r.now()) {
		r.add(taskOf(t.Name, ""), queue.High, pace)
	}
	return reconcile.Result{}
}

// final reports whether an error is the API server's last word, so that back-off would not help.
func final(err error) bool {
	return kerrors.IsForbidden(err) || kerrors.IsInvalid(err) || kerrors.IsBadRequest(err)
}

// maxReason is how long the reason of one namespace may be: there may be thousands.
const maxReason = 300

// explain returns what to say of an error.
func explain(err error) string {
	var refusal kerrors.APIStatus
	text := err.Error()
	if errors.As(err, &refusal) {
		text = fmt.Sprintf("%s: %s", refusal.Status().Reason, refusal.Status().Message)
	}
	return status.Cut(text, maxReason)
}
