// Package simulation explores interleavings of operators. It runs the real code of controllers against an API server
// and a provider in memory. It executes one request at a time, and tries the possible orders. Only tests import it.
package simulation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key identifies an object of an APIServer.
type Key struct {
	Kind string
	types.NamespacedName
}

// String returns a short text, because it is part of every line of a trace.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + "/" + k.Name
	}
	return k.Kind + "/" + k.Namespace + "/" + k.Name
}

// Object is a stored object of an APIServer. It is never changed, only replaced.
type Object = unstructured.Unstructured

// An APIServer stores objects like kube-apiserver, with resourceVersions, uids, generations, managedFields, finalizers,
// preconditions and a status subresource. It has no admission and almost no validation. A resourceVersion counts the
// writes of one name, so that the order of writes to different objects makes no difference. TestScripts compares it
// with a real API server. It is not safe for concurrent use.
type APIServer struct {
	kinds   map[schema.GroupVersionKind]*kind
	scheme  *runtime.Scheme
	objects map[Key]*Object
	digests map[Key]uint64
	// versions counts the writes, and births the objects created so far, by name.
	versions, births map[Key]int
	// typed caches objects that were converted to Go types.
	mu    sync.Mutex
	typed map[copied]client.Object
}

// NewAPIServer returns an empty server for the Kinds in kinds, with the Go types of scheme.
func NewAPIServer(scheme *runtime.Scheme, kinds *Kinds) *APIServer {
	return &APIServer{
		kinds: kinds.byKind, scheme: scheme,
		objects: map[Key]*Object{}, digests: map[Key]uint64{}, versions: map[Key]int{}, births: map[Key]int{},
		typed: map[copied]client.Object{},
	}
}

// Objects returns the stored objects. They must not be changed.
func (s *APIServer) Objects() map[Key]*Object { return maps.Clone(s.objects) }

func (s *APIServer) kindOf(gvk schema.GroupVersionKind) (*kind, error) {
	k := s.kinds[gvk]
	if k == nil {
		return nil, fmt.Errorf("the simulated API server does not serve %s", gvk)
	}
	return k, nil
}

// Get returns an object, which must not be changed.
func (s *APIServer) Get(gvk schema.GroupVersionKind, key client.ObjectKey) (*Object, error) {
	k, err := s.kindOf(gvk)
	if err != nil {
		return nil, err
	}
	o := s.objects[Key{gvk.Kind, key}]
	if o == nil {
		return nil, kerrors.NewNotFound(k.resource, key.Name)
	}
	return o, nil
}

// List returns the objects of a Kind, sorted by namespace and name.
func (s *APIServer) List(gvk schema.GroupVersionKind) ([]*Object, error) {
	_, err := s.kindOf(gvk)
	return listOf(s.objects, gvk.Kind), err
}

