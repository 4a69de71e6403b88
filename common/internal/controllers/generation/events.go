package generation

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
// Namespace labels decide which namespaces a cluster generator admits.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=cluster

// start starts the watches of a controller.
func (r *Reconciler) start(c controller.TypedController[request], from cache.Cache, enqueue func(req request, priority int, after time.Duration)) error {
	wake := &kit.Wake[request]{Resolver: r.generators.resolver, Namespaced: r.generators.opts.Namespaced, Referrers: r.referring, Free: r.free, Enqueue: enqueue}
	sources := append(wake.Sources(from, r.generators.opts.Bus),
		source.TypedKind[client.Object](from, &v1alpha1.ExternalSecret{}, kit.OnEvent(r.onObject)),
		source.TypedKind[client.Object](from, &v1alpha1.PushSecret{}, kit.OnEvent(r.onObject)),
		source.TypedKind[client.Object](from, resolve.SecretMetadata(), kit.OnEvent(r.onSecret)),
	)
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	return nil
}

func (r *Reconciler) user(o client.Object) user { return userOf(o, r.generators.resolver.Routes) }

// onObject enqueues an object that uses a generator of this module, or did.
func (r *Reconciler) onObject(_ context.Context, e kit.Event, add func(request, time.Duration)) {
	is := r.user(e.Object())
	concerned := is.concerns(r.contributor)
	if e.Was != nil && e.Is != nil {
		was := r.user(e.Was)
		concerned = (concerned || was.concerns(r.contributor)) && (was.GetUID() != is.GetUID() ||
			was.GetDeletionTimestamp() == nil && is.GetDeletionTimestamp() != nil || !is.same(was))
	}
	if concerned {
		add(is.request(), 0)
	}
}

// onSecret enqueues the object of a part, and the objects that a Secret was written for. Such a Secret owns the part of
// its object, which must not be deleted before it.
func (r *Reconciler) onSecret(ctx context.Context, e kit.Event, add func(request, time.Duration)) {
	for _, o := range []client.Object{e.Was, e.Is} {
		if o == nil {
			continue
		}
		rec, ok := handoff.Of(o.GetAnnotations())
		req := request{rec.Kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: rec.Name}}
		switch {
		case ok && (rec.Kind == externalSecretKind || rec.Kind == pushSecretKind) && o.GetName() == r.key(req).Name:
			add(req, 0)
		case o.GetDeletionTimestamp() != nil && r.bears(o):
			add(request{secretKind, client.ObjectKeyFromObject(o)}, 0)
		}
	}
	if e.Was != nil && e.Is != nil {
		return
	}
	for name := range target.Marks(e.Object().GetAnnotations()) {
		req := request{externalSecretKind, types.NamespacedName{Namespace: e.Object().GetNamespace(), Name: name}}
		if m, err := r.cached(ctx, req); m != nil && err == nil {
			add(req, 0)
		}
	}
}

// referring returns the objects that use a generator.
func (r *Reconciler) referring(ctx context.Context, k resolve.Route, generator types.NamespacedName, namespace string) []kit.Referrer[request] {
	var all []kit.Referrer[request]
	for _, list := range []client.ObjectList{&v1alpha1.ExternalSecretList{}, &v1alpha1.PushSecretList{}} {
		if err := r.cache.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil // A cache fails only when it shuts down.
		}
		for _, o := range kit.Items(list) {
			if u := r.user(o); u.uses(r.generators.resolver.Routes, k, generator.Name) {
				all = append(all, kit.Referrer[request]{Object: u.request(), New: len(u.parts) == 0, Waits: true})
			}
		}
	}
	return all
}

// free ends the back-off of an object.
func (r *Reconciler) free(req request) {
	if obj := r.memory.Peek(req); obj != nil {
		obj.noWait()
	}
}
