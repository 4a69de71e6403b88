package storehealth

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/scope"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// defaultInterval is the time between two validations if the spec sets none.
const defaultInterval = 5 * time.Minute

// tolerated is the number of checks in a row that may fail without an answer before a valid store becomes
// Unreachable, so that one lost packet does not hold its objects.
const tolerated = 2

// Reconciler validates the stores of one Kind.
type Reconciler struct {
	// client does not read from a cache; cache does.
	client client.Client
	cache  client.Reader
	pool   *dispatch.Pool
	kind   provider.Kind
	// anyStore is a reference to the Kind without a name.
	anyStore v1alpha1.StoreRef
	opts     setup.Options
	board    Board
	classes  *presence.MissingClasses
	events   events.EventRecorder
	ledger   ledger
	known    *kit.Memory[types.NamespacedName, validated]
}

// validated is the controller's memory of a store.
type validated struct {
	uid      types.UID
	attempts kit.Attempts
	missed   int
	// answers is the text for a store that works.
	answers string
	// warnings are the warnings of the last check.
	warnings provider.Warnings
	// skipped is the class that was not of this operator.
	skipped skipped
}

type ledger interface {
	Set(key types.NamespacedName, s metrics.State)
	Forget(key types.NamespacedName)
}

// Reconcile is one walk over a store. It validates the store.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := r.kind.New()
	if err := r.cache.Get(ctx, req.NamespacedName, s); err != nil {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot read the store")
	}
	if !r.kind.Serves(s) {
		r.pool.Drop(s.GetUID())
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if provider.SourceSpec(s).Controller != r.opts.ControllerClass {
		return r.elsewhere(ctx, s)
	}
	r.classes.Set(r.ref(req.Name), req.Namespace, "", "")
	known, _ := r.known.Get(req.NamespacedName, s.GetUID())
	known.skipped = skipped{}
	c, err := r.check(ctx, s)
	if err != nil {
		return reconcile.Result{}, err
	}
	next, failure := s.StoreStatus().DeepCopy(), c.failure
	next.Capabilities = c.capabilities
	var warnings provider.Warnings
	if errors.As(failure, &warnings) {
		failure = nil
	}
	if w := missed(s, r.opts.Now); w != "" && failure == nil {
		warnings = append(warnings, w)
	}
	r.warn(s, known, warnings)
	known.answers = c.answers
	conclude(next, s.GetGeneration(), known, failure)
	state := metrics.Of(next.Conditions, s.GetCreationTimestamp().Time)
	r.ledger.Set(req.NamespacedName, state)
	metrics.Synced(r.kind.GoName(), state.Reason)
	if err := r.patch(ctx, s, "", next); err != nil {
		return reconcile.Result{}, err
	}
	if failure != nil {
		return queue.Later(min(known.attempts.Fail(0), c.interval)), nil
	}
	known.attempts.Succeed()
	return queue.Later(c.interval), nil
}

// checkSpec validates the fields that all Kinds have in common, and returns the time until the next validation.
func checkSpec(spec *v1alpha1.SourceSpec) (time.Duration, error) {
	interval, err := spec.ValidationInterval.Or(defaultInterval)
	if err != nil {
		return defaultInterval, provider.NewError(provider.Invalid, "spec.validationInterval: %s", err)
	}
	return max(interval, time.Second), nil
}

// checked is the result of a check of a store.
type checked struct {
	capabilities []string
	// answers is the text for a store that works.
	answers string
	failure error
	// interval is the time until the next check.
	interval time.Duration
}

// check checks a store, and waits for its answer for at most the timeout of a call. The error is kit.ErrParked or
// kit.ErrInterrupted.
func (r *Reconciler) check(ctx context.Context, s provider.Object) (checked, error) {
	c := checked{capabilities: s.StoreStatus().Capabilities}
	if c.interval, c.failure = checkSpec(provider.SourceSpec(s)); c.failure != nil {
		return c, nil
	}
	at := kit.Place{Store: s.GetUID(), Tenant: cmp.Or(s.GetNamespace(), string(s.GetUID()))}
	c.failure = kit.Wait(ctx, []kit.Place{at}, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, r.opts.CallTimeout)
		defer cancel()
		// The code of the provider might not return when ctx ends.
		l, err := dispatch.Within(ctx, func() (*provider.Link, error) { return r.ask(ctx, s) })
		if l != nil {
			c.capabilities = l.Capabilities()
		}
		c.answers = r.kind.Answers(l)
		return err
	})
	if errors.Is(c.failure, kit.ErrParked) || errors.Is(c.failure, kit.ErrInterrupted) {
		return c, c.failure
	}
	return c, nil
}

