// Package fetch reads what an ExternalSecret wants of stores: which stores may be asked, what has already been asked, and
// when to ask again.
package fetch

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Stores are those of a plan, as they were resolved for one object.
type Stores struct {
	Plan render.Plan
	all  map[v1alpha1.StoreRef]store
}

// store is one of them.
type store struct {
	resolve.Handle
	// refusal says why it may not be used now; nil if it may.
	refusal *resolve.Refusal
	// foreign is true if another operator reads it.
	foreign bool
}

// Resolve looks up the stores of an object's plan, which this operator claims if mine is true. The error is NotFound
// where the namespace is too new for the cache.
func Resolve(ctx context.Context, r *referrers.Referrers, es *v1alpha1.ExternalSecret, plan render.Plan, mine bool) (Stores, error) {
	s := Stores{Plan: plan, all: map[v1alpha1.StoreRef]store{}}
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

// Elsewhere reports whether the values of a source lie in a part: they are generated, or another operator reads them.
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

// Own leaves of the plan only what this operator reads. What is generated has a part of its own.
func (s Stores) Own() Stores {
	s.Plan.Sources = slices.DeleteFunc(slices.Clone(s.Plan.Sources), func(src render.Source) bool {
		st := s.all[src.Store]
		return st.foreign || src.Generator && st.Generator
	})
	return s
}

// served reports whether this module serves the Kind.
func (s store) served() bool { return s.GVK.Kind != "" }

// Labels returns those by which a Secret shows the stores of this module that it is read from.
func (s Stores) Labels() []string {
	var labels []string
	for _, ref := range s.Plan.Stores() {
		if st := s.all[ref]; st.served() && !st.Generator {
			labels = append(labels, target.StoreLabel(st.GVK.Group, st.GVK.Kind, st.Key.Namespace, st.Key.Name))
		}
	}
	return labels
}

// Suspect calls f with each store that was read.
func (s Stores) Suspect(f func(k provider.Kind, s types.NamespacedName)) {
	for _, ref := range s.Plan.Stores() {
		if st := s.all[ref]; st.served() && !st.foreign {
			f(st.Kind, st.Key)
		}
	}
}

// Admit returns the verdict that a cluster store of the plan does not serve this namespace, or not for these keys; nil
// if all of them do.
func (s Stores) Admit() *status.Verdict {
	for _, ref := range s.Plan.Stores() {
		st := s.all[ref]
		if st.foreign {
			continue
		}
		if st.refusal != nil && st.refusal.Why == resolve.NotAdmitted {
			return st.refused(ref)
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

// loaders returns the Loader of every store that this operator reads, or the verdict that one of them may not be used
// now.
func (s Stores) loaders(pool *dispatch.Pool) (map[v1alpha1.StoreRef]*dispatch.Loader, *status.Verdict) {
	loaders := map[v1alpha1.StoreRef]*dispatch.Loader{}
	for _, ref := range s.Plan.Stores() {
		st := s.all[ref]
		switch o, ok := st.Store.(provider.StoreObject); {
		case st.foreign:
		case st.refusal != nil:
			return nil, st.refused(ref)
		case ok: // What a generator makes lies in a part.
			loaders[ref] = pool.Loader(st.Kind, o, st.Beside)
		}
	}
	return loaders, nil
}

// refused is the verdict on an object that may not use a store now.
func (s store) refused(ref v1alpha1.StoreRef) *status.Verdict {
	name := ref.Name
	if s.refusal.Why == resolve.Absent {
		name = s.Key.String()
	}
	message := fmt.Sprintf("%s %q %s", ref.Kind, name, s.refusal.Message)
	v := status.Failed(v1alpha1.ReasonStoreNotReady, message)
	switch s.refusal.Why { //nolint:exhaustive // The others pass by themselves.
	case resolve.WrongKind:
		v = status.Stalled(v1alpha1.ReasonInvalidSpec, message)
	case resolve.ClusterKind, resolve.NotAdmitted:
		v = status.Stalled(v1alpha1.ReasonForbidden, message)
	case resolve.Absent:
		v = status.Failed(v1alpha1.ReasonStoreNotFound, message)
	}
	return &v
}

// within returns values of which a search yields only keys that the namespace may read. That the path of
// the search is allowed was asked before; this does not rely on what the provider takes a path for.
func (s Stores) within(values render.Values) render.Values {
	return func(src render.Source) provider.Answer {
		a := values(src)
		g := s.all[src.Store].Grant
		if g == nil {
			return a
		}
		for _, v := range a.Found {
			if g.Reads(provider.Read{Ref: provider.Ref{Key: v.Key}}) != nil {
				return provider.Answer{Err: provider.NewError(provider.Invalid, "find: the provider has keys under this path that the store does not allow this namespace; set find.path to a whole folder")}
			}
		}
		return a
	}
}
