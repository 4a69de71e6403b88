package pushsecret

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/concurrency"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/scope"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// destination is a store that an object is pushed to.
type destination struct {
	route resolve.Route
	// store is nil if refusal says so.
	store  provider.Object
	grant  *scope.Grant
	status v1alpha1.PushStoreStatus
	// refusal says why nothing is pushed to it now.
	refusal *status.Verdict
	// broken is true where only a person can help, for example to bring credentials back.
	broken bool
	// failing is true if what was created could not be removed.
	failing bool
}

// ref names the store.
func (d *destination) ref() v1alpha1.StoreRef {
	return v1alpha1.StoreRef{APIVersion: d.status.APIVersion, Kind: d.status.Kind, Name: d.status.Name}
}

// name is how messages call the store.
func (d *destination) name() string { return fmt.Sprintf("%s %q", d.status.Kind, d.status.Name) }

func (d *destination) key(namespace string) types.NamespacedName {
	return d.route.Key(d.status.Name, namespace)
}

// label is that of Secrets that came from the store.
func (d *destination) label(namespace string) string {
	n := d.key(namespace)
	return target.StoreLabel(d.route.GVK.Group, d.route.GVK.Kind, n.Namespace, n.Name)
}

func (d *destination) synced() bool {
	return meta.IsStatusConditionTrue(d.status.Conditions, v1alpha1.ConditionSynced)
}

// destinations returns the stores of this module that the spec names, each once.
func (p *pass) destinations(ctx context.Context) ([]destination, error) {
	var out []destination
	for i, ref := range p.ps.Spec.StoreRefs {
		k, ok := p.routes.Serves(kindOf(ref))
		if !ok {
			continue
		}
		names := []string{ref.Name}
		if ref.LabelSelector != nil {
			var err error
			if names, err = p.selected(ctx, k, ref.LabelSelector); err != nil {
				return nil, err
			}
		}
		for _, name := range names {
			d, err := p.destination(ctx, k, name)
			if err != nil {
				return nil, err
			}
			p.follows = p.follows || d == nil && i == 0 && ref.Name != ""
			if d != nil && !slices.ContainsFunc(out, func(o destination) bool { return idOf(o.status) == idOf(d.status) }) {
				out = append(out, *d)
			}
		}
	}
	return out, nil
}

// selected returns the names of the stores that carry labels, in order.
func (p *pass) selected(ctx context.Context, k resolve.Route, s *metav1.LabelSelector) ([]string, error) {
	if k.Cluster && p.opts.Namespaced {
		return nil, nil
	}
	sel, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, nil //nolint:nilerr // NewPlan refuses it.
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(k.GVK.GroupVersion().WithKind(k.GVK.Kind + "List"))
	opts := []client.ListOption{client.MatchingLabelsSelector{Selector: sel}}
	if !k.Cluster {
		opts = append(opts, client.InNamespace(p.ps.Namespace))
	}
	if err := p.client.List(ctx, list, opts...); err != nil {
		return nil, errors.Wrapf(err, "cannot list stores of kind %s", k.GVK.Kind)
	}
	var names []string
	for _, s := range list.Items {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names, nil
}

// destination looks at a store. It is nil where an operator of another class serves it.
func (p *pass) destination(ctx context.Context, k resolve.Route, name string) (*destination, error) {
	d := &destination{route: k, status: v1alpha1.PushStoreStatus{APIVersion: k.GVK.GroupVersion().String(), Kind: k.GVK.Kind, Name: name}}
	for _, s := range p.known() {
		if idOf(s) == idOf(d.status) {
			d.status = s
		}
	}
	h, refusal, err := p.routes.Resolve(ctx, d.ref(), p.ps.Namespace, resolve.Push)
	switch {
	case err != nil:
		return nil, err
	case refusal == nil:
	case refusal.Why == resolve.OtherClass:
		return nil, nil
	default:
		v := failure("", provider.NewError(refusedClass[refusal.Why], "%s %s", d.name(), refusal.Message))
		d.refusal, d.broken = &v, refusal.Reason == v1alpha1.ReasonStoreInvalidSpec
	}
	d.store, d.grant = h.Store, h.Grant
	return d, nil
}

// refusedClass holds the class of the error that a refusal is.
var refusedClass = map[resolve.Why]provider.Class{
	resolve.ClusterKind: provider.Denied, resolve.Absent: provider.NotFound, resolve.WrongKind: provider.Invalid,
	resolve.NotAdmitted: provider.Denied, resolve.ReadOnly: provider.Denied, resolve.NotReady: provider.Unavailable,
}

// source is the version of all that a push to the store rests on: what is pushed, and where it goes.
func (d *destination) source(hash string) string {
	return watch.VersionOf(map[string]string{"source": hash, "store": fmt.Sprintf("%s/%d", d.store.GetUID(), d.store.GetGeneration())})
}

// lane is where what is pushed to the store has its turn.
func (d *destination) lane(namespace string) concurrency.Key {
	return concurrency.Key{UID: d.store.GetUID(), Beside: resolve.Beside(d.store, namespace)}
}

func byID(a, b v1alpha1.PushStoreStatus) int {
	return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}
