package pushsecret

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
)

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

func requestFor(key types.NamespacedName) reconcile.Request {
	return reconcile.Request{NamespacedName: key}
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=pushsecrets,verbs=list;watch
// Namespace labels decide which namespaces a cluster store admits.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=cluster

// watch starts the watches of a controller, which turn events into requests.
func (r *reconciler) watch(c controller.Controller, informers cache.Cache, o setup.Options, enqueue func(req reconcile.Request, priority int, after time.Duration)) error {
	wake := &kit.Wake[reconcile.Request]{Resolver: r.routes, Namespaced: o.Namespaced, Referrers: r.referring, Free: r.free, Notify: r.notify, Enqueue: enqueue}
	objects := source.Kind[client.Object](informers, &v1alpha1.PushSecret{}, r.objectEvents())
	for _, s := range append(wake.Sources(informers, o.Bus), objects) {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	return nil
}

func (r *reconciler) objectEvents() handler.Funcs {
	add := func(q requests, priority int, o client.Object) {
		queue.AddTo(q, priority, 0, requestFor(client.ObjectKeyFromObject(o)))
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q requests) {
			ps, ok := e.Object.(*v1alpha1.PushSecret)
			if !ok || !r.concerns(ps) {
				return
			}
			r.note(ps)
			priority := queue.High
			if len(ps.Status.Stores) > 0 && ps.Status.ObservedGeneration == ps.Generation {
				priority = queue.Low
			}
			add(q, priority, ps)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q requests) {
			was, ok := e.ObjectOld.(*v1alpha1.PushSecret)
			is, ok2 := e.ObjectNew.(*v1alpha1.PushSecret)
			if !ok || !ok2 || !r.concerns(is) && !r.concerns(was) {
				return
			}
			r.note(is)
			if obj := r.memory.Peek(client.ObjectKeyFromObject(is)); obj != nil && !slices.Equal(was.Status.Parts, is.Status.Parts) {
				obj.sources.stale()
				obj.stores.noWait()
				add(q, queue.High, is)
			} else if r.moved(was, is) {
				add(q, queue.High, is)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q requests) {
			if obj := r.memory.Peek(client.ObjectKeyFromObject(e.Object)); obj != nil && obj.uid == e.Object.GetUID() {
				obj.show(nil)
			}
			add(q, queue.High, e.Object)
		},
	}
}

// note remembers an object as the watch reports it, for removals, which ask who uses a secret.
func (r *reconciler) note(ps *v1alpha1.PushSecret) {
	obj, _ := r.memory.Get(client.ObjectKeyFromObject(ps), ps.UID)
	obj.show(ps)
}

// moved reports whether an object has changed, apart from the fields that this module writes.
func (r *reconciler) moved(was, is *v1alpha1.PushSecret) bool {
	return was.Generation != is.Generation || was.UID != is.UID || !was.DeletionTimestamp.Equal(is.DeletionTimestamp) ||
		was.Annotations[v1alpha1.RefreshRequestAnnotation] != is.Annotations[v1alpha1.RefreshRequestAnnotation] ||
		!equality.Semantic.DeepEqual(r.foreign(was), r.foreign(is))
}

// referring returns the objects that may use a store.
func (r *reconciler) referring(ctx context.Context, k resolve.Route, store types.NamespacedName, namespace string) []kit.Referrer[reconcile.Request] {
	var list v1alpha1.PushSecretList
	if err := r.cache.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil // A cache fails only when it shuts down.
	}
	var all []kit.Referrer[reconcile.Request]
	for i := range list.Items {
		ps := &list.Items[i]
		uses := slices.ContainsFunc(ps.Spec.StoreRefs, func(ref v1alpha1.PushStoreRef) bool {
			route, ok := r.route(ref)
			return ok && route.GVK == k.GVK && (ref.LabelSelector != nil || store.Name == "" || ref.Name == store.Name)
		})
		if uses {
			all = append(all, kit.Referrer[reconcile.Request]{Object: requestFor(client.ObjectKeyFromObject(ps)), New: len(ps.Status.Stores) == 0, Waits: true})
		}
	}
	return all
}

// free ends the back-off of an object at its stores.
func (r *reconciler) free(req reconcile.Request) {
	if obj := r.memory.Peek(req.NamespacedName); obj != nil {
		obj.stores.noWait()
	}
}
