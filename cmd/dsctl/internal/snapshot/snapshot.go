// Package snapshot holds the objects that dsctl has read from a cluster. Findings and tables are derived from
// it without I/O.
//
// All modules use the same status conditions, so Kinds of all modules are read in the same way. dsctl imports
// no module.
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

// These are the Kinds of common.
const (
	ExternalSecret        = "ExternalSecret"
	PushSecret            = "PushSecret"
	ClusterExternalSecret = "ClusterExternalSecret"
	ClusterPushSecret     = "ClusterPushSecret"
)

// A Snapshot holds what dsctl has read from a namespace, or from the cluster. It is not for concurrent use.
// Objects must not change after its first use.
type Snapshot struct {
	// Now is the time of the read.
	Now time.Time
	// Program is the name with which the user calls dsctl, for example "kubectl direct-secrets".
	Program string
	// Namespace is empty for all namespaces.
	Namespace string
	// Kinds are those that the cluster has.
	Kinds []Kind
	// Objects are those of these Kinds, sorted by Kind, namespace and name.
	Objects []Object
	// Operators are those that have reported. OperatorsKnown is false if they could not be read.
	Operators      []Operator
	OperatorsKnown bool
	// Refused are the requests that the user is not allowed to make.
	Refused []Refusal

	// byName maps names to stores and generators. It is built at its first use.
	byName map[string][]*Object
}

// sources returns the stores and generators with a name.
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

// A Kind is a Kind of one of the groups of direct-secrets.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural name.
	Resource   string
	Singular   string
	ShortNames []string
	Namespaced bool
}

// IsSource reports whether it is a Kind of stores or generators.
func (k Kind) IsSource() bool { return k.Group != v1alpha1.Group }

// Named reports whether a name that the user gives means the Kind, by kubectl's rules. A group can follow after
// a dot.
func (k Kind) Named(name string) bool {
	name, group, ofGroup := strings.Cut(strings.ToLower(name), ".")
	if ofGroup && group != k.Group {
		return false
	}
	return name == strings.ToLower(k.Kind) || name == k.Resource || name == k.Singular || slices.Contains(k.ShortNames, name)
}

// GroupResource returns the name for kubectl, for example externalsecrets.direct-secrets.io.
func (k Kind) GroupResource() string { return k.Resource + "." + k.Group }

// A Refusal is a request that the user is not allowed to make.
type Refusal struct {
	Verb      string `json:"verb"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	// Purpose is what the request is for, as the end of a sentence, for example "to list the stores".
	Purpose string `json:"purpose"`
}

// An Operator is an operator that has reported with a Lease.
type Operator struct {
	inspect.Operator
	// Lease is the Lease's namespace and name.
	Lease types.NamespacedName
	// Renewed is the time of the Lease's last renewal. Expired is set if the Lease is too old to count.
	Renewed time.Time
	Expired bool
	// MissingFields are the fields that the CRDs do not have, although the operator knows them; empty for none.
	MissingFields string
}

// Serves reports whether the operator has a Kind and serves a namespace, which is empty for cluster-scoped
// objects. An operator with selected namespaces reports itself that it does not serve cluster Kinds.
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

// String returns Kind, namespace and name in the form for messages.
func (r Ref) String() string {
	name := strings.Trim(r.Namespace+"/"+r.Name, "/")
	return strings.TrimSpace(r.Kind + " " + name)
}

// Compare orders by Kind, namespace and name.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(cmp.Compare(r.Kind, other.Kind), cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Name, other.Name), cmp.Compare(r.Group, other.Group))
}

// An Object is an object of any Kind of direct-secrets.
type Object struct {
	Kind   Kind
	Meta   metav1.ObjectMeta
	Status Status
	// Suspended is spec.suspend.
	Suspended bool
	// Class is spec.controller of a store or generator.
	Class string
	// Conditions are spec.conditions of a cluster store or generator.
	Conditions []v1alpha1.StoreCondition
	// ExternalSecret, PushSecret and FanOut are set for these Kinds.
	ExternalSecret *v1alpha1.ExternalSecret
	PushSecret     *v1alpha1.PushSecret
	FanOut         *v1alpha1.FanOutStatus
	uses           []Use
}

// Status holds the status fields that all Kinds share.
type Status struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
}

// A Use is a reference to a store or generator. Group is empty if the reference has none.
type Use struct {
	v1alpha1.StoreRef
	// Selector is set instead of a name if stores are selected by labels.
	Selector *metav1.LabelSelector
}

// Ref returns the reference to the object.
func (o *Object) Ref() Ref {
	return Ref{Group: o.Kind.Group, Kind: o.Kind.Kind, Namespace: o.Meta.Namespace, Name: o.Meta.Name}
}

// Argument returns dsctl's arguments for the object.
func (o *Object) Argument() string {
	arg := strings.ToLower(o.Kind.Kind) + "/" + o.Meta.Name
	if o.Meta.Namespace != "" {
		arg += " -n " + o.Meta.Namespace
	}
	return arg
}

// Ready returns the condition Ready, or nil.
func (o *Object) Ready() *metav1.Condition {
	return meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady)
}

// IsSource reports whether the object is a store or a generator.
func (o *Object) IsSource() bool { return o.Kind.IsSource() }

// Uses returns the stores and generators that the object refers to, without duplicates.
func (o *Object) Uses() []Use { return o.uses }

// Find returns the store or generator that an object in namespace refers to, or nil.
func (s *Snapshot) Find(ref *v1alpha1.StoreRef, namespace string) *Object {
	for _, o := range s.sources(ref.Name) {
		if ref.Matches(o.Kind.GroupKind()) && (!o.Kind.Namespaced || o.Meta.Namespace == namespace) {
			return o
		}
	}
	return nil
}

// KindOf returns the Kind of a reference, or nil if the cluster does not have it.
func (s *Snapshot) KindOf(ref *v1alpha1.StoreRef) *Kind {
	for i := range s.Kinds {
		if s.Kinds[i].Group != v1alpha1.Group && ref.Matches(s.Kinds[i].GroupKind()) {
			return &s.Kinds[i]
		}
	}
	return nil
}

// Running returns the running operators that serve a Kind in a namespace.
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
		return nil // The operator reports the error.
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
