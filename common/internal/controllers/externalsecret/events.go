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
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// handlers say which objects an event brings back.
type handlers struct {
	referrers *referrers.Referrers
	objects   *objects
	// elected is closed once this replica leads.
	elected <-chan struct{}
	now     func() time.Time
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
// Labels of namespaces say which of them a cluster store admits.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=cluster

func (h *handlers) watch(c controller.Controller, from cache.Cache, o Options) error {
	secrets := resolve.SecretMetadata()
	waker := &referrers.Waker{
		Referrers: h.referrers,
		Concerned: h.referrers.Claims,
		Waits:     h.waits,
		Free:      h.mended,
	}
	for _, s := range append([]source.Source{
		source.Kind[client.Object](from, &v1alpha1.ExternalSecret{}, h.objectEvents()),
		source.Kind[client.Object](from, secrets, h.secretEvents()),
	}, waker.Sources(from, o.Bus, o.Namespaced)...) {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	// The index has the cache of ExternalSecrets fill before this replica leads. That of Secrets, the
	// other large one, shall fill meanwhile and not after.
	_, err := from.GetInformer(context.Background(), secrets, cache.BlockUntilSynced(false))
	return errors.Wrap(err, "cannot watch Secrets")
}

// waits reports whether a change of a store may help an object: it is not in step, or by its deletionPolicy it is in step
// without what was gone, which an earlier process may know. What this operator has not looked at came from one of another
// class.
func (h *handlers) waits(_ context.Context, es *v1alpha1.ExternalSecret) bool {
	obj := h.objects.Peek(client.ObjectKeyFromObject(es))
	if obj == nil || obj.gone.lacks.Load() || !meta.IsStatusConditionTrue(es.Status.Conditions, v1alpha1.ConditionReady) {
		return true
	}
	return !obj.attempts.Begun() && policy.OnGone(es.Spec.Target.DeletionPolicy, true, 0) != policy.KeepAll
}

// free lets the next try of an object go at once.
func (h *handlers) free(key types.NamespacedName) {
	if obj := h.objects.Peek(key); obj != nil {
		obj.attempts.Hold(time.Time{})
	}
}

// mended has an object read again for which a store has changed.
func (h *handlers) mended(key types.NamespacedName) {
	h.free(key)
	if obj := h.objects.Peek(key); obj != nil {
		obj.gone.mended.Store(true)
	}
}

// leads reports whether this replica is the one that works.
func (h *handlers) leads() bool {
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

// objectEvents ranks: what was never synced or has changed goes first, and so does not wait behind
// what a restart lists.
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
			enqueue(q, queue.High, client.ObjectKeyFromObject(e.Object))
			enqueue(q, queue.High, h.objects.awaiting(e.Object.GetNamespace())...)
		},
	}
}

// updated brings an object back that has changed, unless only its status moved.
func (h *handlers) updated(was, es *v1alpha1.ExternalSecret, q requests) {
	key := client.ObjectKeyFromObject(es)
	if obj := h.objects.Peek(key); obj != nil {
		obj.status.Saw(es)
	}
	if !h.leads() && es.Status.ObservedGeneration == es.Generation {
		h.objects.unchanged(key) // The replica that does has seen to it.
	}
	if was.Generation != es.Generation || was.UID != es.UID {
		// Those look again that wait for a Secret or a key of it: what this one leaves alone from now on is free, and no
		// event of the Secret tells.
		enqueue(q, queue.High, h.objects.awaiting(es.Namespace)...)
	}
	claims := h.referrers.Claims(es)
	switch {
	case !claims && !h.referrers.Claims(was):
	case claims && !slices.Equal(was.Status.Parts, es.Status.Parts):
		h.free(key)
		enqueue(q, queue.High, key)
	case !claims, referrers.Changed(was, es):
		if claims {
			h.objects.changed(key, es.Generation, h.now())
		}
		enqueue(q, queue.High, key)
	}
}

// secretEvents brings an object back when its target or a part of it has changed, but not for the echo of its own
// write.
func (h *handlers) secretEvents() handler.EventHandler {
	// was is the version before, which may have had a mark that is no more.
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
