// Package fanout is the loop of cluster objects that make the same object in many namespaces.
package fanout

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/controller/routing"
)

// A Kind is a cluster Kind and the namespaced one that it makes.
type Kind struct {
	// Name of the controller.
	Name string
	// Parent, Parents and Child return empty objects.
	Parent  func() client.Object
	Parents func() client.ObjectList
	Child   func() client.Object
	// ChildKind is the name of the Kind that is made.
	ChildKind string
	// Want returns what a parent wants.
	Want func(parent client.Object) Want
}

// Want is what a parent wants of its children.
type Want struct {
	// Name of each child; empty for that of the parent.
	Name string
	// Metadata of each child.
	Metadata v1alpha1.TemplateMetadata
	Where    v1alpha1.NamespaceChoice
	// Shape gives a child its spec.
	Shape func(child client.Object)
	// Status of the parent.
	Status *v1alpha1.FanOutStatus
}

type reconciler struct {
	// client is live, cache is not.
	client client.Client
	cache  client.Reader
	kind   Kind
	owner  metav1.OwnerReference
}

// Setup adds the loop to a manager. live must not read from a cache. The loop is the same in every module
// and does nothing twice, so that it matters to nobody how many of them run it.
func Setup(mgr manager.Manager, live client.Client, k Kind) error {
	gvk, err := apiutil.GVKForObject(k.Parent(), mgr.GetScheme())
	if err != nil {
		return err
	}
	yes, no := true, false
	r := &reconciler{client: live, cache: mgr.GetCache(), kind: k, owner: metav1.OwnerReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Controller: &yes, BlockOwnerDeletion: &no,
	}}
	c, err := controller.New(k.Name, mgr, controller.Options{Reconciler: r, RateLimiter: ratelimiter.NewController()})
	if err != nil {
		return errors.Wrap(err, "cannot make the controller")
	}
	changed := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	relabelled := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
	}}
	for _, s := range []source.Source{
		source.Kind(mgr.GetCache(), k.Parent(), &handler.EnqueueRequestForObject{}, predicate.GenerationChangedPredicate{}),
		source.Kind(mgr.GetCache(), k.Child(), handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), k.Parent()), changed),
		source.Kind[client.Object](mgr.GetCache(), routing.NamespaceMetadata(), handler.EnqueueRequestsFromMapFunc(r.everyParent), relabelled),
	} {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	return nil
}

// everyParent has every parent look at the namespaces again.
func (r *reconciler) everyParent(ctx context.Context, _ client.Object) []reconcile.Request {
	list := r.kind.Parents()
	if err := r.cache.List(ctx, list); err != nil {
		return nil // Only a cache that is shutting down fails.
	}
	var out []reconcile.Request
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		if p, ok := o.(client.Object); ok {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
		return nil
	})
	return out
}

// Reconcile brings the children of one parent in step.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	parent := r.kind.Parent()
	if err := r.cache.Get(ctx, req.NamespacedName, parent); err != nil {
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot read the object")
	}
	if parent.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil // The collector removes what it owns.
	}
	want := r.kind.Want(parent)
	if want.Name == "" {
		want.Name = parent.GetName()
	}
	next := want.Status.DeepCopy()
	next.ObservedGeneration, next.ProvisionedNamespaces, next.FailedNamespaces = parent.GetGeneration(), nil, nil
	namespaces, invalid, err := r.namespaces(ctx, want)
	if err != nil {
		return reconcile.Result{}, err
	}
	var failed error
	if invalid == "" {
		for _, ns := range namespaces {
			switch refused, err := r.provision(ctx, parent, want, ns); {
			case refused == "" && err == nil:
				next.ProvisionedNamespaces = append(next.ProvisionedNamespaces, ns)
			case err != nil:
				failed = errors.Join(failed, err)
				refused = string(kerrors.ReasonForError(err))
				fallthrough
			default:
				next.FailedNamespaces = append(next.FailedNamespaces, v1alpha1.NamespaceFailure{Namespace: ns, Reason: refused})
			}
		}
		failed = errors.Join(failed, r.withdraw(ctx, parent, want, namespaces))
	}
	r.conclude(next, parent.GetGeneration(), invalid)
	var res reconcile.Result
	if len(next.FailedNamespaces) > 0 {
		res.RequeueAfter = time.Minute // That what is in the way is gone comes as no event.
	}
	return res, errors.Join(failed, r.patch(ctx, parent, want.Status, next))
}

// namespaces returns those that a parent chooses, in order, or what is wrong with its choice.
func (r *reconciler) namespaces(ctx context.Context, want Want) (names []string, invalid string, err error) {
	if msgs := validation.IsDNS1123Subdomain(want.Name); len(msgs) > 0 {
		return nil, fmt.Sprintf("%q cannot be the name of a %s: %s", want.Name, r.kind.ChildKind, msgs[0]), nil
	}
	var selectors []labels.Selector
	for i := range want.Where.NamespaceSelectors {
		s, err := metav1.LabelSelectorAsSelector(&want.Where.NamespaceSelectors[i])
		if err != nil {
			return nil, fmt.Sprintf("spec.namespaceSelectors[%d]: it is no label selector; correct its keys, operators and values", i), nil
		}
		selectors = append(selectors, s)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(routing.NamespaceMetadata().GroupVersionKind())
	if err := r.cache.List(ctx, list); err != nil {
		return nil, "", errors.Wrap(err, "cannot list namespaces")
	}
	for _, ns := range list.Items {
		matches := slices.Contains(want.Where.Namespaces, ns.Name) ||
			slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(ns.Labels)) })
		if matches && ns.DeletionTimestamp == nil {
			names = append(names, ns.Name)
		}
	}
	slices.Sort(names)
	return names, "", nil
}

