package fanout

import (
	"context"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// parents reads the cluster objects, and writes their status. It is safe for concurrent use.
//
// Modules may be of different versions. An older module must not drop fields that only a later version knows, so
// parents are read, and children written, with all their fields.
type parents struct {
	kinds

	// client does not read from a cache; cache does.
	client client.Client
	cache  client.Reader
	events events.EventRecorder

	mu sync.Mutex
	// raws are the specs of children, by name of the parent.
	raws map[string]raw
}

// raw is the spec of the children for one generation of a parent.
type raw struct {
	uid        types.UID
	generation int64
	spec       map[string]any
}

// names returns the names of all parents.
func (p *parents) names(ctx context.Context) []string {
	list := p.newParents()
	if err := p.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // The cache fails only while it shuts down.
	}
	var names []string
	for _, o := range objectsOf(list) {
		names = append(names, o.GetName())
	}
	return names
}

func objectsOf(list client.ObjectList) []client.Object {
	var out []client.Object
	_ = meta.EachListItem(list, func(o runtime.Object) error { // The function returns no error.
		if c, ok := o.(client.Object); ok {
			out = append(out, c)
		}
		return nil
	})
	return out
}

// cached returns a parent from the cache; nil if there is none, or if it is being deleted.
func (p *parents) cached(ctx context.Context, name string) (client.Object, error) {
	parent := p.newParent()
	err := p.cache.Get(ctx, types.NamespacedName{Name: name}, parent)
	if kerrors.IsNotFound(err) || err == nil && parent.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	return parent, errors.Wrap(err, "cannot read the object")
}

// wanted returns the wanted children of a parent. Their spec is read live once for each generation. The error is a
// conflict if the cache is behind.
func (p *parents) wanted(ctx context.Context, parent client.Object) (desired, error) {
	want := p.wants(parent)
	if want.name == "" {
		want.name = parent.GetName()
	}
	p.mu.Lock()
	is, ok := p.raws[parent.GetName()]
	p.mu.Unlock()
	if ok && is.uid == parent.GetUID() && is.generation == parent.GetGeneration() {
		want.raw = is.spec
		return want, nil
	}
	var err error
	want.raw, err = p.live(ctx, parent)
	return want, err
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=clusterexternalsecrets;clusterpushsecrets,verbs=get,roleName=cluster

// live reads the spec of the children of a parent live. The error is a conflict if the parent has another uid or
// generation by now, or is being deleted.
func (p *parents) live(ctx context.Context, parent client.Object) (map[string]any, error) {
	is := unstructuredOf(p.parent)
	err := p.client.Get(ctx, client.ObjectKeyFromObject(parent), is)
	if client.IgnoreNotFound(err) != nil {
		return nil, errors.Wrap(err, "cannot read the object")
	}
	if err != nil || is.GetUID() != parent.GetUID() || is.GetGeneration() != parent.GetGeneration() || is.GetDeletionTimestamp() != nil {
		return nil, behind(v1alpha1.GroupVersion.WithResource(p.parent).GroupResource(), parent.GetName())
	}
	spec, _, err := unstructured.NestedMap(is.Object, "spec", p.specField)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read spec.%s", p.specField)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.raws == nil {
		p.raws = map[string]raw{}
	}
	p.raws[parent.GetName()] = raw{uid: is.GetUID(), generation: is.GetGeneration(), spec: spec}
	return spec, nil
}

// forget drops the spec that is kept of a parent.
func (p *parents) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.raws, name)
}

// behind returns a conflict error, which means that the cached object is outdated.
func behind(resource schema.GroupResource, name string) error {
	return kerrors.NewConflict(resource, name, errors.New("the cache is behind"))
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=clusterexternalsecrets/status;clusterpushsecrets/status,verbs=patch,roleName=cluster

// patch writes the status if it has changed.
func (p *parents) patch(ctx context.Context, parent client.Object, before, next *v1alpha1.FanOutStatus) error {
	k := status.Kind[client.Object, v1alpha1.FanOutStatus]{
		New: p.newParent, Status: func(o client.Object) *v1alpha1.FanOutStatus { return p.wants(o).status },
	}
	was := before.Conditions
	_, written, err := k.Patch(ctx, p.client, parent, parent.GetResourceVersion(), before, next)
	if written {
		status.RecordEvent(p.events, parent, "Provision", was, next.Conditions)
	}
	return err
}