// listOf returns the objects of a Kind, sorted by namespace and name.
func listOf(objects map[Key]*Object, kind string) []*Object {
	var all []*Object
	for key, o := range objects {
		if key.Kind == kind {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *Object) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return all
}

// Create stores a new object.
func (s *APIServer) Create(o *Object, manager string) (*Object, error) {
	k, err := s.kindOf(o.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	key := Key{o.GetKind(), client.ObjectKeyFromObject(o)}
	if o.GetResourceVersion() != "" {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	o = o.DeepCopy()
	k.prepare(o)
	o = k.main.UpdateNoErrors(k.empty(key), o, manager).(*Object)
	if s.objects[key] != nil {
		return nil, kerrors.NewAlreadyExists(k.resource, key.Name)
	}
	return s.insert(key, k, o), nil
}

// insert stores a new object that already has managedFields.
func (s *APIServer) insert(key Key, k *kind, o *Object) *Object {
	s.births[key]++
	o.SetUID(types.UID(fmt.Sprintf("%s-%s-%s-%d", strings.ToLower(key.Kind), key.Namespace, key.Name, s.births[key])))
	o.SetCreationTimestamp(metav1.Time{Time: time.Now().Truncate(time.Second)})
	if k.status != nil {
		o.SetGeneration(1)
	}
	k.complement(o)
	return s.store(key, o)
}

func (s *APIServer) store(key Key, o *Object) *Object {
	s.versions[key]++
	o.SetResourceVersion(strconv.Itoa(s.versions[key]))
	s.objects[key], s.digests[key] = o, digest(o.Object)
	return o
}

// digestOf returns a hash of an object.
func (s *APIServer) digestOf(o *Object) uint64 {
	if key := (Key{o.GetKind(), client.ObjectKeyFromObject(o)}); s.objects[key] == o {
		return s.digests[key]
	}
	return digest(o.Object)
}

func (s *APIServer) remove(key Key) {
	s.versions[key]++
	delete(s.objects, key)
	delete(s.digests, key)
}

// Update replaces an object.
func (s *APIServer) Update(o *Object, subresource, manager string) (*Object, error) {
	return s.change(o.GroupVersionKind(), client.ObjectKeyFromObject(o), subresource, func(*kind, *Object) (*Object, error) {
		return o.DeepCopy(), nil
	}, manager)
}

// change replaces a stored object by the result of f, unless they are equal.
func (s *APIServer) change(gvk schema.GroupVersionKind, name client.ObjectKey, subresource string, f func(k *kind, was *Object) (*Object, error), manager string) (*Object, error) {
	k, err := s.kindOf(gvk)
	if err != nil {
		return nil, err
	}
	was := s.objects[Key{gvk.Kind, name}]
	if was == nil {
		return nil, kerrors.NewNotFound(k.resource, name.Name)
	}
	is, err := f(k, was)
	if err != nil {
		return nil, err
	}
	if err := guarded(k, was, is, subresource); err != nil {
		return nil, err
	}
	k.restrict(was, is, subresource)
	is = k.manager(subresource).UpdateNoErrors(was, is, manager).(*Object)
	return s.replace(k, was, is)
}

// guarded returns an error for an object with an outdated resourceVersion or another uid. The status subresource
// ignores the uid.
func guarded(k *kind, was, is *Object, subresource string) error {
	if v := is.GetResourceVersion(); v != "" && v != was.GetResourceVersion() {
		return kerrors.NewConflict(k.resource, was.GetName(), errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if uid := is.GetUID(); uid != "" && uid != was.GetUID() && subresource == "" {
		return kerrors.NewInvalid(k.gvk.GroupKind(), was.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable")})
	}
	return nil
}

// replace stores an object in place of another one.
func (s *APIServer) replace(k *kind, was, is *Object) (*Object, error) {
	key := Key{was.GetKind(), client.ObjectKeyFromObject(was)}
	k.complete(was, is)
	k.complement(is)
	if err := k.validate(was, is); err != nil {
		return nil, err
	}
	if s.unchanged(key, was, is) {
		return was, nil
	}
	if is.GetDeletionTimestamp() != nil && len(is.GetFinalizers()) == 0 {
		s.remove(key)
		return is, nil
	}
	return s.store(key, is), nil
}

// unchanged reports whether an object is equal to the stored one. As at a real API server, later times in managedFields
// are not a change by themselves.
func (s *APIServer) unchanged(key Key, was, is *Object) bool {
	if digest(is.Object) == s.digests[key] {
		return true
	}
	entries, before := is.GetManagedFields(), was.GetManagedFields()
	if len(entries) != len(before) || slices.EqualFunc(entries, before, func(a, b metav1.ManagedFieldsEntry) bool { return a.Time.Equal(b.Time) }) {
		return false
	}
	for i := range entries {
		entries[i].Time = before[i].Time
	}
	same := &Object{Object: maps.Clone(is.Object)}
	same.Object["metadata"] = maps.Clone(is.Object["metadata"].(map[string]any))
	same.SetManagedFields(entries)
	return digest(same.Object) == s.digests[key]
}

// Preconditions are the preconditions of a deletion; empty for none.
type Preconditions struct {
	UID             types.UID
	ResourceVersion string
}

// Delete removes an object, or marks it as deleted while it has finalizers.
func (s *APIServer) Delete(gvk schema.GroupVersionKind, name client.ObjectKey, p Preconditions) error {
	k, err := s.kindOf(gvk)
	if err != nil {
		return err
	}
	key := Key{gvk.Kind, name}
	was := s.objects[key]
	switch {
	case was == nil:
		return kerrors.NewNotFound(k.resource, name.Name)
	case p.UID != "" && p.UID != was.GetUID(), p.ResourceVersion != "" && p.ResourceVersion != was.GetResourceVersion():
		return kerrors.NewConflict(k.resource, name.Name, fmt.Errorf("precondition failed: %v does not match %s %s", p, was.GetUID(), was.GetResourceVersion()))
	case len(was.GetFinalizers()) == 0:
		s.remove(key)
		return nil
	case was.GetDeletionTimestamp() != nil:
		return nil
	}
	is := was.DeepCopy()
	is.SetDeletionTimestamp(&metav1.Time{Time: time.Now().Truncate(time.Second)})
	is.SetDeletionGracePeriodSeconds(new(int64))
	if g := is.GetGeneration(); g > 0 {
		is.SetGeneration(g + 1)
	}
	s.store(key, is)
	return nil
}

// Orphans returns the objects that the garbage collector would delete now, because none of their owners exists.
func (s *APIServer) Orphans() []Key {
	var keys []Key
	for key, o := range s.objects {
		owners := o.GetOwnerReferences()
		ownerExists := slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool {
			owner := s.objects[Key{r.Kind, types.NamespacedName{Namespace: key.Namespace, Name: r.Name}}]
			if owner == nil {
				owner = s.objects[Key{r.Kind, types.NamespacedName{Name: r.Name}}]
			}
			return owner != nil && owner.GetUID() == r.UID
		})
		if len(owners) > 0 && !ownerExists && o.GetDeletionTimestamp() == nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// Collect deletes an object as the garbage collector does.
func (s *APIServer) Collect(key Key) {
	o := s.objects[key]
	_ = s.Delete(o.GroupVersionKind(), key.NamespacedName, Preconditions{UID: o.GetUID()})
}
