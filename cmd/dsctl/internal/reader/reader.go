// Package reader reads the objects that dsctl reports on from a cluster.
package reader

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// pageSize is the number of objects per page of a list.
const pageSize = 500

// clockSkew is the maximum difference between the clock of this machine and those of the operators.
const clockSkew = 30 * time.Second

// fieldManager is the field manager of changes.
const fieldManager = "dsctl"

// A Reader reads a cluster, and changes single objects of it.
type Reader struct {
	Client    client.Client
	Discovery discovery.DiscoveryInterface
	// OperatorNamespace is the only namespace whose Leases of operators count. If it is empty, those of all namespaces do,
	// or of usualNamespace for a user who is not allowed to list them in all.
	OperatorNamespace string
	// Progress is called with a description of what is being read.
	Progress func(text string)
}

// Kinds returns the Kinds of direct-secrets that the cluster has, in the order of their groups and names.
func (r *Reader) Kinds() ([]snapshot.Kind, error) {
	r.Progress("Kinds")
	lists, err := discovery.ServerPreferredResources(r.Discovery)
	var partly *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &partly) && !slices.ContainsFunc(slices.Collect(maps.Keys(partly.Groups)), isOurs) {
		err = nil // An aggregated API server of another project is unavailable.
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the Kinds of the cluster: %w", err)
	}
	var kinds []snapshot.Kind
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil || !isOurs(gv) {
			continue
		}
		for _, res := range l.APIResources {
			if !strings.Contains(res.Name, "/") && slices.Contains(res.Verbs, "list") {
				kinds = append(kinds, snapshot.Kind{
					GroupVersionKind: gv.WithKind(res.Kind), Resource: res.Name, Singular: res.SingularName, ShortNames: res.ShortNames, Namespaced: res.Namespaced,
				})
			}
		}
	}
	slices.SortFunc(kinds, func(a, b snapshot.Kind) int {
		return strings.Compare(a.Group+"/"+a.Kind, b.Group+"/"+b.Kind)
	})
	return kinds, nil
}

func isOurs(gv schema.GroupVersion) bool {
	return gv.Group == v1alpha1.Group || strings.HasSuffix(gv.Group, "."+v1alpha1.Group)
}

// Read reads a namespace, together with the cluster-scoped objects that its objects can refer to, or all
// namespaces if namespace is empty. Requests that the user is not allowed to make are reported in Refused, and
// are not an error.
func (r *Reader) Read(ctx context.Context, namespace string) (*snapshot.Snapshot, error) {
	kinds, err := r.Kinds()
	if err != nil {
		return nil, err
	}
	s := &snapshot.Snapshot{Now: time.Now(), Namespace: namespace, Kinds: kinds}
	for _, k := range kinds {
		objects, err := r.List(ctx, k, namespace)
		if kerrors.IsForbidden(err) {
			s.Refused = append(s.Refused, snapshot.Refusal{Verb: "list", Resource: k.GroupResource(), Namespace: scopeOf(k, namespace), Purpose: "to report on them"})
			continue
		}
		if err != nil {
			return nil, err
		}
		s.Objects = append(s.Objects, objects...)
	}
	slices.SortFunc(s.Objects, func(a, b snapshot.Object) int { return a.Ref().Compare(b.Ref()) })
	if err := r.readOperators(ctx, s); err != nil {
		return nil, err
	}
	r.Progress("")
	return s, nil
}

func scopeOf(k snapshot.Kind, namespace string) string {
	if k.Namespaced {
		return namespace
	}
	return ""
}

// List returns the objects of a Kind.
func (r *Reader) List(ctx context.Context, k snapshot.Kind, namespace string) ([]snapshot.Object, error) {
	var all []snapshot.Object
	empty := &unstructured.UnstructuredList{}
	empty.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	var broken error
	err := r.pages(ctx, k.Kind, empty, scopeOf(k, namespace), func(page client.ObjectList) {
		items := page.(*unstructured.UnstructuredList).Items
		for i := range items {
			o, err := snapshot.NewObject(k, &items[i])
			broken = errors.Join(broken, err)
			all = append(all, o)
		}
	})
	return all, errors.Join(err, broken)
}

// Get returns an object. namespace is ignored for cluster-scoped Kinds.
func (r *Reader) Get(ctx context.Context, k snapshot.Kind, namespace, name string) (snapshot.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.GroupVersionKind)
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: scopeOf(k, namespace), Name: name}, u); err != nil {
		return snapshot.Object{}, err
	}
	return snapshot.NewObject(k, u)
}

// Patch changes an object with a merge patch.
func (r *Reader) Patch(ctx context.Context, o *snapshot.Object, patch []byte) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.Kind.GroupVersionKind)
	u.SetNamespace(o.Meta.Namespace)
	u.SetName(o.Meta.Name)
	return r.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
}

// usualNamespace is the namespace in which the docs install the operators.
const usualNamespace = "direct-secrets"

// readOperators reads the Leases of the operators.
func (r *Reader) readOperators(ctx context.Context, s *snapshot.Snapshot) error {
	r.Progress("operators")
	leases := &coordinationv1.LeaseList{}
	elsewhere := false // Operators may be in a namespace that the user is not allowed to read.
	labelled, namespace := client.MatchingLabels{inspect.OperatorLabel: "true"}, r.OperatorNamespace
	err := r.Client.List(ctx, leases, labelled, client.InNamespace(namespace))
	if kerrors.IsForbidden(err) && namespace == "" {
		namespace = usualNamespace
		err = r.Client.List(ctx, leases, labelled, client.InNamespace(namespace))
		elsewhere = err == nil && len(leases.Items) == 0
	}
	if kerrors.IsForbidden(err) || elsewhere {
		s.Refused = append(s.Refused, snapshot.Refusal{
			Verb: "list", Resource: "leases.coordination.k8s.io", Namespace: namespace, Purpose: "to see which operators run",
		})
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot list the Leases of the operators: %w", err)
	}
	s.OperatorsKnown = true
	for i := range leases.Items {
		l := &leases.Items[i]
		o, ok := inspect.OperatorOf(l)
		if !ok || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		until := l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second + clockSkew)
		s.Operators = append(s.Operators, snapshot.Operator{
			Operator: o, Lease: types.NamespacedName{Namespace: l.Namespace, Name: l.Name}, Renewed: l.Spec.RenewTime.Time, Expired: s.Now.After(until), MissingFields: inspect.MissingFields(l),
		})
	}
	return nil
}
