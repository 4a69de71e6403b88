package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// handOverSeed repeats the choices of a run. The timing still depends on the machine.
var handOverSeed = flag.Uint64("handover.seed", 0, "seed of TestHandOver; 0 takes any")

// These are the classes of stores. Each store has the name of its class.
const (
	// sharedClass is served by an up-to-date operator, and by one with delayed watches.
	sharedClass = "a"
	// late is served only by an operator with delayed watches.
	late = "b"
)

const (
	handOverNamespace = "handover"
	// Together these are 1,000 events.
	handOverSubjects, eventsEach = 25, 40
	// waitTimeout limits each wait.
	waitTimeout = 90 * time.Second
)

// TestHandOver changes and re-creates ExternalSecrets and moves them from one operator to another, concurrently
// and faster than the operators see it. Only one of the three operators that write these Secrets is up to date.
// No version of a Secret may ever be wrong.
func TestHandOver(t *testing.T) {
	seed := *handOverSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	begin := time.Now()
	ctx, ns := t.Context(), handOverNamespace
	must(t, shared.CreateNamespace(ctx, ns))
	for _, class := range []string{sharedClass, late} {
		must(t, shared.AWSStore(ctx, ns, class, func(s *awsv1.AWSSecretsManager) { s.Spec.Controller = class }))
	}
	for n := range eventsEach + 10 {
		shared.AWS.Put(remoteKey(n), []byte(remoteValue(remoteKey(n))))
	}
	h := record(t, ns)
	kubeconfig := "--kubeconfig=" + latePath(t, installFor(t, ns, ""), stack.ProviderAWS, seed)
	ahead := start(t, ns, "--controller-class="+sharedClass)
	behind := []*stack.Process{
		start(t, ns, "--controller-class="+sharedClass, kubeconfig),
		start(t, ns, "--controller-class="+late, kubeconfig),
	}

	subjects := make([]*subject, handOverSubjects)
	for i := range subjects {
		subjects[i] = newSubject(fmt.Sprintf("es-%d", i), h, rand.NewPCG(seed, uint64(i)))
	}
	each := func(do func(i int, s *subject) error) {
		var all sync.WaitGroup
		for i, s := range subjects {
			all.Go(func() {
				if err := do(i, s); err != nil {
					t.Errorf("seed %d: %s: %v", seed, s.name, err)
				}
			})
		}
		all.Wait()
	}
	each(func(_ int, s *subject) error { return s.live(ctx) })
	each(func(i int, s *subject) error {
		if t.Failed() || i%3 != 0 {
			return nil
		}
		return s.deleteFinally(ctx, i%2 == 0)
	})
	each(func(_ int, s *subject) error {
		if t.Failed() || s.left > 0 {
			return nil
		}
		return h.untilObserved(ctx, s.name, s.expectations[len(s.expectations)-1].generation)
	})

	// The operators with delayed watches have seen all of this once they serve what follows. The up-to-date one
	// must not serve it instead.
	must(t, ahead.Stop())
	for _, class := range []string{sharedClass, late} {
		s := newSubject("last-"+class, h, rand.NewPCG(seed, 0))
		must(t, s.create(ctx, s.fresh(class)))
		must(t, s.waitUntilInSync(ctx))
	}
	for i, p := range behind {
		n, err := p.Metric(`directsecrets_syncs_total{kind="ExternalSecret",result="SecretSynced"}`)
		must(t, err)
		if n < handOverSubjects {
			t.Errorf("operator %d whose watches are late has synced %v times, so it proves nothing", i, n)
		}
		must(t, p.Stop())
	}
	must(t, shared.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "end"}}))
	must(t, h.until(ctx, "end", "is recorded", func(v version) bool { return v.UID != "" }))

	counts, versions := map[string]int{}, 0
	for _, s := range subjects {
		history := h.of(s.name)
		versions += len(history)
		for _, w := range slices.Concat(wrongs(history, s.expectations), s.astray(history), h.regressions(s.name)) {
			t.Errorf("seed %d: %s: %s", seed, s.name, w)
		}
		for k, n := range s.counts {
			counts[k] += n
		}
	}
	t.Logf("seed %d: %v, %d versions of Secrets, %s", seed, counts, versions, time.Since(begin).Round(time.Second))
}

// latePath returns the path of a kubeconfig that connects a module to the API server through delayed watches,
// each with its own, changing delay.
func latePath(t *testing.T, i *stack.Installation, module string, seed uint64) string {
	t.Helper()
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, handOverSubjects))
	proxy, err := shared.StartProxy(func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return 50*time.Millisecond + time.Duration(random.Int64N(int64(950*time.Millisecond)))
	})
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Stop()) })
	path, err := i.Kubeconfig(t.Context(), module, proxy)
	must(t, err)
	return path
}

