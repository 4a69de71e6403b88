package generated

import (
	"context"
	"reflect"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

type (
	requests    = workqueue.TypedRateLimitingInterface[request]
	eventFuncs  = handler.TypedFuncs[client.Object, request]
	createEvent = event.TypedCreateEvent[client.Object]
	updateEvent = event.TypedUpdateEvent[client.Object]
	deleteEvent = event.TypedDeleteEvent[client.Object]
)

// watches turns events into requests.
type watches struct {
	generators *generators
	parts      *parts
	memory     *memory
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
// Namespace labels decide which namespaces a cluster generator admits.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=cluster

// start starts the watches of a controller.
func (w *watches) start(c controller.TypedController[request], from cache.Cache) error {
	kind := func(o client.Object, h handler.TypedEventHandler[client.Object, request]) source.TypedSource[request] {
		return source.TypedKind(from, o, h)
	}
	wake := &kit.Wake[request]{Resolver: w.generators.resolver, Namespaced: w.generators.opts.Namespaced, Referrers: w.referring, Free: w.free}
	sources := append(wake.Sources(from, w.generators.opts.Bus),
		kind(&v1alpha1.ExternalSecret{}, w.objectEvents()),
		kind(&v1alpha1.PushSecret{}, w.objectEvents()),
		kind(resolve.SecretMetadata(), w.secretEvents()),
	)
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	return nil
}

func (w *watches) user(o client.Object) user { return userOf(o, w.generators.resolver.Routes) }

// objectEvents enqueues the objects that use a generator of this module, or did.
func (w *watches) objectEvents() eventFuncs {
	enqueue := func(q requests, o client.Object) {
		if u := w.user(o); u.concerns(w.parts.contributor) {
			queue.AddTo(q, queue.High, 0, u.request())
		}
	}
	return eventFuncs{
		CreateFunc: func(_ context.Context, e createEvent, q requests) { enqueue(q, e.Object) },
		UpdateFunc: func(_ context.Context, e updateEvent, q requests) {
			was, is := w.user(e.ObjectOld), w.user(e.ObjectNew)
			if !was.concerns(w.parts.contributor) && !is.concerns(w.parts.contributor) {
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

// secretEvents enqueues the objects of parts, and of the Secrets written from parts. Such a Secret owns its part, which
// must not be deleted before it.
func (w *watches) secretEvents() eventFuncs {
	onPart := func(q requests, o client.Object) {
		rec, ok := handoff.Of(o.GetAnnotations())
		req := request{rec.Kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: rec.Name}}
		switch {
		case ok && (rec.Kind == externalSecretKind || rec.Kind == pushSecretKind) && o.GetName() == w.parts.key(req).Name:
			queue.AddTo(q, queue.High, 0, req)
		case o.GetDeletionTimestamp() != nil && w.parts.bears(o):
			queue.AddTo(q, queue.High, 0, request{secretKind, client.ObjectKeyFromObject(o)})
		}
	}
	onTarget := func(ctx context.Context, q requests, o client.Object) {
		for name := range target.Marks(o.GetAnnotations()) {
			req := request{externalSecretKind, types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}
			if m, err := w.parts.cached(ctx, req); m != nil && err == nil {
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

// referring returns the objects that use a generator.
func (w *watches) referring(ctx context.Context, k resolve.Route, generator types.NamespacedName, namespace string) []kit.Referrer[request] {
	var all []kit.Referrer[request]
	for _, list := range []client.ObjectList{&v1alpha1.ExternalSecretList{}, &v1alpha1.PushSecretList{}} {
		if err := w.parts.cache.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil // A cache fails only when it shuts down.
		}
		for _, o := range items(list) {
			if u := w.user(o); u.uses(w.generators.resolver.Routes, k, generator.Name) {
				all = append(all, kit.Referrer[request]{Object: u.request(), New: len(u.parts) == 0, Waits: true})
			}
		}
	}
	return all
}

// free ends the back-off of an object.
func (w *watches) free(req request) {
	if obj := w.memory.Peek(req); obj != nil {
		obj.noWait()
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
