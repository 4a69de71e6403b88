package pushsecret

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// storeReader finds the stores of this module that objects name.
type storeReader struct {
	// client reads live; cache reads from the informers of the stores.
	client, cache client.Reader
	scheme        *runtime.Scheme
	routes        *resolve.Resolver
	namespaced    bool
}

// destinations returns the stores that the spec of an object names, each once. known are the status entries. elsewhere are the stores that
// an operator of another class serves.
func (r storeReader) destinations(ctx context.Context, ps *v1alpha1.PushSecret, known []v1alpha1.PushStoreStatus) (out []destination, elsewhere []storeID, err error) {
	for _, ref := range ps.Spec.StoreRefs {
		k, ok := r.routes.Serves(&v1alpha1.StoreRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name})
		if !ok {
			continue
		}
		names, err := r.names(ctx, k, ps.Namespace, ref)
		if err != nil {
			return nil, nil, err
		}
		for _, name := range names {
			id := storeID{k.GVK.GroupVersion().String(), k.GVK.Kind, name}
			if slices.Contains(idsOf(out), id) || slices.Contains(elsewhere, id) {
				continue
			}
			d, err := r.destination(ctx, ps.Namespace, id, known)
			switch {
			case err != nil:
				return nil, nil, err
			case d == nil:
				elsewhere = append(elsewhere, id)
			case ref.LabelSelector == nil || !d.concealed():
				out = append(out, *d)
			}
		}
	}
	return out, elsewhere, nil
}

// withSelected adds to the stores of a push those that a selector of the spec selects at the API server, and not in the cache, which
// can be behind, for example after a restart. Without them, the push would drop their entries in known from the status, and another
// object could then delete what this one uses.
func (r storeReader) withSelected(ctx context.Context, ps *v1alpha1.PushSecret, dests []destination, elsewhere []storeID, known []v1alpha1.PushStoreStatus) ([]destination, error) {
	for _, s := range known {
		id := idOf(s)
		if len(s.Entries) == 0 || slices.Contains(idsOf(dests), id) || slices.Contains(elsewhere, id) {
			continue
		}
		selected, err := r.namedNow(ctx, ps, id)
		if err != nil {
			return nil, err
		}
		if selected {
			more, _, err := r.remaining(ctx, ps.Namespace, []v1alpha1.PushStoreStatus{s})
			if err != nil {
				return nil, err
			}
			dests = append(dests, more...)
		}
	}
	return dests, nil
}

// namedNow reports whether the spec names or selects a store. It reads labels live.
func (r storeReader) namedNow(ctx context.Context, ps *v1alpha1.PushSecret, id storeID) (bool, error) {
	var selectors []labels.Selector
	for _, ref := range ps.Spec.StoreRefs {
		k, ok := r.routes.Serves(&v1alpha1.StoreRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name})
		switch {
		case !ok || k.GVK.Kind != id.kind || k.GVK.GroupVersion().String() != id.apiVersion || k.Cluster && r.namespaced:
			continue
		case ref.LabelSelector == nil && ref.Name == id.name:
			return true, nil
		case ref.LabelSelector == nil:
			continue
		}
		if s, err := metav1.LabelSelectorAsSelector(ref.LabelSelector); err == nil { // NewPlan reports the error.
			selectors = append(selectors, s)
		}
	}
	if len(selectors) == 0 {
		return false, nil
	}
	k, _ := r.routes.Serves(&v1alpha1.StoreRef{APIVersion: id.apiVersion, Kind: id.kind})
	is := &metav1.PartialObjectMetadataList{}
	is.SetGroupVersionKind(k.GVK.GroupVersion().WithKind(k.GVK.Kind + "List"))
	key := k.Key(id.name, ps.Namespace)
	err := r.client.List(ctx, is, client.InNamespace(key.Namespace), client.MatchingFields{metav1.ObjectNameField: key.Name})
	if err != nil {
		return false, errors.Wrapf(err, "cannot read %s %q", id.kind, id.name)
	}
	return slices.ContainsFunc(is.Items, func(store metav1.PartialObjectMetadata) bool {
		return store.Name == key.Name && slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(store.Labels)) })
	}), nil
}

// mayRun reports whether jobs may run at a store: if they remove something, the spec must name the store now. Remote secrets stay in a
// store that is no longer selected, and the cache can be behind. The event for its labels wakes the object.
func (r storeReader) mayRun(ctx context.Context, ps *v1alpha1.PushSecret, id storeID, jobs []job) (bool, error) {
	if !slices.ContainsFunc(jobs, job.removes) {
		return true, nil
	}
	return r.namedNow(ctx, ps, id)
}

// remaining returns the destinations of status entries. elsewhere are the stores that an operator of another class
// serves now.
func (r storeReader) remaining(ctx context.Context, namespace string, entries []v1alpha1.PushStoreStatus) (out []destination, elsewhere []storeID, err error) {
	for _, s := range entries {
		d, err := r.destination(ctx, namespace, idOf(s), entries)
		switch {
		case err != nil:
			return nil, nil, err
		case d == nil:
			elsewhere = append(elsewhere, idOf(s))
		default:
			out = append(out, *d)
		}
	}
	return out, elsewhere, nil
}

// names returns the sorted names of the stores that a reference names or selects.
func (r storeReader) names(ctx context.Context, k resolve.Route, namespace string, ref v1alpha1.PushStoreRef) ([]string, error) {
	if ref.LabelSelector == nil {
		return []string{ref.Name}, nil
	}
	return r.selected(ctx, k, namespace, ref.LabelSelector)
}

// selected returns the sorted names of the stores that match a label selector.
func (r storeReader) selected(ctx context.Context, k resolve.Route, namespace string, s *metav1.LabelSelector) ([]string, error) {
	if k.Cluster && r.namespaced {
		return nil, nil
	}
	sel, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, nil //nolint:nilerr // NewPlan already reports it.
	}
	stores, err := kit.Stores(ctx, r.cache, r.scheme, k, namespace, client.MatchingLabelsSelector{Selector: sel})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot list stores of kind %s", k.GVK.Kind)
	}
	var names []string
	for _, s := range stores {
		names = append(names, s.GetName())
	}
	slices.Sort(names)
	return names, nil
}

// destination resolves a store of this module. It returns nil if an operator of another class serves it.
func (r storeReader) destination(ctx context.Context, namespace string, id storeID, known []v1alpha1.PushStoreStatus) (*destination, error) {
	d := &destination{status: v1alpha1.PushStoreStatus{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name}}
	d.route, _ = r.routes.Serves(&v1alpha1.StoreRef{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name})
	for _, s := range known {
		if idOf(s) == id {
			d.status = *s.DeepCopy()
		}
	}
	h, refusal, err := r.routes.Resolve(ctx, d.ref(), namespace, resolve.Push)
	switch {
	case err != nil:
		return nil, err
	case refusal == nil:
	case refusal.Why == resolve.OtherClass:
		return nil, nil
	default:
		d.refusal, d.broken = &kit.Refused(d.ref(), h, refusal).Verdict, refusal.Reason == v1alpha1.ReasonStoreInvalidSpec
		d.excluded = refusal.Why == resolve.NotAdmitted
	}
	d.store, d.grant = h.Store, h.Grant
	return d, nil
}
