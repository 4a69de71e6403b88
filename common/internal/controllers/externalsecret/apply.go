package externalsecret

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// maxTries is the maximum number of attempts to write a target with one answer of the provider. An attempt is
// repeated when another client has changed the Secret between the read and the write.
const maxTries = 5

// answer is the provider's answer to one refresh.
type answer struct {
	// read holds the values of the spec's entries; err is the reason why there are none.
	read render.Output
	err  error
	// inputs is a hash of the template's inputs; empty without a template.
	inputs string
	// shape renders the values for the Secret, at most once.
	shape func() (render.Output, error)
	// at is the time of the request. basis is subject.basis at that time.
	at    time.Time
	basis string
}

// newAnswer returns the answer for values that come from stores and from parts; templateSources are the sources of the
// template.
func newAnswer(ctx context.Context, s *subject, values render.Values, templateSources render.TemplateSources, at time.Time) *answer {
	a := &answer{at: at, basis: s.state.basis}
	a.read, a.err = kit.Heavy(ctx, s.es.Namespace, func() (render.Output, error) { return render.Read(s.es, s.plan, values) })
	a.shape = sync.OnceValues(func() (render.Output, error) {
		return kit.Heavy(ctx, s.es.Namespace, func() (render.Output, error) { return render.Shape(s.es, s.plan, a.read, templateSources) })
	})
	// A reader of a ConfigMap could guess inputs that its template leaves out.
	if inputs := render.Inputs(s.es, s.plan, a.read, templateSources); inputs != nil && s.es.Spec.Target.Kind != v1alpha1.TargetConfigMap {
		a.inputs = target.HashInputs(s.es.UID, inputs)
	}
	return a
}

// shaped returns the values for the Secret, and sets a.err if they cannot be rendered.
func (a *answer) shaped() (render.Output, error) {
	if a.err != nil {
		return render.Output{}, a.err
	}
	var out render.Output
	out, a.err = a.shape()
	return out, a.err
}

// writeDecision is what to do with a Secret because of an answer: the decision, the Secret to write, and the keys left
// out because other ExternalSecrets hold them.
type writeDecision struct {
	policy.Decision
	desired target.Desired
	blocked []string
	// basis is subject.basis for the present Secret, version is its resourceVersion.
	basis, version string
}

// overtaken reports whether another operator has written the Secret since the provider was asked. That operator may
// have a later answer.
func overtaken(j writeDecision, a *answer) bool { return j.basis != a.basis }

// decideWrite decides what to do with a Secret because of an answer. secret is nil if there is none.
func decideWrite(ctx context.Context, s *subject, secret metav1.Object, a *answer) writeDecision {
	t := s.observe(ctx, secret)
	if held, ok := made(ctx, s, secret, t, a); ok {
		d := s.desired(render.Output{})
		d.Data = held.Data
		return writeDecision{policy.Decide(s.self(policy.NotDue, s.state.blocked), t, &policy.Reading{
			NotFound: a.read.NotFound != nil, Values: a.read.Values, Keys: a.read.Values,
			Hash: t.Mark.Hash, Fields: t.Mark.Fields, Same: true,
		}), d, t.Mark.Blocked, s.basis(t), versionOf(secret)}
	}
	out, err := a.shaped()
	d := s.desired(out)
	d.Mark.Inputs = a.inputs
	d.Seal()
	var blocked []string
	if secret != nil && s.es.Spec.Target.CreationPolicy != v1alpha1.CreateNone {
		d, blocked = d.WithoutBlocked(secret.GetManagedFields(), s.peers.others(ctx, secret))
	}
	return writeDecision{policy.Decide(s.self(policy.NotDue, s.state.blocked), t, &policy.Reading{
		Failed: err != nil, NotFound: a.read.NotFound != nil,
		Values: a.read.Values, Keys: len(d.Data),
		Hash: d.Mark.Hash, Fields: d.Mark.Fields,
	}), d, blocked, s.basis(t), versionOf(secret)}
}