// provision brings one child in step. It says why not, where another made an object of that name.
func (r *reconciler) provision(ctx context.Context, parent client.Object, want Want, namespace string) (refused string, err error) {
	key := types.NamespacedName{Namespace: namespace, Name: want.Name}
	child := r.kind.Child()
	err = r.cache.Get(ctx, key, child)
	if err == nil && r.owns(parent, child) && !r.differs(child, want) {
		return "", nil
	}
	child = r.kind.Child()
	err = r.client.Get(ctx, key, child)
	switch {
	case kerrors.IsNotFound(err):
		child = r.kind.Child()
		child.SetNamespace(namespace)
		child.SetName(want.Name)
		ref := r.owner
		ref.Name, ref.UID = parent.GetName(), parent.GetUID()
		child.SetOwnerReferences([]metav1.OwnerReference{ref})
		r.shape(child, want)
		err = r.client.Create(ctx, child)
		switch {
		case kerrors.HasStatusCause(err, "NamespaceTerminating"):
			return "the namespace terminates", nil
		case kerrors.IsAlreadyExists(err):
			return r.provision(ctx, parent, want, namespace) // Another module was faster.
		}
		return "", errors.Wrapf(err, "cannot make %s %s", r.kind.ChildKind, key)
	case err != nil:
		return "", errors.Wrapf(err, "cannot read %s %s", r.kind.ChildKind, key)
	case !r.owns(parent, child):
		return fmt.Sprintf("%s %q exists, and this object did not make it; delete it or choose another name", r.kind.ChildKind, want.Name), nil
	case child.GetDeletionTimestamp() != nil:
		return fmt.Sprintf("%s %q is being deleted", r.kind.ChildKind, want.Name), nil
	case !r.differs(child, want):
		return "", nil
	}
	r.shape(child, want)
	return "", errors.Wrapf(r.client.Update(ctx, child), "cannot update %s %s", r.kind.ChildKind, key)
}

func (r *reconciler) owns(parent, child client.Object) bool {
	o := metav1.GetControllerOf(child)
	return o != nil && o.UID == parent.GetUID()
}

// shape gives a child the spec, labels and annotations that are wanted. Other labels and annotations stay.
func (r *reconciler) shape(child client.Object, want Want) {
	want.Shape(child)
	child.SetLabels(with(child.GetLabels(), want.Metadata.Labels))
	child.SetAnnotations(with(child.GetAnnotations(), want.Metadata.Annotations))
}

func with(has, wanted map[string]string) map[string]string {
	if len(wanted) == 0 {
		return has
	}
	out := maps.Clone(has)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, wanted)
	return out
}

func (r *reconciler) differs(child client.Object, want Want) bool {
	shaped, ok := child.DeepCopyObject().(client.Object)
	if !ok {
		return true
	}
	r.shape(shaped, want)
	return !equality.Semantic.DeepEqual(shaped, child)
}

// withdraw removes the children that are not wanted any more. What this object did not make is left.
func (r *reconciler) withdraw(ctx context.Context, parent client.Object, want Want, namespaces []string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(r.kind.ChildKind + "List"))
	if err := r.client.List(ctx, list); err != nil {
		return errors.Wrapf(err, "cannot list objects of kind %s", r.kind.ChildKind)
	}
	var errs []error
	for i := range list.Items {
		child := &list.Items[i]
		if !r.owns(parent, child) || child.DeletionTimestamp != nil || child.Name == want.Name && slices.Contains(namespaces, child.Namespace) {
			continue
		}
		o := r.kind.Child()
		o.SetNamespace(child.Namespace)
		o.SetName(child.Name)
		err := r.client.Delete(ctx, o, client.Preconditions{UID: &child.UID})
		errs = append(errs, errors.Wrapf(client.IgnoreNotFound(err), "cannot delete %s %s/%s", r.kind.ChildKind, child.Namespace, child.Name))
	}
	return errors.Join(errs...)
}

func (r *reconciler) conclude(st *v1alpha1.FanOutStatus, generation int64, invalid string) {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, ObservedGeneration: generation}
	switch n := len(st.ProvisionedNamespaces); {
	case invalid != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, invalid
	case len(st.FailedNamespaces) > 0:
		var names []string
		for _, f := range st.FailedNamespaces[:min(len(st.FailedNamespaces), 5)] {
			names = append(names, f.Namespace)
		}
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonPartlyProvisioned
		c.Message = fmt.Sprintf("made in %d namespaces, not in %d: %s; see status.failedNamespaces", n, len(st.FailedNamespaces), strings.Join(names, ", "))
	case n == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonNoNamespacesMatched, "no namespace matches namespaceSelectors or namespaces"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonProvisioned, fmt.Sprintf("made in %d namespaces", n)
	}
	meta.SetStatusCondition(&st.Conditions, c)
}

func (r *reconciler) patch(ctx context.Context, parent client.Object, before, next *v1alpha1.FanOutStatus) error {
	if equality.Semantic.DeepEqual(before, next) {
		return nil
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": parent.GetUID()},
		"status": map[string]any{
			"observedGeneration": next.ObservedGeneration, "provisionedNamespaces": next.ProvisionedNamespaces,
			"failedNamespaces": next.FailedNamespaces, "conditions": next.Conditions,
		},
	})
	if err != nil {
		return errors.Wrap(err, "cannot encode the status")
	}
	o := r.kind.Parent()
	o.SetName(parent.GetName())
	err = r.client.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, body))
	return errors.Wrap(client.IgnoreNotFound(err), "cannot write the status")
}
