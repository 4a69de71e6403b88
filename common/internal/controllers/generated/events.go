package generated

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

type (
	requests    = workqueue.TypedRateLimitingInterface[request]
	eventFuncs  = handler.TypedFuncs[client.Object, request]
	createEvent = event.TypedCreateEvent[client.Object]
	updateEvent = event.TypedUpdateEvent[client.Object]
	deleteEvent = event.TypedDeleteEvent[client.Object]
)

// follow takes requests that come of no watch: of objects whose turn at a generator has come, and of all known
// objects when another operator starts or stops.
func (r *Reconciler) follow(_ context.Context, q requests) error {
	r.wake = func(req request) { queue.AddTo(q, queue.High, 0, req) }
	r.opts.Board.OnChange(func() {
		r.mu.Lock()
		known := slices.Collect(maps.Keys(r.objects))
		r.mu.Unlock()
		queue.AddTo(q, queue.Low, 0, known...)
	})
	return nil
}

// objectEvents follows the objects that use a generator of this module, or did.
func (r *Reconciler) objectEvents() eventFuncs {
	enqueue := func(q requests, o client.Object) {
		if u := r.userOf(o); r.concerns(u) {
			queue.AddTo(q, queue.High, 0, u.request())
		}
	}
	return eventFuncs{
		CreateFunc: func(_ context.Context, e createEvent, q requests) { enqueue(q, e.Object) },
		UpdateFunc: func(_ context.Context, e updateEvent, q requests) {
			was, is := r.userOf(e.ObjectOld), r.userOf(e.ObjectNew)
			if !r.concerns(was) && !r.concerns(is) {
				return
			}
			if was.GetUID() != is.GetUID() || was.GetDeletionTimestamp() == nil && is.GetDeletionTimestamp() != nil ||
				!reflect.DeepEqual(was.facts, is.facts) {
				queue.AddTo(q, queue.High, 0, is.request())
			}
		},
		DeleteFunc: func(_ context.Context, e deleteEvent, q requests) { enqueue(q, e.Object) },
	}
}

// secretEvents follows parts, and the Secrets that were made from them: these own their part, and hold it.
func (r *Reconciler) secretEvents() eventFuncs {
	onPart := func(q requests, o client.Object) {
		rec, ok := handoff.Of(o.GetAnnotations())
		req := request{rec.Kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: rec.Name}}
		switch {
		case ok && (rec.Kind == externalSecretKind || rec.Kind == pushSecretKind) && o.GetName() == r.nameOf(req):
			queue.AddTo(q, queue.High, 0, req)
		case o.GetDeletionTimestamp() != nil && r.bears(o):
			queue.AddTo(q, queue.High, 0, request{secretKind, client.ObjectKeyFromObject(o)})
		}
	}
	onTarget := func(ctx context.Context, q requests, o client.Object) {
		for name := range target.Marks(o.GetAnnotations()) {
			req := request{externalSecretKind, types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}
			m := resolve.SecretMetadata()
			if r.cache.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: r.nameOf(req)}, m) == nil {
				queue.AddTo(q, queue.High, 0, req)
			}
		}
	}
	return eventFuncs{
		CreateFunc: func(ctx context.Context, e createEvent, q requests) { onPart(q, e.Object); onTarget(ctx, q, e.Object) },
		UpdateFunc: func(_ context.Context, e updateEvent, q requests) { onPart(q, e.ObjectOld); onPart(q, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e deleteEvent, q requests) { onPart(q, e.Object); onTarget(ctx, q, e.Object) },
	}
}

// generatorEvents brings objects back when a generator of theirs comes, goes, changes, or becomes ready.
func (r *Reconciler) generatorEvents(k resolve.Route) eventFuncs {
	return eventFuncs{
		CreateFunc: func(ctx context.Context, e createEvent, q requests) {
			if !e.IsInInitialList {
				r.release(ctx, q, e.Object.GetNamespace(), k, e.Object.GetName())
			}
		},
		UpdateFunc: func(ctx context.Context, e updateEvent, q requests) {
			was, ok := e.ObjectOld.(provider.Object)
			is, ok2 := e.ObjectNew.(provider.Object)
			if !ok || !ok2 {
				return
			}
			if was.GetGeneration() != is.GetGeneration() || was.GetUID() != is.GetUID() || resolve.Held(was) != nil && resolve.Held(is) == nil {
				r.release(ctx, q, is.GetNamespace(), k, is.GetName())
			}
		},
		DeleteFunc: func(ctx context.Context, e deleteEvent, q requests) {
			r.rules.Forget(e.Object.GetUID())
			r.release(ctx, q, e.Object.GetNamespace(), k, e.Object.GetName())
		},
	}
}

// namespaceEvents has the objects of a namespace look again at whether their generators admit it.
func (r *Reconciler) namespaceEvents() eventFuncs {
	return eventFuncs{UpdateFunc: func(ctx context.Context, e updateEvent, q requests) {
		if equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
			return
		}
		for _, k := range r.routes.Kinds {
			if k.Cluster {
				r.release(ctx, q, e.ObjectNew.GetName(), k, "")
			}
		}
	}}
}

// release brings the objects of a namespace, or of all, back that use a generator; one of any name if that
// is empty.
func (r *Reconciler) release(ctx context.Context, q requests, namespace string, k resolve.Route, name string) {
	n := 0
	for _, list := range []client.ObjectList{&v1alpha1.ExternalSecretList{}, &v1alpha1.PushSecretList{}} {
		if err := r.cache.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return // Only a cache that is shutting down fails.
		}
		for _, o := range items(list) {
			u := r.userOf(o)
			if !u.uses(r.routes, k, name) {
				continue
			}
			if obj := r.peek(u.request()); obj != nil {
				obj.noWait()
			}
			queue.AddTo(q, queue.High, time.Duration(n)*releaseEvery, u.request())
			n++
		}
	}
}

func items(list client.ObjectList) []client.Object {
	var out []client.Object
	switch l := list.(type) {
	case *v1alpha1.ExternalSecretList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	case *v1alpha1.PushSecretList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	}
	return out
}
