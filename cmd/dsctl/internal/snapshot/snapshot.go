// Package snapshot holds what dsctl has read of a cluster. Decisions and tables are made from it without I/O.
//
// Kinds of all modules are read alike, since they share the status conditions. dsctl imports no module.
package snapshot

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// The Kinds of common.
const (
	ExternalSecret        = "ExternalSecret"
	PushSecret            = "PushSecret"
	ClusterExternalSecret = "ClusterExternalSecret"
	ClusterPushSecret     = "ClusterPushSecret"
)

// A Snapshot is what dsctl has read of a namespace, or of the cluster. It is not for concurrent use, and Objects do not change
// once it is used.
type Snapshot struct {
	// Now is when it was read.
	Now time.Time
	// Program is how the user calls dsctl, for example "kubectl direct-secrets".
	Program string
	// Namespace is empty for all.
	Namespace string
	// Kinds that the cluster has.
	Kinds []Kind
	// Objects of these Kinds, in the order of Kind, namespace and name.
	Objects []Object
	// Operators that have reported, and whether they could be read.
	Operators      []Operator
	OperatorsKnown bool
	// Refused are requests that the API server does not allow the user.
	Refused []Refusal

	// byName are the stores and generators among the objects, made when they are first looked for.
	byName map[string][]*Object
}

// sources returns the stores and generators of a name.
func (s *Snapshot) sources(name string) []*Object {
	if s.byName == nil {
		s.byName = map[string][]*Object{}
		for i := range s.Objects {
			if o := &s.Objects[i]; o.IsSource() {
				s.byName[o.Meta.Name] = append(s.byName[o.Meta.Name], o)
			}
		}
	}
	return s.byName[name]
}

// A Kind is one of the groups of direct-secrets.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural.
	Resource   string
	Singular   string
	ShortNames []string
	Namespaced bool
}

// IsSource reports whether it is a Kind of stores or generators.
func (k Kind) IsSource() bool { return k.Group != v1alpha1.Group }

// Named reports whether a user means the Kind by a name, as kubectl would take it; a group may follow after a dot.
func (k Kind) Named(name string) bool {
	name, group, ofGroup := strings.Cut(strings.ToLower(name), ".")
	if ofGroup && group != k.Group {
		return false
	}
	return name == strings.ToLower(k.Kind) || name == k.Resource || name == k.Singular || slices.Contains(k.ShortNames, name)
}

// GroupResource returns the name that kubectl takes, for example externalsecrets.direct-secrets.io.
func (k Kind) GroupResource() string { return k.Resource + "." + k.Group }

// A Refusal is a request that the API server does not allow the user.
type Refusal struct {
	Verb      string `json:"verb"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	// Purpose is what the request is for, as the rest of a sentence: "to list the stores".
	Purpose string `json:"purpose"`
}

// An Operator is one that has reported by a Lease.
type Operator struct {
	inspect.Operator
	// Lease is its name, with its namespace.
	Lease types.NamespacedName
	// Renewed is when the Lease was last renewed, and Expired whether it counts no longer.
	Renewed time.Time
	Expired bool
}

// Serves reports whether the operator knows a Kind and serves a namespace; empty for an object of the cluster. An operator
// of chosen namespaces reports by itself that it refuses cluster Kinds.
func (o *Operator) Serves(gk schema.GroupKind, namespace string) bool {
	for _, k := range o.Kinds {
		if k.Group == gk.Group && k.Kind == gk.Kind {
			return len(o.Namespaces) == 0 || slices.Contains(o.Namespaces, namespace)
		}
	}
	return false
}

// A Ref names an object.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// String returns Kind, namespace and name, as messages have it.
func (r Ref) String() string {
	name := strings.Trim(r.Namespace+"/"+r.Name, "/")
	return strings.TrimSpace(r.Kind + " " + name)
}

// Compare orders by Kind, namespace and name.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(cmp.Compare(r.Kind, other.Kind), cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Name, other.Name), cmp.Compare(r.Group, other.Group))
}

// An Object is of any Kind of direct-secrets.
type Object struct {
	Kind   Kind
	Meta   metav1.ObjectMeta
	Status Status
	// Suspended is spec.suspend.
	Suspended bool
	// Class is spec.controller of a store or generator.
	Class string
	// ExternalSecret, PushSecret and FanOut are set for these Kinds.
	ExternalSecret *v1alpha1.ExternalSecret
	PushSecret     *v1alpha1.PushSecret
	FanOut         *v1alpha1.FanOutStatus
	uses           []Use
}

// Status is what the statuses of all Kinds share.
type Status struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
}

// A Use is a store or generator that an object refers to. Group is empty where the reference names none.
type Use struct {
	v1alpha1.StoreRef
	// Selector is set instead of a name where stores are chosen by labels.
	Selector *metav1.LabelSelector
}

// Ref names the object.
func (o *Object) Ref() Ref {
	return Ref{Group: o.Kind.Group, Kind: o.Kind.Kind, Namespace: o.Meta.Namespace, Name: o.Meta.Name}
}

// Argument returns the arguments by which dsctl knows the object.
func (o *Object) Argument() string {
	arg := strings.ToLower(o.Kind.Kind) + "/" + o.Meta.Name
	if o.Meta.Namespace != "" {
		arg += " -n " + o.Meta.Namespace
	}
	return arg
}

// Ready returns the condition Ready; nil if there is none.
func (o *Object) Ready() *metav1.Condition {
	return meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady)
}

// IsSource reports whether the object is a store or a generator.
func (o *Object) IsSource() bool { return o.Kind.IsSource() }

// Uses returns the stores and generators that the object refers to, without duplicates.
func (o *Object) Uses() []Use { return o.uses }

// Find returns the store or generator that a reference of an object in namespace names; nil if there is none.
func (s *Snapshot) Find(ref *v1alpha1.StoreRef, namespace string) *Object {
	for _, o := range s.sources(ref.Name) {
		if ref.Matches(o.Kind.GroupKind()) && (!o.Kind.Namespaced || o.Meta.Namespace == namespace) {
			return o
		}
	}
	return nil
}

// KindOf returns the Kind that a reference names; nil if the cluster has none.
func (s *Snapshot) KindOf(ref *v1alpha1.StoreRef) *Kind {
	for i := range s.Kinds {
		if s.Kinds[i].Group != v1alpha1.Group && ref.Matches(s.Kinds[i].GroupKind()) {
			return &s.Kinds[i]
		}
	}
	return nil
}

// Running returns the operators that run and serve a Kind in a namespace.
func (s *Snapshot) Running(gk schema.GroupKind, namespace string) []Operator {
	var all []Operator
	for _, o := range s.Operators {
		if !o.Expired && o.Serves(gk, namespace) {
			all = append(all, o)
		}
	}
	return all
}

// Selected returns the stores that a use names or selects, for an object in namespace.
func (s *Snapshot) Selected(u Use, namespace string) []*Object {
	if u.Selector == nil {
		if o := s.Find(&u.StoreRef, namespace); o != nil {
			return []*Object{o}
		}
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(u.Selector)
	if err != nil {
		return nil // The operator reports it.
	}
	var all []*Object
	for i := range s.Objects {
		o := &s.Objects[i]
		named := v1alpha1.StoreRef{APIVersion: u.APIVersion, Kind: u.Kind}
		if o.IsSource() && named.Matches(o.Kind.GroupKind()) && (!o.Kind.Namespaced || o.Meta.Namespace == namespace) && selector.Matches(labels.Set(o.Meta.Labels)) {
			all = append(all, o)
		}
	}
	return all
}