func remoteKey(n int) string        { return fmt.Sprintf("handover/%d", n) }
func remoteValue(key string) string { return "value of " + key }

// A generation is one of an ExternalSecret. Its uid distinguishes objects that were created one after the
// other.
type generation struct {
	UID    types.UID
	Number int64
}

// An expectation is the expected result of one generation.
type expectation struct {
	generation
	data  map[string]string
	owned bool
}

func (w expectation) owners() []types.UID {
	if !w.owned {
		return nil
	}
	return []types.UID{w.UID}
}

// A subject is a series of ExternalSecrets with one name.
type subject struct {
	name    string
	history *history
	random  *rand.Rand

	// n counts the specs. expectations has one for each spec, in the same order.
	n            int
	spec         v1alpha1.ExternalSecretSpec
	expectations []expectation
	counts       map[string]int
	// left is the length of the history when the object was finally deleted, or zero.
	left int
	// deleted is set if the Secret was deleted with it.
	deleted bool
}

func newSubject(name string, h *history, random rand.Source) *subject {
	return &subject{name: name, history: h, random: rand.New(random), counts: map[string]int{}}
}

// These are a user's own key, and the value that a user writes into an operator's key.
const (
	foreignKey, foreignValue = "foreign", "kept"
	ownKey, edited           = "value", "edited-"
)

// fresh returns a spec with other keys and values than any before.
func (s *subject) fresh(class string) v1alpha1.ExternalSecretSpec {
	s.n++
	ref := v1alpha1.RemoteRef{Key: remoteKey(s.n)}
	cleanup := v1alpha1.CleanupNever
	if s.random.IntN(2) == 0 {
		cleanup = v1alpha1.CleanupOnDelete
	}
	return v1alpha1.ExternalSecretSpec{
		StoreRef: &v1alpha1.StoreRef{Kind: "AWSSecretsManager", Name: class},
		Target:   v1alpha1.Target{CleanupPolicy: cleanup},
		Data: []v1alpha1.DataEntry{
			{SecretKey: ownKey, RemoteRef: ref},
			{SecretKey: fmt.Sprintf("key-%d", s.n), RemoteRef: ref},
		},
	}
}

// never sets the cleanupPolicy that keeps the Secret when the object is deleted.
func never(spec v1alpha1.ExternalSecretSpec) v1alpha1.ExternalSecretSpec {
	spec.Target.CleanupPolicy = v1alpha1.CleanupNever
	return spec
}

func (s *subject) class() string { return s.spec.StoreRef.Name }

func (s *subject) other() string {
	if s.class() == sharedClass {
		return late
	}
	return sharedClass
}

// live goes through all events, and ends in sync.
func (s *subject) live(ctx context.Context) error {
	if err := s.create(ctx, s.fresh(sharedClass)); err != nil {
		return err
	}
	for events := 0; events < eventsEach; events++ {
		var err error
		switch n := s.random.IntN(10); {
		case n < 3:
			s.counts["changes"]++
			err = s.change(ctx, s.fresh(s.class()))
		case n < 6:
			s.counts["re-creations"]++
			err = s.recreate(ctx, s.fresh(s.class()))
		case n < 8 || events == eventsEach-1:
			s.counts["switches"]++
			err = s.change(ctx, s.fresh(s.other()))
		default:
			s.counts["switches"] += 2
			events++
			err = s.thereAndBack(ctx)
		}
		if err != nil {
			return err
		}
		if err := s.waitAndDamage(ctx); err != nil {
			return err
		}
	}
	return s.waitUntilInSync(ctx)
}

// thereAndBack switches to the other class, and back to the spec that the Secret already matches.
func (s *subject) thereAndBack(ctx context.Context) error {
	if err := s.waitUntilInSync(ctx); err != nil {
		return err
	}
	was := s.spec
	return errors.Join(s.change(ctx, s.fresh(s.other())), s.change(ctx, was))
}

// waitAndDamage waits for the next event, and damages the Secret so that the operators have something to repair.
func (s *subject) waitAndDamage(ctx context.Context) error {
	switch n := s.random.IntN(10); {
	case n < 3: // The next event follows immediately.
	case n < 5:
		pause := time.NewTimer(time.Duration(s.random.Int64N(int64(400 * time.Millisecond))))
		<-pause.C // The delay is random; it does not wait for a condition.
	default:
		if err := s.waitUntilInSync(ctx); err != nil {
			return err
		}
		if err := s.write(ctx, foreignKey, foreignValue); err != nil {
			return err
		}
	}
	switch n := s.random.IntN(10); {
	case n < 4:
		s.counts["edits"]++
		return s.write(ctx, ownKey, fmt.Sprintf("%s%d", edited, s.random.Uint64()))
	case n < 5:
		s.counts["deletions"]++
		return client.IgnoreNotFound(shared.Admin.Delete(ctx, s.secret()))
	}
	return nil
}