// made reports whether the values in the Secret were rendered from the same inputs, and returns this object's fields
// of the Secret. Then nothing is rendered: output that has a salt or is random would differ each time. It is false if
// other ExternalSecrets hold other keys than before.
func made(ctx context.Context, s *subject, secret metav1.Object, t policy.Target, a *answer) (target.Desired, bool) {
	if a.err != nil || a.inputs == "" || t.Mark.UID != s.es.UID || t.Mark.Inputs != a.inputs || !t.Intact {
		return target.Desired{}, false
	}
	held, blocked := target.Held(secret.GetManagedFields(), t.Mark).WithoutBlocked(secret.GetManagedFields(), s.peers.others(ctx, secret))
	return held, slices.Equal(blocked, t.Mark.Blocked)
}

// write brings the target in line with an answer, and returns what it has done, or what forbids a write. The cache
// decides whether anything needs to be done. Writes are based on a live read, except for a create, which cannot
// overwrite. The target is not written if this object's data in it has changed since the provider was asked: when two
// operators overlap, the one with the later answer wins.
func (r *Reconciler) write(ctx context.Context, s *subject, a *answer) (writeDecision, error) {
	secret, err := cached(ctx, r.cache, s)
	if err != nil {
		return writeDecision{}, err
	}
	j := decideWrite(ctx, s, secret, a)
	// An empty cache does not prove that there is no Secret.
	proven := secret != nil || !j.Absent
	switch {
	case j.Action == policy.Nothing && proven, j.Action == policy.Keep:
		return j, nil
	case j.Action == policy.Create && !r.overtaken(j, a):
		if err := r.create(ctx, s, a, j); !kerrors.IsAlreadyExists(err) {
			return j, err
		}
	}
	for try := 1; ; try++ {
		j, err := r.writeLive(ctx, s, a)
		if !kerrors.IsConflict(err) || try == maxTries {
			return j, err
		}
	}
}

// difference returns what another creationPolicy would change in the target; nil if this one writes it.
func difference(ctx context.Context, writer *target.Writer, s *subject, a *answer) (*v1alpha1.Difference, error) {
	if s.es.Spec.Target.CreationPolicy != v1alpha1.CreateNone {
		return nil, nil
	}
	out, err := a.shaped()
	if err != nil {
		return nil, err
	}
	live, err := writer.Get(ctx, s.targetKey())
	if err != nil {
		return nil, err
	}
	return s.desired(out).Difference(live), nil
}

// writeLive is write based on a live read.
func (r *Reconciler) writeLive(ctx context.Context, s *subject, a *answer) (writeDecision, error) {
	live, err := r.writer.Get(ctx, s.targetKey())
	if err != nil {
		return writeDecision{}, err
	}
	var secret metav1.Object // Not a nil pointer in an interface.
	if live != nil {
		secret = live
	}
	j := decideWrite(ctx, s, secret, a)
	if r.overtaken(j, a) { // Ask the provider again.
		if live != nil {
			s.remember(live)
		}
		return writeDecision{}, errMoved
	}
	switch j.Action {
	case policy.Nothing:
		if live != nil {
			s.remember(live)
		}
	case policy.Keep, policy.Conflict, policy.Missing, policy.Wait, policy.Refuse:
	case policy.Create:
		err = r.create(ctx, s, a, j)
	case policy.Apply, policy.Own, policy.Delete:
		err = r.change(ctx, s, j.Decision, live, j.desired)
	case policy.Read, policy.Release:
		err = errMoved
	}
	return j, err
}

// own updates the ownerReference and the mark of the target. It needs no values, so it does not wait for the
// provider.
func (r *Reconciler) own(ctx context.Context, s *subject) error {
	live, err := r.writer.Get(ctx, s.targetKey())
	if err != nil {
		return err
	}
	if live == nil {
		return errMoved
	}
	decision := policy.Decide(s.self(policy.NotDue, s.state.blocked), s.observe(ctx, live), nil)
	if decision.Action != policy.Own {
		s.remember(live) // The cache is behind.
		return nil
	}
	return r.change(ctx, s, decision, live, s.desired(render.Output{}))
}

