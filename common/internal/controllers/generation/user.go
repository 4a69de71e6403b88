package generation

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
)

// The kinds of objects that use generators, and the kind of a part.
const externalSecretKind, pushSecretKind, secretKind = "ExternalSecret", "PushSecret", "Secret"

// user is an object that may use generators, with the facts that concern its part.
type user struct {
	client.Object
	kind       string
	generation int64
	// refresh is the refresh request.
	refresh string
	// generators are the generators of this module that it uses, each once.
	generators []v1alpha1.StoreRef
	// suspended, fixed, rotates and windows are as in input.
	suspended, fixed, rotates bool
	windows                   windows.Windows
	// inSync is true if the object is in sync at its present generation.
	inSync bool
	// delivered holds, by generator, the version of the values that the consumers hold.
	delivered map[handoff.Generator]string
	// named are all versions that the status still names, so that a consumer may hold them.
	named map[string]bool
	// target is the name of the Secret that the object wrote; empty if there is none.
	target string
	// parts are the parts that the status records.
	parts []v1alpha1.PartStatus
}

// request returns the request for the object.
func (u user) request() request { return request{u.kind, client.ObjectKeyFromObject(u.Object)} }

// userOf returns the facts about an object.
func userOf(o client.Object, routes *resolve.Routes) user {
	u := user{Object: o, generation: o.GetGeneration(), refresh: o.GetAnnotations()[v1alpha1.RefreshRequestAnnotation]}
	switch o := o.(type) {
	case *v1alpha1.ExternalSecret:
		u.kind = externalSecretKind
		u.ofExternalSecret(o, routes)
	case *v1alpha1.PushSecret:
		u.kind = pushSecretKind
		u.ofPushSecret(o, routes)
	}
	return u
}

func (u *user) ofExternalSecret(es *v1alpha1.ExternalSecret, routes *resolve.Routes) {
	for _, e := range es.Spec.DataFrom {
		if e.SourceRef != nil {
			u.add(routes, e.SourceRef.GeneratorRef)
		}
	}
	u.parts = es.Status.Parts
	u.inSync = inSync(es.Status.Conditions, es.Generation)
	if es.Spec.Target.CreationPolicy == v1alpha1.CreateNone {
		u.inSync = false // Nothing is written, so a Secret written before keeps its values.
	}
	u.named = map[string]bool{}
	for _, s := range es.Status.Sources {
		u.named[s.Version] = true
	}
	if es.Status.Binding != nil {
		u.target = es.Status.Binding.Name
	}
	if len(u.generators) == 0 {
		return
	}
	plan, err := render.NewPlan(es)
	u.suspended = es.Spec.Suspend || err != nil // An invalid spec makes no values either.
	u.fixed, u.windows = es.Spec.Target.Immutable, plan.Windows
	u.rotates = policy.Periodic(es.Spec.RefreshPolicy, plan.Interval)
	u.delivered = map[handoff.Generator]string{}
	for _, ref := range u.generators {
		// A module built before status.sources had kinds lists generators first.
		i := slices.IndexFunc(es.Status.Sources, func(s v1alpha1.SourceStatus) bool {
			return s.Key == render.GeneratorKey(ref) && s.Kind != v1alpha1.SourceRemoteSecret
		})
		if i >= 0 {
			u.delivered[generatorOf(ref)] = es.Status.Sources[i].Version
		}
	}
}

// inSync reports whether an object is in sync at its present generation. A suspended object is not, because it is not
// reconciled.
func inSync(conditions []metav1.Condition, generation int64) bool {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason != v1alpha1.ReasonSuspended && c.ObservedGeneration == generation
}

func (u *user) ofPushSecret(ps *v1alpha1.PushSecret, routes *resolve.Routes) {
	ref := ps.Spec.Selector.GeneratorRef
	u.add(routes, ref)
	u.inSync, u.parts, u.named = inSync(ps.Status.Conditions, ps.Generation), ps.Status.Parts, map[string]bool{}
	for _, s := range ps.Status.Stores {
		u.named[s.ObservedPart] = true
	}
	if len(u.generators) == 0 {
		return
	}
	plan, err := push.NewPlan(&ps.Spec)
	if err == nil {
		u.windows = plan.Windows
	}
	u.suspended, u.rotates = ps.Spec.Suspend || ps.Spec.DryRun || err != nil, true
	u.fixed = ps.Spec.UpdatePolicy == v1alpha1.UpdateIfNotExists // Existing values are never replaced.
	u.delivered = map[handoff.Generator]string{}
	for i, s := range ps.Status.Stores {
		if i > 0 && u.delivered[generatorOf(*ref)] != s.ObservedPart {
			s.ObservedPart = "" // The stores hold different versions.
		}
		u.delivered[generatorOf(*ref)] = s.ObservedPart
	}
}

func (u *user) add(routes *resolve.Routes, ref *v1alpha1.StoreRef) {
	if _, ok := routes.Serves(ref); ok && !slices.ContainsFunc(u.generators, func(g v1alpha1.StoreRef) bool { return generatorOf(g) == generatorOf(*ref) }) {
		u.generators = append(u.generators, *ref)
	}
}

// same reports whether the facts about an object are the same as before.
func (u user) same(was user) bool {
	u.Object, was.Object = nil, nil
	return reflect.DeepEqual(u, was)
}

// uses reports whether the object uses a generator; any of the Kind if name is empty.
func (u user) uses(routes *resolve.Routes, k resolve.Route, name string) bool {
	return slices.ContainsFunc(u.generators, func(ref v1alpha1.StoreRef) bool {
		route, ok := routes.Serves(&ref)
		return ok && route.GVK == k.GVK && (name == "" || ref.Name == name)
	})
}

// holds reports whether all consumers are known to hold the values of all entries.
func (u user) holds(rec handoff.Record) bool {
	if !u.inSync || u.GetUID() != rec.UID {
		return false
	}
	for _, e := range rec.Entries {
		used := slices.ContainsFunc(u.generators, func(ref v1alpha1.StoreRef) bool { return generatorOf(ref) == e.Generator })
		if used && u.delivered[e.Generator] != e.Version {
			return false
		}
	}
	return true
}

// concerns reports whether the object uses generators of a contributor, or did.
func (u user) concerns(c handoff.Contributor) bool {
	return len(u.generators) > 0 || slices.ContainsFunc(u.parts, c.Wrote)
}

func generatorOf(ref v1alpha1.StoreRef) handoff.Generator {
	return handoff.Generator{Kind: ref.Kind, Name: ref.Name}
}
