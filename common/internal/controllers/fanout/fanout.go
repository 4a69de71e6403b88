// Package fanout is the loop of cluster objects that make the same object in many namespaces.
package fanout

import (
	"context"
	"maps"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// workers is how many namespaces are worked on at once.
const workers = 16

// ownerIndex is the cache index from a parent, by its uid, to its children.
const ownerIndex = "direct-secrets.io/fan-out"

// A Kind is a cluster Kind and the namespaced one that it makes.
type Kind struct {
	// Name of the controller.
	Name string
	// Parent, Parents, Child and Children return empty objects and lists.
	Parent   func() client.Object
	Parents  func() client.ObjectList
	Child    func() client.Object
	Children func() client.ObjectList
	// ParentKind and ChildKind are the names of the Kinds.
	ParentKind, ChildKind string
	// SpecField is the field of a parent's spec that holds the spec of each child.
	SpecField string
	// Spec returns a pointer to the spec of a child.
	Spec func(child client.Object) any
	// Want returns what a parent wants.
	Want func(parent client.Object) Want
}

// Want is what a parent wants of its children.
type Want struct {
	// Name of each child; empty for that of the parent.
	Name string
	// Metadata of each child.
	Metadata v1alpha1.TemplateMetadata
	// MetadataField is the field that it comes from.
	MetadataField string
	Where         v1alpha1.NamespaceChoice
	// Spec points to that of each child.
	Spec any
	// Raw is Spec as the API server has it, with the fields that this version does not know. It must not be changed.
	Raw map[string]any
	// Status of the parent.
	Status *v1alpha1.FanOutStatus
}

// Duties say whether this operator is the one that does what belongs to no provider.
type Duties interface {
	Held() bool
	// OnHeld has f called whenever the operator becomes the one.
	OnHeld(f func())
}

// A task is one namespace of the parent that Name names; without a namespace the parent as a whole, and without
// either all parents.
type task = reconcile.Request

func taskOf(parent, namespace string) task {
	return task{NamespacedName: types.NamespacedName{Namespace: namespace, Name: parent}}
}

type reconciler struct {
	// client is live, cache is not.
	client client.Client
	cache  client.Reader
	kind   Kind
	owner  metav1.OwnerReference
	duties Duties
	ledger *metrics.Ledger
	board  board
	raws   raws
	now    func() time.Time
	add    func(t task, priority int, after time.Duration)
}

// What only the fan-out asks for, also of children, is among the rights of who serves all namespaces: no other
// operator runs it.
// +kubebuilder:rbac:groups=direct-secrets.io,resources=clusterexternalsecrets;clusterpushsecrets,verbs=list;watch,roleName=cluster
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=cluster

// Setup adds the loop to a manager. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, duties Duties, k Kind) error {
	gvk, err := apiutil.GVKForObject(k.Parent(), mgr.GetScheme())
	if err != nil {
		return err
	}
	ledger, err := metrics.New(mgr, k.ParentKind, metrics.While(duties.Held), metrics.Following(k.Parent()))
	if err != nil {
		return errors.Wrap(err, "cannot add the ledger")
	}
	yes, no := true, false
	r := &reconciler{
		client: live, cache: mgr.GetCache(), kind: k, duties: duties, ledger: ledger, now: time.Now,
		owner: metav1.OwnerReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Controller: &yes, BlockOwnerDeletion: &no},
	}
	err = mgr.GetFieldIndexer().IndexField(context.Background(), k.Child(), ownerIndex, func(o client.Object) []string {
		if ref := r.parentOf(o); ref != nil {
			return []string{string(ref.UID)}
		}
		return nil
	})
	if err != nil {
		return errors.Wrapf(err, "cannot index objects of kind %s by owner", k.ChildKind)
	}
	var q *queue.Queue[task]
	c, err := controller.New(k.Name, mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: workers,
		RateLimiter:             ratelimiter.NewController(),
		NewQueue: func(name string, l workqueue.TypedRateLimiter[task]) workqueue.TypedRateLimitingInterface[task] {
			q = queue.New(name, l)
			return q
		},
	})
	if err != nil {
		return errors.Wrap(err, "cannot make the controller")
	}
	r.add = func(t task, priority int, after time.Duration) {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, t)
	}
	for _, s := range []source.Source{
		source.Kind(mgr.GetCache(), k.Parent(), r.parentEvents()),
		source.Kind(mgr.GetCache(), k.Child(), r.childEvents()),
		source.Kind(mgr.GetCache(), client.Object(resolve.NamespaceMetadata()), r.namespaceEvents()),
		source.Func(func(context.Context, tasks) error {
			all := func() { r.add(task{}, queue.High, 0) }
			duties.OnHeld(all) // Whoever held them meanwhile may have done anything.
			all()              // They may be held by now.
			return nil
		}),
	} {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	return nil
}

