package fanout

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
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
//
// Modules may be of different versions. An older module must not drop fields that only a later version knows, so
// parents are read, and children written, with all their fields.
type reconciler struct {
	kinds

	// client does not read from a cache; cache does.
	client client.Client
	cache  client.Reader
	events events.EventRecorder
	duties Duties
	ledger *metrics.Ledger
	board  *board
	now    func() time.Time
	// add enqueues a request that no event has caused.
	add func(req request, priority int, after time.Duration)
}

// Reconcile handles one request.
func (r *reconciler) Reconcile(ctx context.Context, req request) (reconcile.Result, error) {
	if !r.duties.Held() {
		return reconcile.Result{}, nil
	}
	if req.parent == "" {
		r.board.clear()
		r.ledger.Clear()
		for _, name := range r.names(ctx) {
			r.add(request{parent: name}, queue.High, 0)
		}
		return reconcile.Result{}, nil
	}
	parent := r.newParent()
	err := r.cache.Get(ctx, types.NamespacedName{Name: req.parent}, parent)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, errors.Wrap(err, "cannot read the object")
	}
	if err != nil || parent.GetDeletionTimestamp() != nil {
		r.board.forget(req.parent) // The garbage collector deletes its children.
		r.ledger.Forget(types.NamespacedName{Name: req.parent})
		return reconcile.Result{}, nil
	}
	want, err := r.wanted(ctx, parent)
	if kerrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: statusDelay}, nil // The cache is behind.
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	var invalid string
	want.admits, invalid = r.check(want)
	switch {
	case req.namespace == "":
		return r.oversee(ctx, parent, want, invalid)
	case invalid != "":
		return reconcile.Result{}, nil // The wanted children are not known, so none is deleted.
	}
	return r.serve(ctx, parent, want, req.namespace)
}

// wanted returns the wanted children of a parent. Their spec is read live once for each generation. The error is a
// conflict if the cache is behind.
func (r *reconciler) wanted(ctx context.Context, parent client.Object) (want desired, err error) {
	want = r.wants(parent)
	want.name = cmp.Or(want.name, parent.GetName())
	if want.raw = r.board.spec(parent); want.raw == nil {
		want.raw, err = r.live(ctx, parent)
	}
	return want, err
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=clusterexternalsecrets;clusterpushsecrets,verbs=get,roleName=cluster

// live reads the spec of the children of a parent live. The error is a conflict if the parent has another uid or
// generation by now, or is being deleted.
func (r *reconciler) live(ctx context.Context, parent client.Object) (map[string]any, error) {
	is := unstructuredOf(r.parent)
	err := r.client.Get(ctx, client.ObjectKeyFromObject(parent), is)
	if client.IgnoreNotFound(err) != nil {
		return nil, errors.Wrap(err, "cannot read the object")
	}
	if err != nil || is.GetUID() != parent.GetUID() || is.GetGeneration() != parent.GetGeneration() || is.GetDeletionTimestamp() != nil {
		return nil, behind(v1alpha1.GroupVersion.WithResource(r.parent).GroupResource(), parent.GetName())
	}
	spec, _, err := unstructured.NestedMap(is.Object, "spec", r.specField)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read spec.%s", r.specField)
	}
	r.board.keepSpec(parent, spec)
	return spec, nil
}

// behind returns a conflict error, which means that the cached object is outdated.
func behind(resource schema.GroupResource, name string) error {
	return kerrors.NewConflict(resource, name, errors.New("the cache is behind"))
}

// names returns the names of all parents.
func (r *reconciler) names(ctx context.Context) []string {
	list := r.newParents()
	if err := r.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // The cache fails only while it shuts down.
	}
	var names []string
	for _, o := range kit.Items(list) {
		names = append(names, o.GetName())
	}
	return names
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=clusterexternalsecrets/status;clusterpushsecrets/status,verbs=patch,roleName=cluster

