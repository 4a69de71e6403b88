package externalsecret_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

const (
	// modelWorkers run their sequences at the same time. Each mostly waits.
	modelWorkers = 12
	// modelSteps is the number of steps of a sequence.
	modelSteps = 30
)

// TestModel applies random changes of users, tools, the provider and the clock to an ExternalSecret and its Secret.
// It compares each version of the Secret with the prediction of a model of the design. A failure prints the sequence;
// its seed repeats the sequence, as far as the operator's timing allows. Recorded seeds have the same sequences each
// time; -rapid.seed selects others (0 for random ones).
func TestModel(t *testing.T) {
	t.Parallel()
	var failed atomic.Bool
	testenv.Sequences{Workers: modelWorkers, Each: modelSequences, Seeds: modelSeeds, Random: modelRandom}.Run(t,
		func(t *testing.T, i int) func(*rapid.T) {
			w := newModelWorker(t, i, &failed)
			return func(rt *rapid.T) {
				if failed.Load() && !w.failed {
					return // Another worker has failed; one failure is enough.
				}
				w.sequence(rt)
			}
		})
}

// A modelWorker has its own namespace, provider, operator and clock.
type modelWorker struct {
	*env
	rec *recorder
	// clock is the operator's clock, in seconds. It moves only in steps of the model, so that the model knows what is
	// due. passes counts how often the operator reads the clock, which it does in each reconcile.
	clock, passes atomic.Int64
	flag          v1alpha1.CleanupPolicy
	// failed is true once a sequence of this worker has failed; halt is true once a sequence of any worker has.
	failed bool
	halt   *atomic.Bool
	// count is the number of sequences that this worker has begun.
	count int
}

func newModelWorker(t *testing.T, i int, halt *atomic.Bool) *modelWorker {
	t.Helper()
	w := &modelWorker{
		env:  &env{testenv.On(t, testenv.Shared(t), "model-"+testenv.RandomName())},
		flag: v1alpha1.CleanupOnDelete, halt: halt,
	}
	w.Ctx = context.Background() // Cleanups need it after the test has ended.
	w.clock.Store(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	w.Server = fake.NewServer() // The backend of the environment already exists.
	// Backends differ: with a batch of two, which is often full, with the default batch, and without batches.
	w.Backend = w.Server.Backend("main", [][]fake.Option{{fake.BatchSize(2)}, {}, {fake.ReadOnly()}}[i%3]...)
	w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.NS}})
	w.rec = record(w.Client)
	w.start()
	t.Cleanup(func() { w.Stop() })
	return w
}

func (w *modelWorker) now() time.Time { return time.Unix(w.clock.Load(), 0).UTC() }

// start runs the operator, with the worker's clock and without jitter.
func (w *modelWorker) start() {
	w.Serve(w.Server.Kinds(),
		operator.WithFlags(func(f *operator.Flags) { f.DefaultCleanupPolicy = string(w.flag) }),
		operator.WithRandom(func() float64 { return 0 }),
		operator.WithClock(func() time.Time {
			w.rec.update(func() { w.passes.Add(1) })
			return w.now()
		}))
}

// modelPick draws one of the options, each with the same probability.
func modelPick[T any](r *modelRun, label string, options ...T) T {
	return testenv.Pick(r.rt, label, options...)
}

// modelOther is modelPick without the present option.
func modelOther[T comparable](r *modelRun, label string, is T, options ...T) T {
	return modelPick(r, label, slices.DeleteFunc(slices.Clone(options), func(o T) bool { return o == is })...)
}

// oneIn draws true with a probability of 1/n.
func (r *modelRun) oneIn(n int, label string) bool {
	options := make([]bool, n)
	options[n-1] = true
	return modelPick(r, label, options...)
}

// A modelRun is one sequence.
type modelRun struct {
	*modelWorker
	rt *rapid.T
	m  *model

	name, storeLabel string
	// es is the ExternalSecret as last written; before is its status before the step.
	es           *v1alpha1.ExternalSecret
	before       v1alpha1.ExternalSecretStatus
	incarnations map[types.UID]int
	uids         map[string]types.UID
	// marks holds the marks of the Secrets before the step.
	marks map[string]string
	// mine holds the resourceVersions of the test's own writes.
	mine    map[string]bool
	wrote   map[string]bool
	repairs map[string]func()
	// base is the number of passes before the step.
	base      int64
	values    int
	snapshots []modelSnapshot
	// calls counts the steps since the operator last retried. throttled is true once the provider has throttled a
	// call.
	calls     int
	throttled bool
	// former holds the calls of the step before.
	former []fake.Record
	// advanced is true if the clock moved in this step.
	advanced bool
	// The writes of the test itself that the watch must report: the resourceVersion, or the uid of a deleted
	// Secret.
	expectedVersions []string
	trace            []string
}