type (
	tasks  = workqueue.TypedRateLimitingInterface[task]
	events = handler.Funcs
)

func (r *reconciler) parentEvents() events {
	look := func(o client.Object, after time.Duration) { r.add(taskOf(o.GetName(), ""), queue.High, after) }
	return events{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ tasks) { look(e.Object, 0) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ tasks) {
			if r.moved(e.ObjectOld, e.ObjectNew) {
				look(e.ObjectNew, 0)
				return
			}
			look(e.ObjectNew, pace) // The status is to be the latest also where two wrote it.
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ tasks) { look(e.Object, 0) },
	}
}

// childEvents bring back the parent of a child that is not as it was, and those in whose way it is or was.
func (r *reconciler) childEvents() events {
	look := func(o client.Object) {
		if ref := r.parentOf(o); ref != nil {
			r.add(taskOf(ref.Name, o.GetNamespace()), queue.High, 0)
		}
	}
	waiting := func(o client.Object) {
		for _, parent := range r.board.refused(o.GetNamespace()) {
			r.add(taskOf(parent, o.GetNamespace()), queue.High, 0)
		}
	}
	return events{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ tasks) {
			if !e.IsInInitialList { // Parents look at all of these.
				look(e.Object)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ tasks) {
			was, is := r.parentOf(e.ObjectOld), r.parentOf(e.ObjectNew)
			if is != nil && was != nil && is.UID == was.UID && !r.moved(e.ObjectOld, e.ObjectNew) {
				return
			}
			look(e.ObjectOld)
			look(e.ObjectNew)
			if was != nil && is == nil || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				waiting(e.ObjectNew)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ tasks) {
			look(e.Object)
			waiting(e.Object)
		},
	}
}

// moved reports whether more than the status of an object has changed.
func (r *reconciler) moved(was, is client.Object) bool {
	return was.GetUID() != is.GetUID() || was.GetGeneration() != is.GetGeneration() || !maps.Equal(was.GetLabels(), is.GetLabels()) ||
		!maps.Equal(was.GetAnnotations(), is.GetAnnotations()) || was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero()
}

// namespaceEvents have every parent look at a namespace, before those that are merely looked at again.
func (r *reconciler) namespaceEvents() events {
	look := func(ctx context.Context, o client.Object) {
		for _, parent := range r.parents(ctx) {
			r.add(taskOf(parent, o.GetName()), queue.High, 0)
		}
	}
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ tasks) {
			if !e.IsInInitialList {
				look(ctx, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ tasks) {
			if r.moved(e.ObjectOld, e.ObjectNew) {
				look(ctx, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ tasks) { look(ctx, e.Object) },
	}
}

// parents returns the names of all parents.
func (r *reconciler) parents(ctx context.Context) []string {
	list := r.kind.Parents()
	if err := r.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // Only a cache that is shutting down fails.
	}
	var names []string
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		if p, ok := o.(client.Object); ok {
			names = append(names, p.GetName())
		}
		return nil
	})
	return names
}

// parentOf returns the reference of a child to its parent; nil if it has none of this Kind.
func (r *reconciler) parentOf(child client.Object) *metav1.OwnerReference {
	return parentOf(child, r.kind.ParentKind)
}

func parentOf(child client.Object, kind string) *metav1.OwnerReference {
	ref := metav1.GetControllerOfNoCopy(child)
	if ref == nil || ref.Kind != kind {
		return nil
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != v1alpha1.Group {
		return nil
	}
	return ref
}