// oversee enqueues the namespaces of a parent that have no result yet, and writes its status.
func (r *reconciler) oversee(ctx context.Context, parent client.Object, want desired, invalid string) (reconcile.Result, error) {
	now := r.now()
	behind := r.board.behind(parent, now)
	next := want.status.DeepCopy()
	next.ObservedGeneration = parent.GetGeneration()
	pending := 0
	if invalid == "" {
		var err error
		if pending, err = r.survey(ctx, parent, want, next); err != nil {
			return reconcile.Result{}, err
		}
	}
	if pending > 0 && now.Sub(behind) < maxStatusDelay {
		return reconcile.Result{RequeueAfter: statusDelay}, nil
	}
	status.Conclude(&next.Conditions, parent.GetGeneration(), verdict(next, pending, invalid))
	r.board.shown(parent)
	state := metrics.Of(next.Conditions, parent.GetCreationTimestamp().Time)
	r.ledger.Set(client.ObjectKeyFromObject(parent), state)
	metrics.Synced(r.parent, state.Reason)
	k := status.Kind[client.Object, v1alpha1.FanOutStatus]{
		New: r.newParent, Status: func(o client.Object) *v1alpha1.FanOutStatus { return r.wants(o).status },
	}
	was := want.status.Conditions
	_, written, err := k.Patch(ctx, r.client, parent, parent.GetResourceVersion(), want.status, next)
	if written {
		status.RecordEvent(r.events, parent, "Provision", was, next.Conditions)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if pending > 0 {
		return reconcile.Result{RequeueAfter: maxStatusDelay}, nil
	}
	return reconcile.Result{}, nil
}

// survey adds the results of the namespaces of a parent to a status, and enqueues the namespaces that have none yet.
// It returns how many of these are selected. Then come the namespaces that have a child and are not selected.
func (r *reconciler) survey(ctx context.Context, parent client.Object, want desired, st *v1alpha1.FanOutStatus) (pending int, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(resolve.NamespaceMetadata().GroupVersionKind())
	if err := r.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return 0, errors.Wrap(err, "cannot list namespaces")
	}
	children, err := r.list(ctx, parent)
	if err != nil {
		return 0, err
	}
	selected, others := map[string]bool{}, map[string]bool{}
	for i := range list.Items {
		if want.admits(&list.Items[i]) {
			selected[list.Items[i].Name] = true
		}
	}
	for _, c := range children {
		if ns := c.GetNamespace(); !selected[ns] {
			others[ns] = true
		}
	}
	st.ProvisionedNamespaces, st.FailedNamespaces = nil, nil
	for _, ns := range slices.Concat(slices.Sorted(maps.Keys(selected)), slices.Sorted(maps.Keys(others))) {
		is, ok := r.board.get(parent, ns)
		switch {
		case !ok:
			r.add(request{parent.GetName(), ns}, queue.Low, 0)
			if selected[ns] {
				pending++
			}
		case is.refused != "":
			st.FailedNamespaces = append(st.FailedNamespaces, v1alpha1.NamespaceFailure{Namespace: ns, Message: is.refused})
		default:
			st.ProvisionedNamespaces = append(st.ProvisionedNamespaces, ns)
		}
	}
	return pending, nil
}

// serve brings one namespace of a parent in sync.
func (r *reconciler) serve(ctx context.Context, parent client.Object, want desired, name string) (reconcile.Result, error) {
	namespace := resolve.NamespaceMetadata()
	err := r.cache.Get(ctx, types.NamespacedName{Name: name}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, errors.Wrap(err, "cannot read the namespace")
	}
	if err != nil || namespace.DeletionTimestamp != nil {
		return r.note(parent, name, nil), nil // Its children are deleted with it.
	}
	was, _ := r.board.get(parent, name)
	is, admitted := result{revertBackoff: was.revertBackoff}, want.admits(namespace)
	wait := retry
	if admitted {
		var o outcome
		if o, err = r.provision(ctx, parent, want, name, was.revertBackoff); o.noNamespace {
			return r.note(parent, name, nil), nil
		}
		is = was.after(o, err == nil, r.now())
		if o.wait > 0 {
			wait = o.wait
		}
	}
	if err == nil && is.refused == "" {
		is.refused, err = r.withdraw(ctx, parent, want, name, admitted)
	}
	switch {
	case kerrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: statusDelay}, nil // Another writer was first, or the cache is behind.
	case err != nil:
		is.refused = explain(err)
		r.note(parent, name, &is)
		if final(err) {
			return reconcile.Result{RequeueAfter: retry}, nil
		}
		return reconcile.Result{}, err
	case is.refused != "":
		r.note(parent, name, &is)
		return reconcile.Result{RequeueAfter: wait}, nil
	case !admitted:
		return r.note(parent, name, nil), nil
	}
	return r.note(parent, name, &is), nil
}

// note records the result of a namespace, and updates the status if that changes it.
func (r *reconciler) note(parent client.Object, namespace string, is *result) reconcile.Result {
	if r.board.set(parent, namespace, is, r.now()) {
		r.add(request{parent: parent.GetName()}, queue.High, statusDelay)
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

// verdict returns the summary of all namespaces. Failed namespaces are retried; an invalid spec needs a change by the
// user.
func verdict(st *v1alpha1.FanOutStatus, pending int, invalid string) status.Verdict {
	made := len(st.ProvisionedNamespaces)
	switch {
	case invalid != "":
		return status.Stalled(v1alpha1.ReasonInvalidSpec, invalid)
	case len(st.FailedNamespaces) > 0:
		var names []string
		for _, f := range st.FailedNamespaces[:min(len(st.FailedNamespaces), 5)] {
			names = append(names, f.Namespace)
		}
		return status.Failed(v1alpha1.ReasonPartlyProvisioned,
			fmt.Sprintf("created in %d namespaces, failed in %d: %s; see status.failedNamespaces", made, len(st.FailedNamespaces), strings.Join(names, ", ")))
	case pending > 0:
		return status.Failed(v1alpha1.ReasonPartlyProvisioned, fmt.Sprintf("created in %d namespaces, %d more to come", made, pending))
	case made == 0:
		return status.Good(v1alpha1.ReasonNoNamespacesMatched, "no namespace matches spec.namespaceSelectors or spec.namespaces")
	}
	return status.Good(v1alpha1.ReasonProvisioned, fmt.Sprintf("created in %d namespaces", made))
}
