package externalsecret

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/fetch"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// subject is one ExternalSecret in one pass: what gather has loaded, and what decide makes of it.
type subject struct {
	*identity
	es  *v1alpha1.ExternalSecret
	obj *object
	// seen is the status to go by, of a resourceVersion; next is the one to be written.
	seen, next *v1alpha1.ExternalSecretStatus
	version    string
	plan       render.Plan
	stores     fetch.Stores
	// handed is what is known of the values that lie in parts.
	handed handed
	census *census
	stance stance
}

// identity is what of this operator shows in what it writes.
type identity struct {
	// module is the API group of the module.
	module string
	// cleanup is the policy of objects that leave theirs unset.
	cleanup v1alpha1.CleanupPolicy
}

// stance is how an object stands to its provider and its target.
type stance struct {
	// why says why the provider is to be read.
	why policy.Why
	// basis is that of the target as it is.
	basis string
	// yields is true while other ExternalSecrets still hold keys that this one wants.
	yields bool
	// lost is true if the target is not as this object left it.
	lost bool
	// written is true once the target was written.
	written bool
}

func (s *subject) key() types.NamespacedName { return client.ObjectKeyFromObject(s.es) }

func (s *subject) targetKey() types.NamespacedName {
	return types.NamespacedName{Namespace: s.es.Namespace, Name: s.plan.Target}
}

// basis says what the target holds of this object: by the hash in its mark, and where there is none, by what the status says of the
// last refresh. Who finds another basis than before has been overtaken.
func (s *subject) basis(t policy.Target) string {
	if t.Mark.Hash != "" {
		return t.Mark.Hash
	}
	return last(s.seen)
}

// last names the last refresh that a status tells of; empty for none.
func last(st *v1alpha1.ExternalSecretStatus) string {
	if st.RefreshTime == nil {
		return ""
	}
	return fmt.Sprint(st.RefreshTime.Unix(), st.Sources)
}

// ready is the Ready condition to go by; an empty one if there is none.
func (s *subject) ready() metav1.Condition {
	if c := meta.FindStatusCondition(s.seen.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// shown reports whether the status says a verdict already.
func (s *subject) shown(v verdict) bool {
	c := s.ready()
	return c.Status == v.Status && c.Reason == v.Reason && c.Message == v.Text() && c.ObservedGeneration == s.es.Generation
}

// complete reports whether an object is in step for good: it was made once, and asks for nothing more.
func (s *subject) complete() bool {
	return s.ready().Status == metav1.ConditionTrue && s.seen.RefreshTime != nil &&
		policy.Once(s.es.Spec.RefreshPolicy, s.plan.Interval)
}

// standing is the verdict on an object for which there is nothing to do.
func (s *subject) standing() verdict {
	c := s.ready()
	if c.Type != "" && (s.stance.yields || (c.Status == metav1.ConditionTrue && c.Reason != v1alpha1.ReasonSuspended)) {
		return verdict{Status: c.Status, Reason: c.Reason, Message: c.Message, Stalled: s.stance.yields}
	}
	return synced("")
}

// observedGeneration returns the latest generation that asks for no other values than the one that
// was served: a change of cleanupPolicy is none that the provider must be read for. It looks one step
// back only; of what was in between, another operator may have served what this one has not seen.
func (s *subject) observedGeneration() int64 {
	observed := s.seen.ObservedGeneration
	if observed == s.es.Generation {
		s.noteContent()
	}
	if s.obj.served.generation == observed && s.es.Generation == observed+1 && s.obj.served.hash == referrers.Content(s.es) {
		return s.es.Generation
	}
	return observed
}

// noteContent remembers what the generation asks for that the status describes.
func (s *subject) noteContent() {
	if s.obj.served.generation != s.es.Generation {
		s.obj.served = content{s.es.Generation, referrers.Content(s.es)}
	}
}

// metadata is the hash of all that lies outside of the spec and has the object refreshed.
func (s *subject) metadata() string {
	return referrers.Metadata(s.es, append(s.obj.templates.versions(s.plan.Texts), s.handed.versions...)...)
}

// owns reports whether the target shall carry an ownerReference.
func (s *subject) owns() bool {
	if c := s.es.Spec.Target.CreationPolicy; c != "" && c != v1alpha1.CreateOwner {
		return false
	}
	c := s.es.Spec.Target.CleanupPolicy
	if c == "" {
		c = s.cleanup
	}
	return c != v1alpha1.CleanupNever
}

// self is the object as decisions about its target see it.
func (s *subject) self(due policy.Why) policy.Self {
	t := s.es.Spec.Target
	return policy.Self{
		UID: s.es.UID, Generation: s.es.Generation,
		Creation: t.CreationPolicy, Deletion: t.DeletionPolicy,
		Owns: s.owns(), Immutable: t.Immutable,
		Absent: s.ready().Reason == v1alpha1.ReasonSecretDeleted && policy.OnGone(t.DeletionPolicy, true, 0) == policy.DropSecret,
		Yields: s.stance.yields && s.obj.yields.all,
		Due:    due,
	}
}

// desired is the target with values.
func (s *subject) desired(out render.Output) target.Desired {
	t := s.es.Spec.Target
	d := target.Desired{
		NamespacedName: s.targetKey(),
		Immutable:      t.Immutable,
		Data:           out.Data,
		Labels:         map[string]string{},
		Annotations:    out.Annotations,
		Mark: policy.Mark{
			Name: s.es.Name, UID: s.es.UID, Generation: s.es.Generation, Module: s.module, Policy: t.CreationPolicy,
		},
	}
	maps.Copy(d.Labels, out.Labels)
	d.Labels[target.ManagedLabel(s.module)] = "true"
	switch shared := t.CreationPolicy == v1alpha1.CreateMerge || t.CreationPolicy == v1alpha1.CreateCreateOrMerge; {
	case t.Template != nil && t.Template.Type != "":
		d.Type = corev1.SecretType(t.Template.Type)
	case !shared: // What others may have made has the type that they chose.
		d.Type = corev1.SecretTypeOpaque
	}
	for _, l := range slices.Concat(s.stores.Labels(), s.handed.labels) {
		d.Labels[l] = "true"
	}
	if s.owns() {
		owner := target.OwnerOf(s.es)
		d.Owner = &owner
	}
	return d
}
