package reader

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/tree"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Tree reads what a tree shows in addition to the snapshot: workloads, and which targets exist, without their
// values. Requests that the user is not allowed to make are added to Refused.
func (r *Reader) Tree(ctx context.Context, s *snapshot.Snapshot) (tree.Input, error) {
	in := tree.Input{Snapshot: s}
	for _, l := range tree.WorkloadLists() {
		gvk, err := apiutil.GVKForObject(l, r.Client.Scheme())
		if err != nil {
			return in, err
		}
		kind := strings.TrimSuffix(gvk.Kind, "List")
		err = r.pages(ctx, kind, l, s.Namespace, func(page client.ObjectList) { in.Workloads = append(in.Workloads, tree.Workloads(page)...) })
		if err = refused(s, err, strings.ToLower(kind)+"s"); err != nil {
			return in, err
		}
	}
	in.Exists = map[v1alpha1.TargetKind]func(namespace, name string) bool{}
	kinds := []v1alpha1.TargetKind{v1alpha1.TargetSecret}
	if writesConfigMap(s) { // Others need no permission to list ConfigMaps.
		kinds = append(kinds, v1alpha1.TargetConfigMap)
	}
	for _, kind := range kinds {
		if err := r.existing(ctx, s, kind, in.Exists); err != nil {
			return in, err
		}
	}
	r.Progress("")
	return in, nil
}

// writesConfigMap reports whether an ExternalSecret has a ConfigMap as its target.
func writesConfigMap(s *snapshot.Snapshot) bool {
	return slices.ContainsFunc(s.Objects, func(o snapshot.Object) bool {
		return o.ExternalSecret != nil && o.ExternalSecret.Spec.Target.Kind == v1alpha1.TargetConfigMap
	})
}

// existing adds which objects of a Kind exist.
func (r *Reader) existing(ctx context.Context, s *snapshot.Snapshot, kind v1alpha1.TargetKind, to map[v1alpha1.TargetKind]func(namespace, name string) bool) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: string(kind) + "List"})
	exist := map[types.NamespacedName]bool{}
	err := r.pages(ctx, string(kind), list, s.Namespace, func(page client.ObjectList) {
		for _, m := range page.(*metav1.PartialObjectMetadataList).Items {
			exist[client.ObjectKeyFromObject(&m)] = true
		}
	})
	if err != nil {
		return refused(s, err, strings.ToLower(string(kind))+"s")
	}
	to[kind] = func(namespace, name string) bool {
		return exist[types.NamespacedName{Namespace: namespace, Name: name}]
	}
	return nil
}

// refused adds a request that the user is not allowed to make to Refused. It returns any other error.
func refused(s *snapshot.Snapshot, err error, resource string) error {
	if !kerrors.IsForbidden(err) {
		return err
	}
	s.Refused = append(s.Refused, snapshot.Refusal{Verb: "list", Resource: resource, Namespace: s.Namespace, Purpose: "to show the whole tree"})
	return nil
}

// pages lists objects page by page into copies of an empty list.
func (r *Reader) pages(ctx context.Context, kind string, empty client.ObjectList, namespace string, page func(client.ObjectList)) error {
	for more, n := "", 1; ; n++ {
		r.Progress(fmt.Sprintf("%ss, page %d", kind, n))
		l := empty.DeepCopyObject().(client.ObjectList) // Decoding into a list that is not empty could keep fields of the previous page.
		opts := []client.ListOption{client.Limit(pageSize), client.Continue(more)}
		if namespace != "" {
			opts = append(opts, client.InNamespace(namespace))
		}
		if err := r.Client.List(ctx, l, opts...); err != nil {
			return fmt.Errorf("cannot list %ss: %w", kind, err)
		}
		page(l)
		if more = l.GetContinue(); more == "" {
			return nil
		}
	}
}