// ask connects to the store and checks it. It returns the Link; nil if there is none.
func (r *Reconciler) ask(ctx context.Context, s provider.Object) (*provider.Link, error) {
	if c, ok := s.(provider.ClusterObject); ok {
		if _, err := scope.New(c.ClusterStoreSpec()); err != nil {
			return nil, err
		}
		if c.ClusterStoreSpec().AuthenticationScope == v1alpha1.ScopeManifestNamespace {
			return nil, nil // Each namespace has its own credentials, so there is no login to check.
		}
	}
	l, err := r.pool.Loader(r.kind, s, "").Link(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.checkNamed(ctx, s); err != nil {
		return nil, err
	}
	return l, l.Check(ctx)
}

// A receiver names the stores whose events it receives.
type receiver interface {
	EventReceiverSpec() *v1alpha1.EventReceiverSpec
}

// checkNamed returns an error if a store does not exist whose events an object receives. A cluster receiver can name a store of any
// namespace, so only its cluster stores are checked.
func (r *Reconciler) checkNamed(ctx context.Context, s provider.Object) error {
	o, ok := s.(receiver)
	if !ok {
		return nil
	}
	for i, ref := range o.EventReceiverSpec().Stores {
		n := slices.IndexFunc(r.opts.Kinds, func(k provider.Kind) bool { return k.GoName() == ref.Kind })
		if n < 0 || s.GetNamespace() == "" && !r.opts.Kinds[n].Cluster {
			continue
		}
		key := types.NamespacedName{Name: ref.Name}
		if !r.opts.Kinds[n].Cluster {
			key.Namespace = s.GetNamespace()
		}
		err := r.cache.Get(ctx, key, r.opts.Kinds[n].New())
		if kerrors.IsNotFound(err) {
			return provider.NewError(provider.Invalid, "spec.stores[%d]: %s %q does not exist; create it, or correct the name", i, ref.Kind, ref.Name)
		}
		if err != nil {
			return errors.Wrap(err, "cannot read a store")
		}
	}
	return nil
}

// missedFor is how long a condition reports a change that an event source has missed.
const missedFor = 24 * time.Hour

// missed returns a warning about the last change that an event source has missed; empty if there is none.
func missed(s provider.Object, now func() time.Time) string {
	o, ok := s.(provider.EventSourceObject)
	if !ok || o.Received().LastMissedTime == nil || now().Sub(o.Received().LastMissedTime.Time) > missedFor {
		return ""
	}
	return fmt.Sprintf("polling found a change at %s that no event reported; check what sends events here", o.Received().LastMissedTime.UTC().Format(time.RFC3339))
}

// warn emits an Event for each new warning.
func (r *Reconciler) warn(s provider.Object, known *validated, warnings provider.Warnings) {
	for _, w := range warnings {
		if !slices.Contains(known.warnings, w) {
			r.events.Eventf(s, nil, corev1.EventTypeWarning, "StoreWarning", "Validate", "%s", w)
		}
	}
	known.warnings = warnings
}

// stalls are the reasons of errors that only a user can fix, by class. For any other class the reason is Unreachable,
// and the store is validated again with back-off.
var stalls = map[provider.Class]string{
	provider.Denied:   v1alpha1.ReasonStoreAuthFailed,
	provider.Invalid:  v1alpha1.ReasonStoreInvalidSpec,
	provider.NotFound: v1alpha1.ReasonStoreInvalidSpec,
}

// conclude writes the result into the status. A failure without an answer of the provider does not prove an error. So a
// valid store stays valid for a few attempts, and a store that was never validated is Unknown, which does not hold its
// objects.
func conclude(st *v1alpha1.StoreStatus, generation int64, known *validated, err error) {
	v := status.Good(v1alpha1.ReasonStoreValid, strings.Join(append([]string{known.answers}, known.warnings...), "; "))
	if err == nil {
		known.missed = 0
	} else {
		safe := provider.Safe(err)
		if reason, ok := stalls[safe.Class]; ok {
			v = status.Stalled(reason, safe.Message)
		} else {
			v = status.Failed(v1alpha1.ReasonStoreUnreachable, safe.Message)
			known.missed++
			if safe.Class == provider.Throttled || known.missed <= tolerated {
				if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady); c != nil && st.ObservedGeneration == generation {
					return // The last known condition stays.
				}
				v.Status = metav1.ConditionUnknown
			}
		}
	}
	st.ObservedGeneration = generation
	status.Conclude(&st.Conditions, generation, v)
}

// patch writes the status if it has changed. version is the resourceVersion that the store must have. It is empty if this
// operator serves the store: then no other process writes the status. Modules have no permission to read a store live.
func (r *Reconciler) patch(ctx context.Context, s provider.Object, version string, next *v1alpha1.StoreStatus) error {
	if equality.Semantic.DeepEqual(s.StoreStatus(), next) {
		return nil
	}
	before := s.StoreStatus().Conditions
	if err := status.Once(ctx, r.client, s, version, s.StoreStatus(), next, r.kind.New()); err != nil {
		return errors.Wrap(client.IgnoreNotFound(err), "cannot write the status of the store")
	}
	status.RecordEvent(r.events, s, "Validate", before, next.Conditions)
	return nil
}

// ref returns a reference to the store of a name.
func (r *Reconciler) ref(name string) v1alpha1.StoreRef {
	ref := r.anyStore
	ref.Name = name
	return ref
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.known.Forget(key)
	r.ledger.Forget(key)
	r.classes.Set(r.ref(key.Name), key.Namespace, "", "")
}
