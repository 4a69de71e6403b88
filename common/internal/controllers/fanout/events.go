package fanout

import (
	"context"
	"maps"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// start starts the watches of a controller.
func (r *reconciler) start(c controller.TypedController[request], from cache.Cache) error {
	for _, s := range []source.TypedSource[request]{
		source.TypedKind[client.Object](from, r.newParent(), kit.OnEvent(r.onParent)),
		source.TypedKind[client.Object](from, r.newChild(), kit.OnEvent(r.onChild)),
		source.TypedKind[client.Object](from, resolve.NamespaceMetadata(), kit.OnEvent(r.onNamespace)),
		source.TypedFunc[request](func(_ context.Context, q workqueue.TypedRateLimitingInterface[request]) error {
			all := func() { queue.AddTo(q, queue.High, 0, request{}) }
			r.duties.OnHeld(all) // Another holder of the duties may have changed anything.
			all()                // The duties may already be held.
			return nil
		}),
	} {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	return nil
}

// onParent enqueues a parent.
func (r *reconciler) onParent(_ context.Context, e kit.Event, add func(request, time.Duration)) {
	after := time.Duration(0)
	if !moved(e) {
		after = statusDelay // Check the status again, also if another operator wrote it at the same time.
	}
	add(request{parent: e.Object().GetName()}, after)
}

// onChild enqueues the parent of a changed child, and the parents that wait for a change in its namespace.
func (r *reconciler) onChild(_ context.Context, e kit.Event, add func(request, time.Duration)) {
	changed, frees := !e.Initial, e.Is == nil // The pass over each parent covers the initial ones.
	if e.Was != nil && e.Is != nil {
		changed, frees = r.childMoved(e)
	}
	namespace := e.Object().GetNamespace()
	for _, o := range []client.Object{e.Was, e.Is} {
		if o == nil || !changed {
			continue
		}
		if ref := r.parentOf(o); ref != nil {
			add(request{ref.Name, namespace}, 0)
		}
	}
	if frees {
		for _, parent := range r.board.refused(namespace) {
			add(request{parent, namespace}, 0)
		}
	}
}

// childMoved reports whether more than the status of a child has changed, and whether a parent that waits may go on.
func (r *reconciler) childMoved(e kit.Event) (changed, frees bool) {
	was, is := r.parentOf(e.Was), r.parentOf(e.Is)
	becameReady := r.ready(e.Is) && !r.ready(e.Was) // It may replace another child.
	return was == nil || is == nil || was.UID != is.UID || moved(e),
		becameReady || was != nil && is == nil || e.Was.GetUID() != e.Is.GetUID()
}

// onNamespace enqueues a namespace for every parent, before periodic retries.
func (r *reconciler) onNamespace(ctx context.Context, e kit.Event, add func(request, time.Duration)) {
	if e.Initial || !moved(e) {
		return
	}
	for _, parent := range r.names(ctx) {
		add(request{parent, e.Object().GetName()}, 0)
	}
}

// moved reports whether more than the status of an object has changed.
func moved(e kit.Event) bool {
	was, is := e.Was, e.Is
	return was == nil || is == nil || was.GetUID() != is.GetUID() || was.GetGeneration() != is.GetGeneration() ||
		!maps.Equal(was.GetLabels(), is.GetLabels()) || !maps.Equal(was.GetAnnotations(), is.GetAnnotations()) ||
		was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero()
}
