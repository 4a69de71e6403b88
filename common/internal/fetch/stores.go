// Package fetch reads the remote secrets of an ExternalSecret: it decides which stores can be asked, and asks them.
package fetch

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Stores are the stores of a plan, resolved for one object.
type Stores struct {
	Plan render.Plan
	// namespace is that of the object.
	namespace string
	all       map[v1alpha1.StoreRef]store
}

// store is one of the Stores.
type store struct {
	resolve.Handle
	// refusal is why the store cannot be used now; nil if it can.
	refusal *resolve.Refusal
	// foreign is true if another operator reads the store.
	foreign bool
}

// Resolve looks up the stores of an object's plan. mine is true if this operator claims the object. The error is
// NotFound if the cache does not have the namespace yet.
func Resolve(ctx context.Context, r *referrers.Referrers, es *v1alpha1.ExternalSecret, plan render.Plan, mine bool) (Stores, error) {
	s := Stores{Plan: plan, namespace: es.Namespace, all: map[v1alpha1.StoreRef]store{}}
	generators := plan.Generators()
	for _, ref := range plan.Stores() {
		use := resolve.Read
		if slices.Contains(generators, ref) {
			use = resolve.Generate
		}
		h, refusal, err := r.Resolve(ctx, ref, es.Namespace, use)
		if err != nil {
			return Stores{}, err
		}
		s.all[ref] = store{h, refusal, r.Elsewhere(es, refusal, mine)}
	}
	return s, nil
}

// Elsewhere reports whether the values of a source are stored in a part, because a generator makes them or another
// operator reads them.
func (s Stores) Elsewhere(src render.Source) bool { return src.Generator || s.all[src.Store].foreign }

// OtherClass returns the class of a store of this module that an operator of another class reads; false for any other
// store.
func (s Stores) OtherClass(ref v1alpha1.StoreRef) (string, bool) {
	refusal := s.all[ref].refusal
	if refusal == nil || refusal.Why != resolve.OtherClass {
		return "", false
	}
	return refusal.Class, true
}

// Own removes from the plan all sources that this operator does not read, and those of its generators: a generated
// value has its own part.
func (s Stores) Own() Stores {
	s.Plan.Sources = slices.DeleteFunc(slices.Clone(s.Plan.Sources), func(src render.Source) bool {
		st := s.all[src.Store]
		return st.foreign || src.Generator && st.Generator
	})
	return s
}

// served reports whether this module serves the Kind.
func (s store) served() bool { return s.GVK.Kind != "" }

// Labels returns the labels of the target Secret that name the stores of this module from which it is read.
func (s Stores) Labels() []string {
	var labels []string
	for _, ref := range s.Plan.Stores() {
		if st := s.all[ref]; st.served() && !st.Generator {
			labels = append(labels, target.StoreLabel(st.GVK.Group, st.GVK.Kind, st.Key.Namespace, st.Key.Name))
		}
	}
	return labels
}

// Suspect calls f with each store that this operator has read.
func (s Stores) Suspect(f func(k provider.Kind, s types.NamespacedName)) {
	for _, ref := range s.Plan.Stores() {
		if st := s.all[ref]; st.served() && !st.foreign {
			f(st.Kind, st.Key)
		}
	}
}

// Admit returns a verdict if a cluster store of the plan does not admit this namespace, or these keys in it;
// otherwise nil.
func (s Stores) Admit() *status.Verdict {
	for _, ref := range s.Plan.Stores() {
		st := s.all[ref]
		if st.foreign {
			continue
		}
		if st.refusal != nil && st.refusal.Why == resolve.NotAdmitted {
			return &kit.Refused(ref, st.Handle, st.refusal).Verdict
		}
		for _, src := range s.Plan.Sources {
			if st.Grant == nil || src.Store != ref || src.Generator {
				continue
			}
			if err := st.Grant.Reads(src.Read); err != nil {
				v := status.Stalled(v1alpha1.ReasonForbidden, fmt.Sprintf("%s %q: %s", ref.Kind, ref.Name, err))
				return &v
			}
		}
	}
	return nil
}

// within returns an error instead of the values of a find with a key that the namespace is not allowed to read. The
// plan's path was checked before, but a provider might interpret it differently.
func (s Stores) within(values render.Values) render.Values {
	return func(src render.Source) provider.Answer {
		a := values(src)
		g := s.all[src.Store].Grant
		if g == nil {
			return a
		}
		for _, v := range a.Found {
			if g.Reads(provider.Read{Ref: provider.Ref{Key: v.Key}}) != nil {
				return provider.Answer{Err: provider.NewError(provider.Invalid, "find: the provider returned keys that the store does not allow in this namespace; set find.path to a whole folder")}
			}
		}
		return a
	}
}
