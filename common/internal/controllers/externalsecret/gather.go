package externalsecret

import (
	"context"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
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
	// hold is how long the sync windows hold back a read that is due.
	hold windows.Hold
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

// observedGeneration returns the latest generation that asks for the same values as the generation that was synced.
// The provider need not be read for a change such as one of cleanupPolicy. It compares only with the generation
// before: between older ones, another operator may have synced a generation that this process has not seen.
func (s *subject) observedGeneration() int64 {
	observed := s.seen.ObservedGeneration
	if s.obj.generation == observed && s.es.Generation == observed+1 && s.obj.content == referrers.Content(s.es) {
		return s.es.Generation
	}
	return observed
}

// noteContent records the content of the generation that the status describes.
func (s *subject) noteContent() {
	if s.obj.generation != s.es.Generation {
		s.obj.generation, s.obj.content = s.es.Generation, referrers.Content(s.es)
	}
}

// metadata returns a hash of everything outside of the spec that triggers a refresh.
func (s *subject) metadata() string {
	return referrers.Metadata(s.es, append(s.obj.signals.templates.versions(s.plan.TemplateRefs), s.handed.versions...)...)
}

// attempt identifies what the user asks for now.
func (s *subject) attempt() kit.Attempt {
	return kit.AttemptOf(s.es, referrers.Metadata(s.es), s.metadata())
}

// answered returns the refresh request that a verdict of this pass answers. A report of another module may answer a former one.
func (s *subject) answered() string {
	request := s.es.Annotations[v1alpha1.RefreshRequestAnnotation]
	if s.es.Spec.Suspend || s.handed.Problem != nil && slices.ContainsFunc(s.es.Status.Parts, func(p v1alpha1.PartStatus) bool {
		return p.Message != "" && isWriterRunning(s, p) && p.AttemptedRefreshRequest != request
	}) {
		return s.seen.AttemptedRefreshRequest
	}
	return request
}

// owns reports whether the target should have an ownerReference.
func (s *subject) owns() bool {
	return policy.OwnsTarget(s.es.Spec.Target, s.opts.DefaultCleanupPolicy)
}

// desired returns the target to write, with values.
func (s *subject) desired(out render.Output) target.Desired {
	d := target.DesiredOf(s.es, s.opts.Module, s.owns(), target.Content{Data: out.Data, Labels: out.Labels, Annotations: out.Annotations})
	for _, l := range slices.Concat(s.stores.Labels(), s.handed.labels) {
		d.Labels[l] = "true"
	}
	return d
}

// load loads an object that this operator claims, with its latest status; nil if there is no such object. It also
// returns true if the object replaces another one of the same name.
func (r *Reconciler) load(ctx context.Context, key types.NamespacedName) (s *subject, replaces bool, err error) {
	es := &v1alpha1.ExternalSecret{}
	if err := r.cache.Get(ctx, key, es); err != nil {
		return nil, false, errors.Wrap(client.IgnoreNotFound(err), "cannot read the ExternalSecret")
	}
	mine, err := r.referrers.Mine(ctx, es)
	if err != nil || !mine || es.DeletionTimestamp != nil {
		return nil, false, err
	}
	obj, replaces := r.objects.Get(key, es.UID)
	now := &v1alpha1.ExternalSecret{}
	latest, err := obj.status.Get(ctx, r.cache, key, now)
	switch {
	case err != nil:
		return nil, replaces, err
	case latest == nil, now.UID != es.UID:
		return nil, replaces, errMoved
	}
	s = &subject{opts: &r.opts, es: now, obj: obj, version: latest.ResourceVersion, seen: &latest.Status, next: latest.Status.DeepCopy()}
	s.peers = &peers{cache: r.cache, live: r.live, es: s.es}
	if s.seen.ObservedGeneration == s.es.Generation {
		s.noteContent()
	}
	return s, replaces, nil
}

// reload checks, after a wait, that the object asks for the same as before, and loads its latest status.
func (s *subject) reload(ctx context.Context, cache client.Reader) error {
	now, before := &v1alpha1.ExternalSecret{}, s.attempt()
	latest, err := s.obj.status.Get(ctx, cache, s.key(), now)
	switch {
	case err != nil:
		return err
	case latest == nil, now.UID != s.es.UID, now.DeletionTimestamp != nil:
		return kit.ErrInterrupted
	}
	s.es, s.version, s.seen, s.next = now, latest.ResourceVersion, &latest.Status, latest.Status.DeepCopy()
	s.peers.es = s.es
	if s.attempt() != before {
		return kit.ErrInterrupted
	}
	return nil
}

// cached returns the metadata of the target from the cache, or from this process's last write if that is newer; nil
// if there is none.
func cached(ctx context.Context, cache client.Reader, s *subject) (metav1.Object, error) {
	m, err := s.obj.secret.Get(ctx, cache, s.targetKey(), resolve.SecretMetadata())
	if err != nil || m == nil {
		return nil, errors.Wrap(err, "cannot read the Secret")
	}
	return m, nil
}

// peek returns the metadata of the target, read live; nil if there is none.
func peek(ctx context.Context, live client.Reader, s *subject) (metav1.Object, error) {
	m := resolve.SecretMetadata()
	err := live.Get(ctx, s.targetKey(), m)
	if kerrors.IsNotFound(err) {
		return nil, nil
	}
	return m, errors.Wrap(err, "cannot read the Secret")
}

// observe returns the target as input of decisions; secret is nil if there is none.
func (s *subject) observe(ctx context.Context, secret metav1.Object) policy.Target {
	c := s.es.Spec.Target.CreationPolicy
	t := target.Observe(ctx, secret, target.Identity{
		Name: s.es.Name, UID: s.es.UID, Module: s.opts.Module, Exclusive: c == "" || c == v1alpha1.CreateOwner,
	}, s.peers)
	if t.Mark.Created {
		s.obj.created = secret.GetUID()
	}
	return t
}

// stillBlocked reports whether other ExternalSecrets still hold all the keys that they held at the last refresh.
func (s *subject) stillBlocked(ctx context.Context, secret metav1.Object) bool {
	if len(s.obj.blocked) == 0 || s.ready().Reason != v1alpha1.ReasonConflict {
		return false
	}
	d := target.Named(policy.Mark{Name: s.es.Name, UID: s.es.UID}, s.obj.blocked)
	_, still := d.WithoutBlocked(secret.GetManagedFields(), s.peers.others(ctx, secret))
	return len(still) == len(s.obj.blocked)
}

// versionOf returns the resourceVersion of a target; empty if there is none.
func versionOf(secret metav1.Object) string {
	if secret == nil {
		return ""
	}
	return secret.GetResourceVersion()
}

// needsLiveRead reports whether a decision that is based on a cache must be confirmed by a live read. That is so where
// another owner may hold the Secret, because a watch by name may have shown more than the cache has. It is also so
// where a Secret is missing from the cache that was there before: it may only have lost its label.
func needsLiveRead(s *subject, secret metav1.Object, d policy.Decision) bool {
	switch d.Action { //nolint:exhaustive // The other actions are based on a Secret of this object.
	case policy.Missing, policy.Conflict, policy.Refuse, policy.Wait:
		return true
	}
	return s.ready().Reason == v1alpha1.ReasonConflict ||
		secret == nil && s.seen.Binding != nil && s.seen.Binding.Name == s.plan.Target
}