// sequence runs one sequence.
func (w *modelWorker) sequence(rt *rapid.T) {
	w.count++
	r := &modelRun{
		modelWorker: w, rt: rt, name: fmt.Sprintf("s%d", w.count),
		incarnations: map[types.UID]int{}, uids: map[string]types.UID{},
		mine: map[string]bool{}, repairs: map[string]func(){},
		m: &model{
			running: true, flag: w.flag, now: w.now(),
			remotes: map[string]string{}, faults: map[string]provider.Class{}, secrets: map[string]*modelSecret{},
		},
	}
	r.m.between = func() { r.snapshots = append(r.snapshots, r.snapshot()) }
	r.storeLabel = target.StoreLabel(fakev1.Group, "FakeStore", w.NS, r.name)
	defer r.clear()
	r.must(w.API.Create(w.Ctx, w.Store(r.name, "main")))
	r.step(modelStep{"begin", 1, nil, (*modelRun).begin})
	for range modelSteps {
		// The sixth revert within ten minutes would be delayed, which this test does not cover.
		if r.m.reverts >= 4 {
			r.step(modelClock)
		}
		r.step(r.choose(false))
	}
	if r.m.exists {
		r.step(modelRefresh) // Late effects of the last step come before the refresh.
	}
}

// choose draws one of the steps that are possible now.
func (r *modelRun) choose(offline bool) modelStep {
	var possible []string
	steps := map[string]modelStep{}
	for _, s := range modelStepsOf {
		if (s.can == nil || s.can(r)) && (!offline || s.name != "restart") {
			steps[s.name] = s
			possible = append(possible, slices.Repeat([]string{s.name}, s.weight)...)
		}
	}
	return steps[modelPick(r, "step", possible...)]
}

// step performs a step, and waits until the cluster matches the model.
func (r *modelRun) step(s modelStep) {
	r.m.woken, r.m.asked, r.m.refreshed, r.m.wrote = false, false, false, map[string]bool{}
	r.m.rehashed, r.expectedVersions = false, nil
	r.snapshots = []modelSnapshot{r.snapshot()}
	r.base = r.passes.Load()
	r.before, r.marks = v1alpha1.ExternalSecretStatus{}, map[string]string{}
	r.rec.update(func() {
		if es := r.rec.objects[r.name]; es != nil {
			r.before = es.Status
		}
		for _, name := range modelTargets {
			r.marks[name] = r.markOf(name)
		}
	})
	r.advanced = false
	if r.calls++; r.m.retrying || !r.m.exists {
		r.calls = 0
	}
	r.former = r.Backend.Calls()
	r.Backend.Reset()

	what := s.do(r)
	what += r.requestRefresh()
	r.snapshots = append(r.snapshots, r.snapshot())
	r.m.predictReconcile()
	r.snapshots = append(r.snapshots, r.snapshot())
	r.trace = append(r.trace, fmt.Sprintf("%3d. %s %s: %s -> %s", len(r.trace), time.Now().Format("05.000"), s.name, what, r.m.reason))
	r.expect(s.name, func() string {
		for _, f := range []func() string{r.mirror, r.status, r.missingReconcile} {
			if wrong := f(); wrong != "" {
				return wrong
			}
		}
		return ""
	})
	// A delayed read may come when the model no longer expects one.
	if !r.m.asked && !r.m.retrying && r.m.exists && r.calls > 2 && !r.throttled && r.reads() > 0 {
		r.fail(s.name, fmt.Sprintf("the provider was read without a reason: %+v", r.Backend.Calls()))
	}
	if wrong := r.checkVersions(r.snapshots); wrong != "" {
		r.fail(s.name, wrong)
	}
}

func (r *modelRun) expect(step string, missing func() string) {
	if what := r.rec.wait(missing); what != "" {
		r.fail(step, what)
	}
}

