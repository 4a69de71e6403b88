package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// removal is how long a guest waits until the objects that it has created are deleted.
const removal = 2 * time.Minute

// A guest is a Stack in an existing cluster. It creates only objects that do not exist, and deletes them at the
// end.
type guest struct {
	client     client.Client
	namespaces []string
	// creates are the CRDs, the ClusterRoles with their bindings, and the namespaces.
	creates []*unstructured.Unstructured
}

// newGuest returns the guest for some modules, with further namespaces.
func newGuest(c client.Client, modules []module, namespaces []string) (*guest, error) {
	g := &guest{client: c, namespaces: append([]string{Namespace}, namespaces...)}
	for _, ns := range g.namespaces {
		g.add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, ns)
	}
	for _, crd := range crdsOf(modules) {
		if err := g.addDocuments(crd); err != nil {
			return nil, err
		}
	}
	for _, m := range modules {
		if err := g.addDocuments(m.rbac); err != nil {
			return nil, err
		}
	}
	for _, o := range slices.Clone(g.creates) {
		if gvk := o.GroupVersionKind(); gvk.Kind == "ClusterRole" {
			gvk.Kind = "ClusterRoleBinding"
			g.add(gvk, o.GetName())
		}
	}
	return g, nil
}

func (g *guest) add(gvk schema.GroupVersionKind, name string) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	o.SetName(name)
	g.creates = append(g.creates, o)
}

func (g *guest) addDocuments(manifest []byte) error {
	for _, doc := range Documents(manifest) {
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &o.Object); err != nil {
			return err
		}
		g.add(o.GroupVersionKind(), o.GetName())
	}
	return nil
}

// present returns the objects that exist.
func (g *guest) present(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, o := range objects {
		o = o.DeepCopy()
		err := g.client.Get(ctx, client.ObjectKeyFromObject(o), o)
		if kerrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, o)
	}
	return found, nil
}

// arrive fails if the cluster has an object that the guest would create, and therefore delete at the end.
func (g *guest) arrive(ctx context.Context) error {
	found, err := g.present(ctx, g.creates)
	if err != nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("the cluster has these already, which would be created and, at the end, deleted: %s; "+
		"use a cluster without direct-secrets and without these namespaces", names(found))
}

// disconnect deletes the objects that the guest has created, and waits until none exists.
func (g *guest) disconnect() error {
	ctx, cancel := context.WithTimeout(context.Background(), removal)
	defer cancel()
	isNamespace := func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" }
	// Namespaces are deleted first, with their objects, because deleting a CRD deletes all of its objects.
	err := g.remove(ctx, slices.DeleteFunc(slices.Clone(g.creates), func(o *unstructured.Unstructured) bool { return !isNamespace(o) }))
	if err != nil {
		return err
	}
	rest, kept := []*unstructured.Unstructured{}, []error{}
	for _, o := range g.creates {
		if isNamespace(o) {
			continue
		}
		n, err := g.objectsOf(ctx, o)
		if err == nil && n > 0 {
			err = fmt.Errorf("there are %d objects of it that the demo has not created", n)
		}
		if err != nil {
			kept = append(kept, fmt.Errorf("%s %s is left: %w", o.GetKind(), o.GetName(), err))
			continue
		}
		rest = append(rest, o)
	}
	return errors.Join(append(kept, g.remove(ctx, rest))...)
}

// objectsOf returns the number of objects of a CRD, and 0 for any other object.
func (g *guest) objectsOf(ctx context.Context, o *unstructured.Unstructured) (int, error) {
	if o.GetKind() != "CustomResourceDefinition" {
		return 0, nil
	}
	crd := o.DeepCopy()
	if err := g.client.Get(ctx, client.ObjectKeyFromObject(o), crd); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind + "List"})
	err := g.client.List(ctx, list)
	if meta.IsNoMatchError(err) {
		return 0, nil
	}
	return len(list.Items), err
}

// remove deletes the objects that exist, and waits until none does.
func (g *guest) remove(ctx context.Context, objects []*unstructured.Unstructured) error {
	found, err := g.present(ctx, objects)
	if err != nil {
		return err
	}
	for _, o := range found {
		uid := o.GetUID()
		if err := g.client.Delete(ctx, o, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	err = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		found, err = g.present(ctx, found)
		return len(found) == 0, err
	})
	if err != nil {
		return fmt.Errorf("these are left in the cluster: %s: %w", names(found), err)
	}
	return nil
}

func names(objects []*unstructured.Unstructured) string {
	var all []string
	for _, o := range objects {
		all = append(all, o.GetKind()+" "+o.GetName())
	}
	return strings.Join(all, ", ")
}
