package externalsecret

import (
	"context"
	"fmt"
	"maps"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// admit returns the verdict that a cluster store of the plan does not serve this namespace, or not for these keys; nil
// if all of them do.
func (p *pass) admit() *verdict {
	for _, ref := range p.plan.Stores() {
		r := p.resolved[ref]
		if p.foreign[ref] {
			continue
		}
		if r.refusal != nil && r.refusal.Why == resolve.NotAdmitted {
			v := refused(ref, r)
			return &v
		}
		for _, source := range p.plan.Sources {
			if r.Grant == nil || source.Store != ref || source.Generator {
				continue
			}
			if err := r.Grant.Reads(source.Read); err != nil {
				v := status.Stalled(v1alpha1.ReasonForbidden, fmt.Sprintf("%s %q: %s", ref.Kind, ref.Name, err))
				return &v
			}
		}
	}
	return nil
}

// within returns values of which a search yields only keys that the namespace may read. That the path of
// the search is allowed was asked before; this does not rely on what the provider takes a path for.
func (p *pass) within(values render.Values) render.Values {
	return func(s render.Source) provider.Answer {
		a := values(s)
		g := p.resolved[s.Store].Grant
		if g == nil {
			return a
		}
		for _, v := range a.Found {
			if g.Reads(provider.Read{Ref: provider.Ref{Key: v.Key}}) != nil {
				return provider.Answer{Err: provider.NewError(provider.Invalid, "find: the provider has keys under this path that the store does not allow this namespace; set find.path to a whole folder")}
			}
		}
		return a
	}
}

// namespaceEvents has the objects of a namespace look again at whether their cluster stores admit it.
func (r *Reconciler) namespaceEvents() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ requests) {
			if maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				return
			}
			var list v1alpha1.ExternalSecretList
			if err := r.cache.List(ctx, &list, client.InNamespace(e.ObjectNew.GetName())); err != nil {
				return // Only a cache that is shutting down fails.
			}
			for i := range list.Items {
				if r.routes.usesCluster(&list.Items[i]) {
					r.enqueue(client.ObjectKeyFromObject(&list.Items[i]), queue.High)
				}
			}
		},
	}
}

// credentialChanged lets those objects of a namespace go that a store could not log in for.
func (r *Reconciler) credentialChanged(k provider.Kind, s types.NamespacedName, namespace string) {
	for _, route := range r.routes.Kinds {
		if route.GoName() == k.GoName() {
			r.release(context.Background(), route, s, func(es *v1alpha1.ExternalSecret) bool { return es.Namespace == namespace })
		}
	}
}

// missing reports whether an error says that a namespace is not in the cache yet.
func missing(err error) bool { return kerrors.IsNotFound(errors.Cause(err)) }
