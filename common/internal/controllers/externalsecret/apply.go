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
	"github.com/direct-secrets/direct-secrets/common/internal/fetch"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// maxTries is how often a write is decided anew, with the same answer of the provider, when somebody
// else has written in between.
const maxTries = 5

// answer is what the provider said.
type answer struct {
	// read is what the entries of the spec yield, err why they do not.
	read render.Output
	err  error
	// inputs is a hash of what the template would make the values from; empty if there is none.
	inputs string
	// shape makes the values, once.
	shape func() (render.Output, error)
	// at is when it was asked, basis what is to be as it was then: see subject.basis.
	at    time.Time
	basis string
}

// newAnswer returns the answer of stores, of which values may lie in parts, with the texts of templates.
func newAnswer(s *subject, values render.Values, texts render.Texts, got fetch.Answer) *answer {
	a := &answer{at: got.At, basis: got.Basis}
	a.read, a.err = render.Read(s.es, s.plan, values)
	a.shape = sync.OnceValues(func() (render.Output, error) { return render.Shape(s.es, s.plan, a.read, texts) })
	if inputs := render.Inputs(s.es, s.plan, a.read, texts); inputs != nil {
		a.inputs = target.HashInputs(s.es.UID, inputs)
	}
	return a
}

// shaped returns the values for the Secret.
func (a *answer) shaped() (render.Output, error) {
	if a.err != nil {
		return render.Output{}, a.err
	}
	var out render.Output
	out, a.err = a.shape()
	return out, a.err
}

// effect is what an answer has led to.
type effect struct {
	// kept is true if the answer forbids any change.
	kept bool
	// absent is true if the Secret shall not be there.
	absent bool
	// yields are the keys that other ExternalSecrets hold.
	yields yields
	// version is the Secret's resourceVersion.
	version string
}

// judgement is what an answer means for a Secret: what is to be done, what is to be written, and the keys left out
// because other ExternalSecrets hold them. basis is that of the Secret as it is.
type judgement struct {
	policy.Decision
	desired target.Desired
	yielded []string
	basis   string
}

// applier writes targets.
type applier struct {
	gatherer *gatherer
	writer   *target.Writer
	events   events.EventRecorder
	now      func() time.Time
	// overtaken reports whether a judgement rests on another basis than its answer.
	overtaken func(judgement, *answer) bool
}

// overtaken reports whether another operator has written since the provider was asked, maybe what it said later.
func overtaken(j judgement, a *answer) bool { return j.basis != a.basis }

// judge decides what an answer means for a Secret; nil if there is none.
func (p *applier) judge(ctx context.Context, s *subject, secret metav1.Object, a *answer) judgement {
	t := s.observe(ctx, secret)
	if held, ok := p.made(ctx, s, secret, t, a); ok {
		d := s.desired(render.Output{})
		d.Data = held.Data
		return judgement{policy.Decide(s.self(policy.NotDue), t, &policy.Reading{
			Gone: a.read.Gone != nil, Values: a.read.Values, Keys: a.read.Values,
			Hash: t.Mark.Hash, Fields: t.Mark.Fields, Same: true,
		}), d, t.Mark.Yields, s.basis(t)}
	}
	out, err := a.shaped()
	d := s.desired(out)
	d.Mark.Inputs = a.inputs
	d.Seal()
	var yielded []string
	if secret != nil && s.es.Spec.Target.CreationPolicy != v1alpha1.CreateNone {
		d, yielded = d.Yield(secret.GetManagedFields(), s.census.contest(ctx, secret))
	}
	return judgement{policy.Decide(s.self(policy.NotDue), t, &policy.Reading{
		Failed: err != nil, Gone: a.read.Gone != nil,
		Values: a.read.Values, Keys: len(d.Data),
		Hash: d.Mark.Hash, Fields: d.Mark.Fields,
	}), d, yielded, s.basis(t)}
}

// made reports whether what a Secret holds was made from the same inputs, and returns what of it is ours.
// Then nothing is made again: what has a salt or is random would differ each time. What other
// ExternalSecrets hold must be the same, too.
func (p *applier) made(ctx context.Context, s *subject, secret metav1.Object, t policy.Target, a *answer) (target.Desired, bool) {
	if a.err != nil || a.inputs == "" || t.Mark.UID != s.es.UID || t.Mark.Inputs != a.inputs || !t.Intact {
		return target.Desired{}, false
	}
	held, yielded := target.Held(secret.GetManagedFields(), t.Mark).Yield(secret.GetManagedFields(), s.census.contest(ctx, secret))
	return held, slices.Equal(yielded, t.Mark.Yields)
}

// apply carries out what an answer means for the target. What the cache says decides whether anything
// is to be done; what is done rests on a live read, but for a create, which cannot overwrite. A target that holds
// something else of the object than when the provider was asked is not written: of two operators that overlap, the one
// whose answer is later has the last word.
func (p *applier) apply(ctx context.Context, s *subject, a *answer) (effect, error) {
	secret, err := p.gatherer.cached(ctx, s)
	if err != nil {
		return effect{}, err
	}
	j := p.judge(ctx, s, secret, a)
	// That the cache has none is no proof that there is none.
	proven := secret != nil || !j.Absent
	switch {
	case j.Action == policy.Nothing && proven, j.Action == policy.Keep:
		return j.effect(versionOf(secret)), nil
	case j.Action == policy.Create && !p.overtaken(j, a):
		if err := p.create(ctx, s, a, j); !kerrors.IsAlreadyExists(err) {
			return effect{}, err
		}
	}
	for try := 1; ; try++ {
		e, err := p.applyLive(ctx, s, a)
		if !kerrors.IsConflict(err) || try == maxTries {
			return e, err
		}
	}
}

