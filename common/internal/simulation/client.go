package simulation

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Do executes a request in its turn. f executes it and returns a digest of the answer. label describes the request.
type Do func(ctx context.Context, label string, f func() (uint64, error)) error

// AtOnce is a Do that does not wait.
func AtOnce(_ context.Context, _ string, f func() (uint64, error)) error {
	_, err := f()
	return err
}

// NewClient returns a client of a server. It serves what controllers use: no watches, no DeleteAllOf.
func NewClient(s *APIServer, do Do) client.Client { return &apiClient{server: s, do: do} }

type apiClient struct {
	client.Client // nil, so that other methods panic
	server        *APIServer
	do            Do
}

func (c *apiClient) Scheme() *runtime.Scheme { return c.server.scheme }

func (c *apiClient) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, c.server.scheme)
}

func (c *apiClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return c.request(ctx, "get", key, into, func(gvk schema.GroupVersionKind) (*Object, error) { return c.server.Get(gvk, key) })
}

// request executes a request whose answer is an object.
func (c *apiClient) request(ctx context.Context, verb string, key client.ObjectKey, into client.Object, f func(schema.GroupVersionKind) (*Object, error)) error {
	gvk, err := c.GroupVersionKindFor(into)
	if err != nil {
		return err
	}
	return c.do(ctx, fmt.Sprintf("%s %s", verb, Key{gvk.Kind, key}), func() (uint64, error) {
		o, err := f(gvk)
		if err != nil {
			return join(err.Error()), err
		}
		return c.server.digestOf(o), c.server.fill(into, o)
	})
}

// fill copies an object into one of a Go type.
func (s *APIServer) fill(into client.Object, o *Object) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object = o.DeepCopy().Object
		return nil
	}
	is := reflect.ValueOf(into).Elem()
	key := copied{o, is.Type()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.typed[key] == nil {
		made := reflect.New(is.Type()).Interface().(client.Object)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, made); err != nil {
			return err
		}
		if _, partial := into.(*metav1.PartialObjectMetadata); !partial {
			made.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		}
		s.typed[key] = made
	}
	is.Set(reflect.ValueOf(s.typed[key].DeepCopyObject()).Elem())
	return nil
}

// copied identifies an object converted to a Go type. Objects are never changed, so each is converted only once.
type copied struct {
	of *Object
	as reflect.Type
}

func (c *apiClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := elementOf(c.server.scheme, list)
	if err != nil {
		return err
	}
	return c.do(ctx, "list "+gvk.Kind, func() (uint64, error) {
		all, err := c.server.List(gvk)
		if err != nil {
			return 0, err
		}
		sum := uint64(0)
		for _, o := range all {
			sum = sum*31 + c.server.digestOf(o)
		}
		return sum, c.server.fillList(list, gvk, all, named, opts...)
	})
}

// named evaluates the only field selector that the API server knows for every Kind: the name.
func named(o client.Object, opts *client.ListOptions) bool {
	name, ok := opts.FieldSelector.RequiresExactMatch(metav1.ObjectNameField)
	return ok && o.GetName() == name
}

func elementOf(scheme *runtime.Scheme, list client.ObjectList) (schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(list, scheme)
	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	return gvk, err
}

// fillList copies the objects that match the options into a list. matches evaluates field selectors by indexes.
func (s *APIServer) fillList(list client.ObjectList, gvk schema.GroupVersionKind, all []*Object, matches func(client.Object, *client.ListOptions) bool, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	var items []runtime.Object
	for _, each := range all {
		if o.Namespace != "" && each.GetNamespace() != o.Namespace || o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(each.GetLabels())) {
			continue
		}
		var item client.Object = &metav1.PartialObjectMetadata{}
		if _, partial := list.(*metav1.PartialObjectMetadataList); !partial {
			made, err := s.scheme.New(gvk)
			if err != nil {
				return err
			}
			item = made.(client.Object)
		}
		if err := s.fill(item, each); err != nil {
			return err
		}
		if o.FieldSelector != nil && (matches == nil || !matches(item, o)) {
			continue
		}
		items = append(items, item)
	}
	return meta.SetList(list, items)
}

func (c *apiClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	manager := (&client.CreateOptions{}).ApplyOptions(opts).FieldManager
	return c.write(ctx, "create", o, func(u *Object) (*Object, error) { return c.server.Create(u, manager) })
}

func (c *apiClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	manager := (&client.UpdateOptions{}).ApplyOptions(opts).FieldManager
	return c.write(ctx, "update", o, func(u *Object) (*Object, error) { return c.server.Update(u, "", manager) })
}

func (c *apiClient) write(ctx context.Context, verb string, o client.Object, f func(u *Object) (*Object, error)) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	u := &Object{Object: content}
	return c.request(ctx, verb, client.ObjectKeyFromObject(o), o, func(gvk schema.GroupVersionKind) (*Object, error) {
		u.SetGroupVersionKind(gvk)
		return f(u)
	})
}

func (c *apiClient) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return c.patch(ctx, o, p, "", *(&client.PatchOptions{}).ApplyOptions(opts))
}

func (c *apiClient) patch(ctx context.Context, o client.Object, p client.Patch, subresource string, opts client.PatchOptions) error {
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	patch := Patch{Type: p.Type(), Data: data, Subresource: subresource, Manager: opts.FieldManager, Force: opts.Force != nil && *opts.Force}
	verb := "patch"
	if subresource != "" {
		verb += " " + subresource
	}
	key := client.ObjectKeyFromObject(o)
	return c.request(ctx, verb, key, o, func(gvk schema.GroupVersionKind) (*Object, error) { return c.server.Patch(gvk, key, patch) })
}

func (c *apiClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	gvk, err := c.GroupVersionKindFor(o)
	if err != nil {
		return err
	}
	var p Preconditions
	if given := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions; given != nil {
		if given.UID != nil {
			p.UID = *given.UID
		}
		if given.ResourceVersion != nil {
			p.ResourceVersion = *given.ResourceVersion
		}
	}
	key := client.ObjectKeyFromObject(o)
	return c.do(ctx, fmt.Sprintf("delete %s", Key{gvk.Kind, key}), func() (uint64, error) {
		err := c.server.Delete(gvk, key, p)
		return join(fmt.Sprint(err)), err
	})
}

func (c *apiClient) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *apiClient) SubResource(name string) client.SubResourceClient {
	return &subresource{client: c, name: name}
}

type subresource struct {
	client.SubResourceClient // nil
	client                   *apiClient
	name                     string
}

func (s *subresource) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.client.patch(ctx, o, p, s.name, (&client.SubResourcePatchOptions{}).ApplyOptions(opts).PatchOptions)
}

func (s *subresource) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	manager := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts).FieldManager
	return s.client.write(ctx, "update "+s.name, o, func(u *Object) (*Object, error) { return s.client.server.Update(u, s.name, manager) })
}