// create creates the target. A missing Secret has no mark to compare with, so the basis is checked against the live
// status.
func (r *Reconciler) create(ctx context.Context, s *subject, a *answer, j writeDecision) error {
	live, err := fence(ctx, r.live, s, j.Decision)
	if err != nil {
		return err
	}
	if live != nil && r.overtaken(writeDecision{basis: last(&live.Status)}, a) {
		return errMoved
	}
	made, err := r.writer.Create(ctx, j.desired)
	if err != nil {
		return err
	}
	s.obj.created = made.UID
	wrote(r.events, s, made, "Created")
	return nil
}

// change carries out a decision about a Secret that was read live.
func (r *Reconciler) change(ctx context.Context, s *subject, decision policy.Decision, live *corev1.Secret, d target.Desired) error {
	if _, err := fence(ctx, r.live, s, decision); err != nil {
		return err
	}
	var is *corev1.Secret
	var err error
	d.Mark.Created = s.obj.created == live.UID // Also if another client has removed the mark.
	switch decision.Action {                   //nolint:exhaustive // The other actions do not change a Secret.
	case policy.Apply:
		is, _, err = r.writer.Apply(ctx, live, d, s.peers.others(ctx, live))
	case policy.Own:
		is, err = r.writer.Own(ctx, live, d, s.peers.others(ctx, live))
	case policy.Release:
		return r.writer.Release(ctx, live, d)
	case policy.Delete:
		if err = r.writer.Delete(ctx, live); err == nil {
			recordEvent(r.events, s, "Deleted", live.Name)
		}
		return err
	}
	if err != nil {
		return err
	}
	if live.Name == s.plan.Target {
		wrote(r.events, s, is, "Updated")
	}
	return nil
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets,verbs=get

// fence reads the ExternalSecret live, after the Secret was read, if another incarnation or a later generation of it
// may be active. It returns errMoved if the live object differs. Generations only increase under one uid, so an
// object that passes is not outdated. It returns the live object; nil if the decision needs no fence.
func fence(ctx context.Context, live client.Reader, s *subject, decision policy.Decision) (*v1alpha1.ExternalSecret, error) {
	if !decision.Fence {
		return nil, nil
	}
	is := &v1alpha1.ExternalSecret{}
	err := live.Get(ctx, s.key(), is)
	switch {
	case kerrors.IsNotFound(err):
		return nil, errMoved
	case err != nil:
		return nil, errors.Wrap(err, "cannot read the ExternalSecret")
	case is.UID != s.es.UID, is.Generation != s.es.Generation, is.DeletionTimestamp != nil:
		return nil, errMoved
	}
	return is, nil
}

// wrote records a write of the target. what is the reason of the Event.
func wrote(recorder events.EventRecorder, s *subject, is *corev1.Secret, what string) {
	s.remember(is)
	s.state.written = true
	if s.state.lost {
		s.obj.revertBackoff = s.obj.revertBackoff.Revert(s.opts.Now())
	}
	if s.seen.RefreshTime != nil {
		recordEvent(recorder, s, what, is.Name)
	}
}

func recordEvent(recorder events.EventRecorder, s *subject, what, secret string) {
	recorder.Eventf(s.es, nil, corev1.EventTypeNormal, what, "Sync", "%s Secret %q", strings.ToLower(what), secret)
}

// remember keeps the metadata of a Secret that was just written until the cache shows it. A Secret without this
// module's label or this object's mark is left out: no event would report its deletion.
func (s *subject) remember(is *corev1.Secret) {
	if is.Labels[target.ManagedLabel(s.opts.Module)] != "true" || target.Marks(is.Annotations)[s.es.Name].UID == "" {
		return
	}
	m := &metav1.PartialObjectMetadata{ObjectMeta: *is.ObjectMeta.DeepCopy()}
	target.Reduce(m)
	s.obj.secret.Wrote(m)
}