// deleteFinally deletes the ExternalSecret, and in some cases its Secret. The last object exists so briefly
// that the operators with delayed watches see it only after its deletion.
func (s *subject) deleteFinally(ctx context.Context, secretToo bool) error {
	s.counts["switches"]++
	s.counts["re-creations"]++
	if err := s.thenWaitUntilInSync(ctx, s.change(ctx, never(s.fresh(late)))); err != nil {
		return err
	}
	if err := s.thenWaitUntilInSync(ctx, s.recreate(ctx, never(s.fresh(sharedClass)))); err != nil {
		return err
	}
	if err := shared.Admin.Delete(ctx, s.object()); err != nil {
		return err
	}
	if s.deleted = secretToo; s.deleted {
		s.counts["deletions"]++
		if err := shared.Admin.Delete(ctx, s.secret()); err != nil {
			return err
		}
		if err := s.history.until(ctx, s.name, "is deleted", func(v version) bool { return v.Deleted }); err != nil {
			return err
		}
	}
	s.left = len(s.history.of(s.name))
	return nil
}

func (s *subject) object() *v1alpha1.ExternalSecret {
	return &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: handOverNamespace, Name: s.name}}
}

func (s *subject) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: handOverNamespace, Name: s.name}}
}

func (s *subject) create(ctx context.Context, spec v1alpha1.ExternalSecretSpec) error {
	es := s.object()
	es.Spec = spec
	err := shared.Admin.Create(ctx, es)
	s.addExpectation(es)
	return err
}

func (s *subject) change(ctx context.Context, spec v1alpha1.ExternalSecretSpec) error {
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	es := s.object()
	err = shared.Admin.Patch(ctx, es, client.RawPatch(types.MergePatchType, patch))
	s.addExpectation(es)
	return err
}

// recreate deletes the object and creates it again. If it owned the Secret, the garbage collector will delete
// that.
func (s *subject) recreate(ctx context.Context, spec v1alpha1.ExternalSecretSpec) error {
	if err := shared.Admin.Delete(ctx, s.object()); err != nil {
		return err
	}
	return s.create(ctx, spec)
}

func (s *subject) addExpectation(es *v1alpha1.ExternalSecret) {
	s.spec = es.Spec
	w := expectation{
		generation: generation{es.UID, es.Generation},
		data:       map[string]string{},
		owned:      es.Spec.Target.CleanupPolicy != v1alpha1.CleanupNever,
	}
	for _, d := range es.Spec.Data {
		w.data[d.SecretKey] = remoteValue(d.RemoteRef.Key)
	}
	s.expectations = append(s.expectations, w)
}

// write changes a key like a user with kubectl.
func (s *subject) write(ctx context.Context, key, value string) error {
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{key: []byte(value)}})
	if err != nil {
		return err
	}
	err = shared.Admin.Patch(ctx, s.secret(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-edit"))
	return client.IgnoreNotFound(err)
}

// waitUntilInSync waits until the Secret matches the last spec.
func (s *subject) waitUntilInSync(ctx context.Context) error {
	last := s.expectations[len(s.expectations)-1]
	err := s.history.until(ctx, s.name, fmt.Sprintf("is in sync with %+v", last), func(v version) bool {
		return !v.Deleted && v.By.UID == last.UID && differs(v, last) == ""
	})
	if err == nil {
		return nil
	}
	es := s.object()
	err = errors.Join(err, shared.Admin.Get(ctx, client.ObjectKeyFromObject(es), es))
	return fmt.Errorf("%w\nits status is %+v", err, es.Status)
}

// thenWaitUntilInSync waits for the same after an event that was no error.
func (s *subject) thenWaitUntilInSync(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	return s.waitUntilInSync(ctx)
}

// astray returns what is wrong with a Secret at the end.
func (s *subject) astray(history []version) []string {
	last := s.expectations[len(s.expectations)-1]
	if s.left == 0 {
		if d := differs(history[len(history)-1], last); d != "" {
			return []string{"not in step in the end: -want, +got:\n" + d}
		}
	}
	for _, v := range history[s.left:] {
		if s.left > 0 && (s.deleted || v.Deleted || differs(v, last) != "") {
			return []string{fmt.Sprintf("after the object was deleted: %+v", v)}
		}
	}
	return nil
}