// applyLive is apply by a live read.
func (p *applier) applyLive(ctx context.Context, s *subject, a *answer) (effect, error) {
	live, err := p.writer.Get(ctx, s.targetKey())
	if err != nil {
		return effect{}, err
	}
	var secret metav1.Object // Not a nil pointer in an interface.
	if live != nil {
		secret = live
	}
	j := p.judge(ctx, s, secret, a)
	if p.overtaken(j, a) { // The provider is asked again.
		if live != nil {
			s.remember(live)
		}
		return effect{}, errMoved
	}
	switch j.Action {
	case policy.Nothing, policy.Keep:
		if live != nil && j.Action == policy.Nothing {
			s.remember(live)
		}
	case policy.Create:
		err = p.create(ctx, s, a, j)
	case policy.Apply, policy.Own, policy.Delete:
		err = p.change(ctx, s, j.Decision, live, j.desired)
	case policy.Read, policy.Release:
		err = errMoved
	case policy.Yield, policy.Missing, policy.Wait, policy.Refuse:
		err = stopError{stopped(j.Decision, s.plan.Target, versionOf(secret))}
	}
	return j.effect(versionOf(secret)), err
}

// effect is that of a judgement about a Secret of a version.
func (j judgement) effect(version string) effect {
	return effect{
		kept: j.Action == policy.Keep, absent: j.Absent, version: version,
		yields: yields{keys: j.yielded, all: len(j.desired.Data) == 0},
	}
}

// own brings the ownerReference and the mark of the target in line. It needs no value, and so does
// not wait for the provider.
func (p *applier) own(ctx context.Context, s *subject) error {
	live, err := p.writer.Get(ctx, s.targetKey())
	if err != nil {
		return err
	}
	if live == nil {
		return errMoved
	}
	decision := policy.Decide(s.self(policy.NotDue), s.observe(ctx, live), nil)
	if decision.Action != policy.Own {
		s.remember(live) // The cache is behind.
		return nil
	}
	return p.change(ctx, s, decision, live, s.desired(render.Output{}))
}

// create makes the target. That there is none says nothing of what was there since the provider was asked, but the status does.
func (p *applier) create(ctx context.Context, s *subject, a *answer, j judgement) error {
	live, err := p.fence(ctx, s, j.Decision)
	if err != nil {
		return err
	}
	if live != nil && p.overtaken(judgement{basis: last(&live.Status)}, a) {
		return errMoved
	}
	made, err := p.writer.Create(ctx, j.desired)
	if err != nil {
		return err
	}
	s.obj.created = made.UID
	p.wrote(s, made, "Created")
	return nil
}

// change carries out a decision about a Secret that was read live.
func (p *applier) change(ctx context.Context, s *subject, decision policy.Decision, live *corev1.Secret, d target.Desired) error {
	if _, err := p.fence(ctx, s, decision); err != nil {
		return err
	}
	var is *corev1.Secret
	var err error
	d.Mark.Created = s.obj.created == live.UID // Also where somebody has removed the mark.
	switch decision.Action {                   //nolint:exhaustive // The others do not change a Secret.
	case policy.Apply:
		is, _, err = p.writer.Apply(ctx, live, d, s.census.contest(ctx, live))
	case policy.Own:
		is, err = p.writer.Own(ctx, live, d, s.census.contest(ctx, live))
	case policy.Release:
		return p.writer.Release(ctx, live, d)
	case policy.Delete:
		if err = p.writer.Delete(ctx, live); err == nil {
			p.tell(s, "Deleted", live.Name)
		}
		return err
	}
	if err != nil {
		return err
	}
	if live.Name == s.plan.Target {
		p.wrote(s, is, "Updated")
	}
	return nil
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets,verbs=get

// fence reads the ExternalSecret live, after the Secret was read, where another incarnation or a
// later generation of it may be at work. Generations only grow under one uid, so what passes here
// is not behind. It returns what it has read.
func (p *applier) fence(ctx context.Context, s *subject, decision policy.Decision) (*v1alpha1.ExternalSecret, error) {
	if !decision.Fence {
		return nil, nil
	}
	live := &v1alpha1.ExternalSecret{}
	err := p.gatherer.live.Get(ctx, client.ObjectKeyFromObject(s.es), live)
	switch {
	case kerrors.IsNotFound(err):
		return nil, errMoved
	case err != nil:
		return nil, errors.Wrap(err, "cannot read the ExternalSecret")
	case live.UID != s.es.UID, live.Generation != s.es.Generation, live.DeletionTimestamp != nil:
		return nil, errMoved
	}
	return live, nil
}

// wrote notes a write of the target.
func (p *applier) wrote(s *subject, is *corev1.Secret, what string) {
	s.remember(is)
	s.stance.written = true
	if s.stance.lost {
		s.obj.fight = s.obj.fight.Revert(p.now())
	}
	if s.seen.RefreshTime != nil {
		p.tell(s, what, is.Name)
	}
}

func (p *applier) tell(s *subject, what, secret string) {
	p.events.Eventf(s.es, nil, corev1.EventTypeNormal, what, "Sync", "%s Secret %q", strings.ToLower(what), secret)
}

// remember keeps the metadata of a Secret that we wrote until the cache shows it. Of one without our
// label or mark no event would tell that it is gone again.
func (s *subject) remember(is *corev1.Secret) {
	if is.Labels[target.ManagedLabel(s.module)] != "true" || target.Marks(is.Annotations)[s.es.Name].UID == "" {
		return
	}
	m := &metav1.PartialObjectMetadata{ObjectMeta: *is.ObjectMeta.DeepCopy()}
	target.Reduce(m)
	s.obj.secret.Wrote(m)
}
