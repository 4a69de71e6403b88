package externalsecret

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// handlers map events to the objects that they enqueue.
type handlers struct {
	referrers *referrers.Referrers
	objects   *objects
	// elected is closed once this replica is the leader.
	elected <-chan struct{}
	now     func() time.Time
	// interrupt ends the wait for a store in the walk over an object.
	interrupt func(reconcile.Request)
	// notified is kit.Controller.Notify, and enqueue is kit.Controller.EnqueueAfter.
	notified func(req reconcile.Request, source any, after time.Duration)
	enqueue  func(req reconcile.Request, priority int, after time.Duration)
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
// A cluster store admits namespaces by their labels.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=cluster

func (h *handlers) watch(c controller.Controller, from cache.Cache, o Options) error {
	secrets := resolve.SecretMetadata()
	wake := &kit.Wake[reconcile.Request]{Resolver: h.referrers.Resolver, Namespaced: o.Namespaced, Referrers: h.referring, Free: h.requestRead, Notify: h.notify, Enqueue: h.enqueue}
	for _, s := range append([]source.Source{
		source.Kind[client.Object](from, &v1alpha1.ExternalSecret{}, h.objectEvents()),
		source.Kind[client.Object](from, secrets, h.secretEvents()),
	}, wake.Sources(from, o.Bus)...) {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	// The manager fills the cache of ExternalSecrets, which has an index, before this replica becomes the leader. The
	// cache of Secrets is large, too: fill it at the same time and not afterwards.
	_, err := from.GetInformer(context.Background(), secrets, cache.BlockUntilSynced(false))
	return errors.Wrap(err, "cannot watch Secrets")
}

// referring returns the objects of this module that refer to a store.
func (h *handlers) referring(ctx context.Context, k resolve.Route, store types.NamespacedName, namespace string) []kit.Referrer[reconcile.Request] {
	var all []kit.Referrer[reconcile.Request]
	for _, es := range h.referrers.To(ctx, k, store, namespace) {
		if h.referrers.Claims(es) {
			req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(es)}
			all = append(all, kit.Referrer[reconcile.Request]{Object: req, New: es.Status.RefreshTime == nil, Waits: h.waits(es)})
		}
	}
	return all
}

// waits reports whether a change of a store may help an object. That is so if the object is not in sync, or if its
// deletionPolicy lets it be in sync while secrets are missing. An earlier process may have seen them missing, so an
// object without an attempt in this process counts by its policy. An object that this process has never reconciled
// comes from an operator of another class, so it counts, too.
func (h *handlers) waits(es *v1alpha1.ExternalSecret) bool {
	obj := h.objects.Peek(client.ObjectKeyFromObject(es))
	if obj == nil || obj.signals.lacks.Load() || !meta.IsStatusConditionTrue(es.Status.Conditions, v1alpha1.ConditionReady) {
		return true
	}
	return !obj.attempts.Begun() && policy.OnNotFound(es.Spec.Target.DeletionPolicy, true, 0) != policy.KeepAll
}

// requestRead requests a read, without back-off, for an object whose store has changed.
func (h *handlers) requestRead(req reconcile.Request) {
	if obj := h.objects.Peek(req.NamespacedName); obj != nil {
		obj.attempts.Free()
		obj.signals.readAgain.Store(true)
	}
}

// notify notifies the objects of this module that read remote secrets that have changed.
func (h *handlers) notify(ctx context.Context, k resolve.Route, c *refresh.Change) {
	for _, es := range h.referrers.Reading(ctx, k, c) {
		if !h.referrers.Claims(es) {
			continue
		}
		req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(es)}
		obj, _ := h.objects.Get(req.NamespacedName, es.UID)
		h.notified(req, c.Source, obj.attempts.Notify(c.At, c.By))
	}
}

// isLeader reports whether this replica is the leader.
func (h *handlers) isLeader() bool {
	select {
	case <-h.elected:
		return true
	default:
		return false
	}
}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

func enqueue(q requests, priority int, keys ...types.NamespacedName) {
	for _, key := range keys {
		queue.AddTo(q, priority, 0, reconcile.Request{NamespacedName: key})
	}
}

// objectEvents gives objects that were never synced or have changed a high priority, so that they do not wait for the
// objects that a restart lists.
func (h *handlers) objectEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q requests) {
			es, ok := e.Object.(*v1alpha1.ExternalSecret)
			if !ok || !h.referrers.Claims(es) {
				return
			}
			priority := referrers.Priority(es)
			if priority == queue.High {
				h.objects.changed(client.ObjectKeyFromObject(es), es.Generation, h.now())
			}
			enqueue(q, priority, client.ObjectKeyFromObject(es))
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q requests) {
			was, ok := e.ObjectOld.(*v1alpha1.ExternalSecret)
			is, ok2 := e.ObjectNew.(*v1alpha1.ExternalSecret)
			if ok && ok2 {
				h.updated(was, is, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q requests) {
			h.objects.unchanged(client.ObjectKeyFromObject(e.Object))
			h.interrupt(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
			enqueue(q, queue.High, client.ObjectKeyFromObject(e.Object))
			enqueue(q, queue.High, h.objects.waiting(e.Object.GetNamespace())...)
		},
	}
}

// updated enqueues an object that has changed, unless only its status has.
func (h *handlers) updated(was, es *v1alpha1.ExternalSecret, q requests) {
	key := client.ObjectKeyFromObject(es)
	obj := h.objects.Peek(key)
	if obj != nil {
		obj.status.Saw(es)
	}
	if !h.isLeader() && es.Status.ObservedGeneration == es.Generation {
		h.objects.unchanged(key) // The leader has handled the change.
	}
	if was.Generation != es.Generation || was.UID != es.UID {
		// The old target or its keys may now be free for objects that wait for them. No event of the Secret shows
		// that.
		enqueue(q, queue.High, h.objects.waiting(es.Namespace)...)
	}
	claims := h.referrers.Claims(es)
	switch {
	case !claims && !h.referrers.Claims(was):
	case claims && !slices.Equal(was.Status.Parts, es.Status.Parts):
		if obj != nil {
			obj.attempts.Free()
		}
		enqueue(q, queue.High, key)
	case !claims, referrers.Changed(was, es):
		h.interrupt(reconcile.Request{NamespacedName: key})
		if claims {
			h.objects.changed(key, es.Generation, h.now())
		}
		enqueue(q, queue.High, key)
	}
}

// secretEvents enqueues an object when its target or one of its parts has changed, except by its own last write.
func (h *handlers) secretEvents() handler.EventHandler {
	// was is the version before the event; it may have had a mark that is now missing.
	on := func(was, is client.Object, deleted bool, q requests) {
		if key, ok := handoff.Owner("ExternalSecret", is, was); ok && h.objects.Peek(key) != nil {
			enqueue(q, queue.High, key)
		}
		names := map[string]bool{}
		for _, s := range []client.Object{was, is} {
			for name := range target.Marks(s.GetAnnotations()) {
				names[name] = true
			}
		}
		for name := range names {
			key := types.NamespacedName{Namespace: is.GetNamespace(), Name: name}
			obj := h.objects.Peek(key)
			if obj == nil {
				continue
			}
			saw := obj.secret.Saw
			if deleted {
				saw = obj.secret.Deleted
			}
			if echo := saw(is); !echo {
				enqueue(q, queue.High, key)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q requests) { on(e.Object, e.Object, false, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q requests) { on(e.ObjectOld, e.ObjectNew, false, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q requests) { on(e.Object, e.Object, true, q) },
	}
}
