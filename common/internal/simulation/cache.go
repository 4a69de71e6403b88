package simulation

import (
	"context"
	"maps"
	"slices"
	"strings"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// A Cache is an operator's view of an APIServer. For each Kind it is as old as the last catchUp.
type Cache struct {
	server *APIServer
	saw    func(parts ...string)
	shown  map[Key]*Object
	views  map[string]view
	index  map[string]map[string]client.IndexerFunc
}

// view is the configuration of a cache for a Kind: its selection and its event handler.
type view struct {
	gvk     schema.GroupVersionKind
	example client.Object
	selects func(*Object) bool
	reduce  func(client.Object)
	handler handler.EventHandler
}

var (
	_ client.Reader       = &Cache{}
	_ client.FieldIndexer = &Cache{}
)

// Watch makes the cache hold the objects of the example's Kind. selects filters them (nil: all), reduce strips them
// (nil: not), and h gets their events (nil: none).
func (c *Cache) Watch(example client.Object, selects func(*Object) bool, reduce func(client.Object), h handler.EventHandler) {
	gvk, err := apiutil.GVKForObject(example, c.server.scheme)
	if err != nil {
		panic(err)
	}
	c.views[gvk.Kind] = view{gvk, example, selects, reduce, h}
}

// IndexField implements client.FieldIndexer.
func (c *Cache) IndexField(_ context.Context, o client.Object, field string, f client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(o, c.server.scheme)
	if c.index[gvk.Kind] == nil {
		c.index[gvk.Kind] = map[string]client.IndexerFunc{}
	}
	c.index[gvk.Kind][field] = f
	return err
}

// Get implements client.Reader.
func (c *Cache) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(into, c.server.scheme)
	if err != nil {
		return err
	}
	o := c.shown[Key{gvk.Kind, key}]
	if o == nil {
		c.saw("no", gvk.Kind, key.String())
		return kerrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind) + "s"}, key.Name)
	}
	c.saw(gvk.Kind, key.String(), string(o.GetUID()), o.GetResourceVersion())
	err = c.server.fill(into, o)
	if reduce := c.views[gvk.Kind].reduce; reduce != nil && err == nil {
		reduce(into)
	}
	return err
}

// List implements client.Reader.
func (c *Cache) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := elementOf(c.server.scheme, list)
	if err != nil {
		return err
	}
	all := listOf(c.shown, gvk.Kind)
	for _, o := range all {
		c.saw("list", gvk.Kind, o.GetNamespace(), o.GetName(), string(o.GetUID()), o.GetResourceVersion())
	}
	return c.server.fillList(list, gvk, all, func(o client.Object, opts *client.ListOptions) bool {
		for _, r := range opts.FieldSelector.Requirements() {
			f := c.index[gvk.Kind][r.Field]
			if f == nil || !slices.Contains(f(o), r.Value) {
				return false
			}
		}
		return true
	}, opts...)
}

// current returns the objects of a Kind that an up-to-date cache would hold.
func (c *Cache) current(kind string) map[Key]*Object {
	v, is := c.views[kind], map[Key]*Object{}
	for key, o := range c.server.objects {
		if key.Kind == kind && (v.selects == nil || v.selects(o)) {
			is[key] = o
		}
	}
	return is
}

// held returns the objects of a Kind that the cache holds.
func (c *Cache) held(kind string) map[Key]*Object {
	is := map[Key]*Object{}
	for key, o := range c.shown {
		if key.Kind == kind {
			is[key] = o
		}
	}
	return is
}

// behind returns the Kinds of which the cache is outdated.
func (c *Cache) behind() []string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(c.views)) {
		if !maps.Equal(c.current(kind), c.held(kind)) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// catchUp brings the cache of a Kind up to date, and calls the handler.
func (c *Cache) catchUp(kind string, q Requests) {
	was, is := c.held(kind), c.current(kind)
	v := c.views[kind]
	typed := func(o *Object) client.Object {
		into := v.example.DeepCopyObject().(client.Object)
		if err := c.server.fill(into, o); err != nil {
			panic(err) // It was stored by the same scheme.
		}
		if v.reduce != nil {
			v.reduce(into)
		}
		return into
	}
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	ctx := context.Background()
	for _, key := range slices.SortedFunc(maps.Keys(keys), func(a, b Key) int { return strings.Compare(a.String(), b.String()) }) {
		old, now := was[key], is[key]
		if old == now {
			continue
		}
		deleted := old != nil && (now == nil || now.GetUID() != old.GetUID())
		if now == nil {
			delete(c.shown, key)
		} else {
			c.shown[key] = now
		}
		c.saw("event", key.String(), digestOf(old), digestOf(now))
		if v.handler == nil {
			continue
		}
		if deleted {
			v.handler.Delete(ctx, event.TypedDeleteEvent[client.Object]{Object: typed(old)}, q)
		}
		switch {
		case now == nil:
		case old == nil || deleted:
			v.handler.Create(ctx, event.TypedCreateEvent[client.Object]{Object: typed(now)}, q)
		default:
			v.handler.Update(ctx, event.TypedUpdateEvent[client.Object]{ObjectOld: typed(old), ObjectNew: typed(now)}, q)
		}
	}
}

func digestOf(o *Object) string {
	if o == nil {
		return ""
	}
	return string(o.GetUID()) + "@" + o.GetResourceVersion()
}

// digest returns a hash of the content of the cache.
func (c *Cache) digest() (sum uint64) {
	for key, o := range c.shown {
		sum += join(key.String(), digestOf(o))
	}
	return sum
}