// status returns how the status of the ExternalSecret differs from the model; empty if it does not.
func (r *modelRun) status() string { //nolint:gocyclo // One case for each thing that can be missing.
	es := r.rec.objects[r.name]
	switch {
	case !r.m.exists && es != nil:
		return "the ExternalSecret still exists"
	case !r.m.exists:
		return ""
	case es == nil || es.UID != r.es.UID:
		return "the ExternalSecret does not exist"
	case !r.m.running || r.m.reason == "":
		return ""
	}
	c := meta.FindStatusCondition(es.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case c == nil:
		return "the ExternalSecret has no Ready condition"
	case es.Status.ObservedGeneration != r.es.Generation || c.ObservedGeneration != r.es.Generation:
		return fmt.Sprintf("generation %d is not observed: %+v", r.es.Generation, es.Status)
	case c.Reason != r.m.reason:
		return fmt.Sprintf("Ready is %s: %q, want %s", c.Reason, c.Message, r.m.reason)
	case (c.Status == "True") != r.m.ready:
		return fmt.Sprintf("Ready is %s, want %t", c.Status, r.m.ready)
	case c.Reason == v1alpha1.ReasonSecretSyncedError && !strings.HasPrefix(c.Message, string(r.m.class)+":"):
		return fmt.Sprintf("the message of Ready is %q, want %s", c.Message, r.m.class)
	case r.m.request == r.m.served && r.m.request > 0 && es.Status.ObservedRefreshRequest != strconv.Itoa(r.m.request):
		return fmt.Sprintf("the refresh %q was served, want %d", es.Status.ObservedRefreshRequest, r.m.request)
	case r.m.reason != v1alpha1.ReasonSuspended && r.m.request > 0 && es.Status.AttemptedRefreshRequest != strconv.Itoa(r.m.request):
		return fmt.Sprintf("the refresh %q was answered, want %d", es.Status.AttemptedRefreshRequest, r.m.request)
	case r.m.rehashed && es.Status.ObservedMetadataHash == r.before.ObservedMetadataHash:
		return "the labels are not observed"
	case r.m.refreshed && (es.Status.RefreshTime == nil || r.m.now.Sub(es.Status.RefreshTime.Time) >= 10*time.Minute):
		return fmt.Sprintf("refreshTime is %v, want %v", es.Status.RefreshTime, r.m.now)
	}
	return ""
}

// reads returns how often the sequence's remote secrets were read in this step.
func (r *modelRun) reads() int {
	n := 0
	for _, e := range modelRemotes {
		n += r.Backend.ReadsOf(r.remote(e))
	}
	return n
}

// missingReconcile returns which reconcile or read of the step is missing; empty for none.
func (r *modelRun) missingReconcile() string {
	m := r.m
	switch {
	case !m.exists, !m.running, !m.woken, m.reason == v1alpha1.ReasonSuspended, m.reason == v1alpha1.ReasonInvalidSpec:
		return ""
	case r.passes.Load() <= r.base:
		return "the operator has not reconciled the object"
	case m.refreshed && r.reads() == 0 && !r.advanced:
		return "the provider was not read"
	}
	return ""
}

// fail ends the sequence.
func (r *modelRun) fail(step, what string) {
	var es string
	r.rec.wait(func() string {
		if o := r.rec.objects[r.name]; o != nil {
			es = fmt.Sprintf("generation %d, status %+v", o.Generation, o.Status)
		}
		return ""
	})
	all := fmt.Sprintf("%s\n%s\nthe model: %s\nthe ExternalSecret: %s\nformer calls: %+v\ncalls: %+v", strings.Join(r.trace, "\n"), what, r.m, es, r.former, r.Backend.Calls())
	if !r.failed {
		r.failed = true
		r.halt.Store(true)
		r.Logf("%s fails after this sequence:\n%s", step, all)
	}
	r.rt.Log(all)
	// The message has no names and values, so that rapid recognizes the same failure.
	r.rt.Fatalf("%s: the cluster differs from the model", step)
}

// clear ends a sequence, and deletes its objects.
func (r *modelRun) clear() {
	for _, repair := range r.repairs {
		repair()
	}
	if !r.m.running {
		r.start()
	}
	ctx := context.Background()
	_ = client.IgnoreNotFound(r.API.Delete(ctx, &v1alpha1.ExternalSecret{ObjectMeta: r.Meta(r.name)}))
	_ = client.IgnoreNotFound(r.API.Delete(ctx, &fakev1.FakeStore{ObjectMeta: r.Meta(r.name)}))
	if wrong := r.rec.wait(func() string {
		if r.rec.objects[r.name] != nil {
			return "the ExternalSecret still exists"
		}
		return ""
	}); wrong != "" {
		r.Error(wrong)
	}
	if err := r.API.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(r.NS)); err != nil {
		r.Error(err)
	}
	if wrong := r.rec.wait(func() string {
		if len(r.rec.secrets) > 0 {
			return "the Secrets still exist"
		}
		return ""
	}); wrong != "" {
		r.Error(wrong)
	}
	r.rec.take()
}

// change updates the ExternalSecret.
func (r *modelRun) change(change func(*v1alpha1.ExternalSecret)) {
	es := r.es.DeepCopy()
	r.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := r.API.Get(r.Ctx, client.ObjectKeyFromObject(r.es), es); err != nil {
			return err
		}
		change(es)
		return r.API.Update(r.Ctx, es)
	}))
	r.es = es
}

func (r *modelRun) must(err error) {
	if err != nil {
		r.rt.Fatalf("the API server returned: %v", err)
	}
}
