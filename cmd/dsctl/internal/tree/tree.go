// Package tree follows secrets from their stores to the workloads that read them. It makes no requests, and has
// no values of Secrets.
package tree

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/migrate/output"
)

// A Node is an object, together with the objects that depend on it.
type Node struct {
	snapshot.Ref

	// Ready is the status of the condition Ready; empty for Kinds of other projects.
	Ready  string `json:"ready,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Note is additional information, for example that the object does not exist.
	Note     string `json:"note,omitempty"`
	Children []Node `json:"children,omitempty"`
}

// A Workload is an object that reads Secrets or ConfigMaps in its namespace.
type Workload struct {
	snapshot.Ref

	// Secrets and ConfigMaps are the names of those that it reads.
	Secrets, ConfigMaps []string
	pod                 *corev1.PodSpec
}

// restarts reports whether a change of the target of an ExternalSecret restarts the workload.
func (w *Workload) restarts(es *v1alpha1.ExternalSecret) bool {
	return w.pod != nil && inspect.Restarts(es, v1alpha1.WorkloadRef{Kind: v1alpha1.WorkloadKind(w.Kind), Name: w.Name}, w.pod)
}

// names returns the names of the objects of a Kind that it reads.
func (w Workload) names(kind v1alpha1.TargetKind) []string {
	if kind == v1alpha1.TargetConfigMap {
		return w.ConfigMaps
	}
	return w.Secrets
}

// Input is the data for a tree.
type Input struct {
	*snapshot.Snapshot

	Workloads []Workload
	// Exists reports whether an object exists. A Kind is absent from it if its objects could not be read.
	Exists map[v1alpha1.TargetKind]func(namespace, name string) bool
}

// Build returns a tree for each store and generator, including those that do not exist. An object that uses
// several is in the tree of each.
func Build(in Input) []Node {
	var roots []Node
	at := map[snapshot.Ref]int{}
	root := func(n Node) int {
		i, known := at[n.Ref]
		if !known {
			i = len(roots)
			at[n.Ref], roots = i, append(roots, n)
		}
		return i
	}
	for i := range in.Objects {
		if o := &in.Objects[i]; o.IsSource() {
			root(node(o))
		}
	}
	for i := range in.Objects {
		o := &in.Objects[i]
		n := in.dependent(o)
		for _, u := range o.Uses() {
			sources := in.Selected(u, o.Meta.Namespace)
			for _, source := range sources {
				r := root(node(source))
				roots[r].Children = append(roots[r].Children, n)
			}
			if len(sources) == 0 && u.Selector == nil {
				r := root(in.absent(u, o.Meta.Namespace))
				roots[r].Children = append(roots[r].Children, n)
			}
		}
	}
	slices.SortStableFunc(roots, func(a, b Node) int { return a.Compare(b.Ref) })
	return roots
}

// Of returns the trees of an object: its own, or those that contain it, without its siblings.
func Of(roots []Node, match func(snapshot.Ref) bool) []Node {
	var out []Node
	for _, r := range roots {
		if match(r.Ref) {
			out = append(out, r)
			continue
		}
		if r.Children = Of(r.Children, match); len(r.Children) > 0 {
			out = append(out, r)
		}
	}
	return out
}

func node(o *snapshot.Object) Node {
	n := Node{Ref: o.Ref(), Ready: "Unknown"}
	if c := o.Ready(); c != nil {
		n.Ready, n.Reason = string(c.Status), c.Reason
	}
	return n
}

// absent returns the node for a store or generator that an object in namespace refers to, and that was not
// read.
func (in *Input) absent(u snapshot.Use, namespace string) Node {
	n := Node{Ref: snapshot.Ref{Kind: u.Kind, Namespace: namespace, Name: u.Name}, Note: "does not exist"}
	k := in.KindOf(&u.StoreRef)
	if k == nil {
		n.Note = "the cluster has no such Kind"
		return n
	}
	n.Group = k.Group
	if !k.Namespaced {
		n.Namespace = ""
	}
	if slices.ContainsFunc(in.Refused, func(r snapshot.Refusal) bool { return r.Resource == k.GroupResource() }) {
		n.Note = "you are not allowed to read it"
	}
	return n
}

// dependent returns the node for an object that uses stores, with its target and the workloads that read that.
func (in *Input) dependent(o *snapshot.Object) Node {
	n := node(o)
	switch {
	case o.ExternalSecret != nil && o.ExternalSecret.Spec.Target.CreationPolicy == v1alpha1.CreateNone:
		kind, _ := inspect.TargetOf(o.ExternalSecret)
		n.Note = "writes no " + string(kind)
	case o.ExternalSecret != nil:
		kind, name := inspect.TargetOf(o.ExternalSecret)
		n.Children = []Node{in.target(o.ExternalSecret, kind, o.Meta.Namespace, name)}
	case o.PushSecret != nil:
		n.Note = "pushes " + pushed(o.PushSecret)
	}
	return n
}

func pushed(ps *v1alpha1.PushSecret) string {
	switch from := ps.Spec.Selector; {
	case from.GeneratorRef != nil:
		return from.GeneratorRef.Kind + " " + from.GeneratorRef.Name
	case from.Secret != nil && from.Secret.Name != "":
		return "Secret " + from.Secret.Name
	}
	return "Secrets by their labels"
}

func (in *Input) target(es *v1alpha1.ExternalSecret, kind v1alpha1.TargetKind, namespace, name string) Node {
	n := Node{Ref: snapshot.Ref{Kind: string(kind), Namespace: namespace, Name: name}}
	if exists := in.Exists[kind]; exists != nil && !exists(namespace, name) {
		n.Note = "does not exist"
	}
	for _, w := range in.Workloads {
		if w.Namespace != namespace {
			continue
		}
		child := Node{Ref: w.Ref}
		restarts := w.restarts(es)
		if restarts {
			child.Note = "restarts when the " + string(kind) + " changes"
		}
		if restarts || slices.Contains(w.names(kind), name) {
			n.Children = append(n.Children, child)
		}
	}
	return n
}

// Text returns the trees, with a line for each object.
func Text(roots []Node) output.Lines {
	var b output.Lines
	for i := range roots {
		roots[i].write(&b, "", "")
	}
	return b
}

func (n *Node) write(b *output.Lines, first, rest string) {
	text := first + n.String()
	if n.Ready != "" {
		text += strings.TrimSuffix("  Ready="+n.Ready+" "+n.Reason, " ")
	}
	if n.Note != "" {
		text += "  (" + n.Note + ")"
	}
	b.Add("%s", text)
	for i := range n.Children {
		if i == len(n.Children)-1 {
			n.Children[i].write(b, rest+"└── ", rest+"    ")
			continue
		}
		n.Children[i].write(b, rest+"├── ", rest+"│   ")
	}
}
