package externalsecret

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/fetch"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// subject is one ExternalSecret in one pass: what was loaded, and what was decided.
type subject struct {
	opts *Options
	es   *v1alpha1.ExternalSecret
	obj  *object
	// seen is the latest status, of the resourceVersion in version; next is the status to write.
	seen, next *v1alpha1.ExternalSecretStatus
	version    string
	plan       render.Plan
	stores     fetch.Stores
	// handed describes the values that are stored in parts.
	handed handed
	peers  *peers
	state  syncState
}

// syncState is the state of an object relative to its provider and its target.
type syncState struct {
	// why is the reason to read the provider.
	why policy.Why
	// basis is subject.basis for the present target.
	basis string
	// blocked is true while other ExternalSecrets still hold keys that this one wants.
	blocked bool
	// lost is true if the target is not as this object left it.
	lost bool
	// written is true once the target was written.
	written bool
}

func (s *subject) key() types.NamespacedName { return client.ObjectKeyFromObject(s.es) }

func (s *subject) targetKey() types.NamespacedName {
	return types.NamespacedName{Namespace: s.es.Namespace, Name: s.plan.Target}
}

// basis identifies the data of this object that the target holds: by the hash in the mark, or without a mark by the
// last refresh in the status. If it has changed since a read began, another operator has written the target.
func (s *subject) basis(t policy.Target) string {
	if t.Mark.Hash != "" {
		return t.Mark.Hash
	}
	return last(s.seen)
}

// last identifies the last refresh in a status; empty if there was none.
func last(st *v1alpha1.ExternalSecretStatus) string {
	if st.RefreshTime == nil {
		return ""
	}
	return fmt.Sprint(st.RefreshTime.Unix(), st.Sources)
}

// ready returns the latest Ready condition; an empty one if there is none.
func (s *subject) ready() metav1.Condition {
	if c := meta.FindStatusCondition(s.seen.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// shown reports whether the status already has this verdict.
func shown(s *subject, v verdict) bool {
	c := s.ready()
	return c.Status == v.Status && c.Reason == v.Reason && c.Message == v.Text() && c.ObservedGeneration == s.es.Generation
}

// complete reports whether an object is refreshed only once and has been. It asks for nothing more.
func complete(s *subject) bool {
	return s.ready().Status == metav1.ConditionTrue && s.seen.RefreshTime != nil &&
		policy.Once(s.es.Spec.RefreshPolicy, s.plan.Interval)
}

// currentVerdict returns the verdict on an object for which there is nothing to do.
func currentVerdict(s *subject) verdict {
	c := s.ready()
	if c.Type != "" && (s.state.blocked || (c.Status == metav1.ConditionTrue && c.Reason != v1alpha1.ReasonSuspended)) {
		return verdict{Status: c.Status, Reason: c.Reason, Message: c.Message, Stalled: s.state.blocked}
	}
	return synced("")
}

// observedGeneration returns the latest generation that asks for the same values as the generation that was synced.
// The provider need not be read for a change such as one of cleanupPolicy. It compares only with the generation
// before: between older ones, another operator may have synced a generation that this process has not seen.
func (s *subject) observedGeneration() int64 {
	observed := s.seen.ObservedGeneration
	if s.obj.served.generation == observed && s.es.Generation == observed+1 && s.obj.served.hash == referrers.Content(s.es) {
		return s.es.Generation
	}
	return observed
}

// noteContent records the content of the generation that the status describes.
func (s *subject) noteContent() {
	if s.obj.served.generation != s.es.Generation {
		s.obj.served = content{s.es.Generation, referrers.Content(s.es)}
	}
}

// metadata returns a hash of everything outside of the spec that triggers a refresh.
func (s *subject) metadata() string {
	return referrers.Metadata(s.es, append(s.obj.templates.versions(s.plan.TemplateRefs), s.handed.versions...)...)
}

// attempt identifies what the user asks for now.
func (s *subject) attempt() kit.Attempt {
	return kit.AttemptOf(s.es, s.metadata())
}

// owns reports whether the target should have an ownerReference.
func (s *subject) owns() bool {
	return policy.OwnsTarget(s.es.Spec.Target, s.opts.DefaultCleanupPolicy)
}

// self returns the object as input of decisions about its target.
func (s *subject) self(due policy.Why, blocked bool) policy.Self {
	self := policy.SelfOf(s.es, s.opts.DefaultCleanupPolicy)
	self.Absent = s.ready().Reason == v1alpha1.ReasonSecretDeleted && policy.OnNotFound(self.Deletion, true, 0) == policy.DropSecret
	self.Blocked = blocked && s.obj.blocked.all
	self.Due = due
	return self
}

// desired returns the target to write, with values.
func (s *subject) desired(out render.Output) target.Desired {
	d := target.DesiredOf(s.es, s.opts.Module, s.owns(), target.Content{Data: out.Data, Labels: out.Labels, Annotations: out.Annotations})
	for _, l := range slices.Concat(s.stores.Labels(), s.handed.labels) {
		d.Labels[l] = "true"
	}
	return d
}
