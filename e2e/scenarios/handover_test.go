package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/target"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// handOverSeed repeats the choices of a run; what happens when still depends on the machine.
var handOverSeed = flag.Uint64("handover.seed", 0, "seed of TestHandOver; 0 takes any")

// Classes of stores. Stores bear the name of their class.
const (
	// shared between an operator that is up to date and one whose watches are late.
	contested = "a"
	// served by an operator whose watches are late, and by no other.
	late = "b"
)

const (
	handOverNamespace = "handover"
	// More events than this are those of which an object has the first half.
	handOverSubjects, eventsEach = 25, 40
	// patience bounds each wait.
	patience = 90 * time.Second
)

// TestHandOver changes and re-creates ExternalSecrets and hands them from one operator to another,
// all at once and faster than those see it: of the operators that write the same Secrets, one is up
// to date and two have late watches. No version that a Secret ever had may be wrong.
func TestHandOver(t *testing.T) {
	seed := *handOverSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	begin := time.Now()
	ctx, ns := t.Context(), handOverNamespace
	must(t, shared.CreateNamespace(ctx, ns))
	for _, class := range []string{contested, late} {
		must(t, shared.AWSStore(ctx, ns, class, func(s *awsv1.AWSSecretsManager) { s.Spec.Controller = class }))
	}
	for n := range eventsEach + 10 {
		shared.AWS.Put(remoteKey(n), []byte(remoteValue(n)))
	}
	h := record(t, ns)
	kubeconfig := "--kubeconfig=" + latePath(t, seed)
	ahead := start(t, ns, "--controller-class="+contested)
	behind := []*stack.Process{
		start(t, ns, "--controller-class="+contested, kubeconfig),
		start(t, ns, "--controller-class="+late, kubeconfig),
	}

	subjects := make([]*subject, handOverSubjects)
	var all sync.WaitGroup
	for i := range subjects {
		s := &subject{
			name: fmt.Sprintf("es-%d", i), history: h,
			random: rand.New(rand.NewPCG(seed, uint64(i))), counts: map[string]int{}, //nolint:gosec // It shall be repeatable.
		}
		subjects[i] = s
		all.Go(func() {
			if err := s.live(ctx); err != nil {
				t.Errorf("seed %d: %s: %v", seed, s.name, err)
			}
			if i%3 == 0 {
				if err := s.leave(ctx, i%2 == 0); err != nil {
					t.Errorf("seed %d: %s: %v", seed, s.name, err)
				}
			}
		})
	}
	all.Wait()

	// Those that are late have seen all of this when they serve what came after it. The other must
	// not do so in their place.
	must(t, ahead.Stop())
	for _, class := range []string{contested, late} {
		s := &subject{name: "last-" + class, history: h, random: rand.New(rand.NewPCG(seed, 0)), counts: map[string]int{}} //nolint:gosec // As above.
		must(t, s.create(ctx, s.fresh(class)))
		must(t, s.inStep(ctx))
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
		for _, w := range append(wrongs(history, s.wishes), s.astray(history)...) {
			t.Errorf("seed %d: Secret %s: %s", seed, s.name, w)
		}
		for k, n := range s.counts {
			counts[k] += n
		}
	}
	t.Logf("seed %d: %v, %d versions of Secrets, %s", seed, counts, versions, time.Since(begin).Round(time.Second))
}

// latePath returns the path of a kubeconfig that leads to the API server through watches that are
// late, each by a time of its own that changes all the while.
func latePath(t *testing.T, seed uint64) string {
	t.Helper()
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, handOverSubjects)) //nolint:gosec // It shall be repeatable.
	proxy, err := shared.StartProxy(func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return 50*time.Millisecond + time.Duration(random.Int64N(int64(950*time.Millisecond)))
	})
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Stop()) })
	path, err := proxy.Kubeconfig(t.Context(), stack.ProviderAWS)
	must(t, err)
	return path
}

func remoteKey(n int) string   { return fmt.Sprintf("handover/%d", n) }
func remoteValue(n int) string { return fmt.Sprintf("value-%d", n) }

// A generation of an ExternalSecret; its uid tells the incarnations apart.
type generation struct {
	UID    types.UID
	Number int64
}

// A wish is what one generation asks for.
type wish struct {
	generation
	data  map[string]string
	owned bool
}

func (w wish) owners() []types.UID {
	if !w.owned {
		return nil
	}
	return []types.UID{w.UID}
}

// A subject is an ExternalSecret, in all its incarnations.
type subject struct {
	name    string
	history *history
	random  *rand.Rand

	// n numbers the specs; wishes are all that were asked for, in that order.
	n      int
	spec   v1alpha1.ExternalSecretSpec
	wishes []wish
	counts map[string]int
	// left is the length of the history when the object was gone for good; zero if it was not.
	left int
	// gone is true if the Secret went with it.
	gone bool
}

// The key of a person, and what a person writes into a key of ours.
const (
	foreignKey, foreignValue = "foreign", "kept"
	ownKey, edited           = "value", "edited-"
)

// fresh returns a spec that yields other keys and other values than any before.
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

func (s *subject) class() string { return s.spec.StoreRef.Name }

func (s *subject) other() string {
	if s.class() == contested {
		return late
	}
	return contested
}

// live goes through all events, and ends in step.
func (s *subject) live(ctx context.Context) error {
	if err := s.create(ctx, s.fresh(contested)); err != nil {
		return err
	}
	for events := 0; events < eventsEach; events++ {
		var err error
		switch n := s.random.IntN(9); {
		case n < 3:
			s.counts["changes"]++
			err = s.change(ctx, s.fresh(s.class()))
		case n < 6:
			s.counts["re-creations"]++
			err = s.recreate(ctx)
		case n < 8 || events == eventsEach-1:
			s.counts["switches"]++
			err = s.change(ctx, s.fresh(s.other()))
		default: // There and back again, to what is in the Secret already.
			s.counts["switches"] += 2
			events++
			was := s.spec
			err = errors.Join(s.change(ctx, s.fresh(s.other())), s.change(ctx, was))
		}
		if err = errors.Join(err, s.pace(ctx)); err != nil {
			return err
		}
	}
	return s.inStep(ctx)
}

// pace decides how long the next event waits, and gives the operators something to mend.
func (s *subject) pace(ctx context.Context) error {
	switch n := s.random.IntN(10); {
	case n < 3: // At once.
	case n < 5:
		pause := time.NewTimer(time.Duration(s.random.Int64N(int64(400 * time.Millisecond))))
		<-pause.C // The moment is what is random here; nothing is waited for.
	default:
		if err := s.inStep(ctx); err != nil {
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

// leave deletes the ExternalSecret for good, and maybe its Secret, which does not come back.
func (s *subject) leave(ctx context.Context, secretToo bool) error {
	s.spec.Target.CleanupPolicy = v1alpha1.CleanupNever
	if err := errors.Join(s.change(ctx, s.spec), s.inStep(ctx)); err != nil {
		return err
	}
	if err := shared.Admin.Delete(ctx, s.object()); err != nil {
		return err
	}
	if s.gone = secretToo; s.gone {
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
	s.wished(es)
	return err
}

func (s *subject) change(ctx context.Context, spec v1alpha1.ExternalSecretSpec) error {
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	es := s.object()
	err = shared.Admin.Patch(ctx, es, client.RawPatch(types.MergePatchType, patch))
	s.wished(es)
	return err
}

// recreate deletes the object and makes it again; where it owns the Secret, sometimes only after the
// collector has taken that.
func (s *subject) recreate(ctx context.Context) error {
	if err := shared.Admin.Delete(ctx, s.object()); err != nil {
		return err
	}
	return s.create(ctx, s.fresh(s.class()))
}

func (s *subject) wished(es *v1alpha1.ExternalSecret) {
	s.spec = es.Spec
	w := wish{
		generation: generation{es.UID, es.Generation},
		data:       map[string]string{},
		owned:      es.Spec.Target.CleanupPolicy != v1alpha1.CleanupNever,
	}
	for _, d := range es.Spec.Data {
		w.data[d.SecretKey] = "value-" + strings.TrimPrefix(d.RemoteRef.Key, "handover/")
	}
	s.wishes = append(s.wishes, w)
}

// write is what a person does with kubectl.
func (s *subject) write(ctx context.Context, key, value string) error {
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{key: []byte(value)}})
	if err != nil {
		return err
	}
	err = shared.Admin.Patch(ctx, s.secret(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-edit"))
	return client.IgnoreNotFound(err)
}

// inStep waits until the Secret is as the last spec asks.
func (s *subject) inStep(ctx context.Context) error {
	last := s.wishes[len(s.wishes)-1]
	return s.history.until(ctx, s.name, fmt.Sprintf("is in step with %+v", last), func(v version) bool {
		return !v.Deleted && v.By.UID == last.UID && differs(v, last) == ""
	})
}

// astray says what is wrong with a Secret in the end.
func (s *subject) astray(history []version) []string {
	last := s.wishes[len(s.wishes)-1]
	if s.left == 0 {
		if d := differs(history[len(history)-1], last); d != "" {
			return []string{"not in step in the end: -want, +got:\n" + d}
		}
	}
	for _, v := range history[s.left:] {
		if s.left > 0 && (s.gone || v.Deleted || differs(v, last) != "") {
			return []string{fmt.Sprintf("after the object was gone: %+v", v)}
		}
	}
	return nil
}

// A version is a state that a Secret has had, or its end.
type version struct {
	UID     types.UID
	Deleted bool
	Mark    string
	By      generation
	Data    map[string]string
	Owners  []types.UID
}

func newVersion(s *corev1.Secret, deleted bool) version {
	m := target.Marks(s.Annotations)[s.Name]
	v := version{
		UID: s.UID, Deleted: deleted,
		Mark: s.Annotations[target.MarkKey(s.Name)], By: generation{m.UID, m.Generation},
		Data: map[string]string{},
	}
	for k, d := range s.Data {
		v.Data[k] = string(d)
	}
	for _, o := range s.OwnerReferences {
		v.Owners = append(v.Owners, o.UID)
	}
	return v
}

// differs says how a version is not what was wished for; a foreign key is nobody's wish.
func differs(v version, w wish) string {
	type content struct {
		Data   map[string]string
		Owners []types.UID
	}
	want, got := content{w.data, w.owners()}, content{Data: maps.Clone(v.Data), Owners: v.Owners}
	delete(got.Data, foreignKey)
	return cmp.Diff(want, got)
}

// wrongs judges all versions of a Secret of one name. Marks never go back, not even when the Secret
// is created anew; each version holds what its mark stands for, and nothing else of ours; and what a
// person wrote stays, but in our keys, where only an operator that writes no data may leave it.
func wrongs(history []version, wishes []wish) []string {
	var found []string
	var before version
	var data map[string]string // What an operator wrote last.
	newest := 0
	for i, v := range history {
		if v.Deleted {
			before = version{}
			continue
		}
		wrong := func(format string, args ...any) {
			found = append(found, fmt.Sprintf("version %d: %s\nwas: %+v\nis:  %+v", i, fmt.Sprintf(format, args...), before, v))
		}
		if before.Data[foreignKey] != "" && v.Data[foreignKey] != foreignValue {
			wrong("the foreign key was changed")
		}
		nth := slices.IndexFunc(wishes, func(w wish) bool { return w.generation == v.By })
		if nth < 0 {
			wrong("the mark is nobody's")
			continue
		}
		if nth < newest {
			wrong("back from wish %d to %d", newest, nth)
		}
		newest = max(newest, nth)
		// A change of the owner may go ahead of one of the data.
		ownerOnly := v.By != before.By && !slices.Equal(v.Owners, before.Owners) && maps.Equal(v.Data, before.Data)
		same := v.Mark == before.Mark || ownerOnly
		if !same {
			data = wishes[nth].data
		}
		w := wish{generation: v.By, data: maps.Clone(data), owned: wishes[nth].owned}
		if e := v.Data[ownKey]; same && strings.HasPrefix(e, edited) {
			w.data[ownKey] = e
		}
		if d := differs(v, w); d != "" {
			wrong("not what wish %d asks for: -want, +got:\n%s", nth, d)
		}
		before = v
	}
	return found
}

// A history holds all versions of the Secrets of a namespace.
type history struct {
	mu      sync.Mutex
	secrets map[string][]version
	changed chan struct{}
	err     error
}

// record keeps a history until the test ends.
func record(t *testing.T, namespace string) *history {
	t.Helper()
	clients, err := kubernetes.NewForConfig(shared.Config())
	must(t, err)
	secrets := clients.CoreV1().Secrets(namespace)
	list, err := secrets.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	w, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return secrets.Watch(ctx, o) },
	})
	must(t, err)
	h := &history{secrets: map[string][]version{}, changed: make(chan struct{})}
	go func() {
		for e := range w.ResultChan() {
			h.add(e)
		}
	}()
	return h
}

func (h *history) add(e watch.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := e.Object.(*corev1.Secret); ok {
		h.secrets[s.Name] = append(h.secrets[s.Name], newVersion(s, e.Type == watch.Deleted))
	} else if e.Type == watch.Error {
		h.err = fmt.Errorf("the history has a gap: %+v", e.Object)
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *history) of(secret string) []version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.secrets[secret])
}

// until waits until the last version of a Secret is as it shall be.
func (h *history) until(ctx context.Context, secret, what string, ok func(version) bool) error {
	deadline := time.After(patience)
	for {
		h.mu.Lock()
		changed, err := h.changed, h.err
		var last version
		if all := h.secrets[secret]; len(all) > 0 {
			last = all[len(all)-1]
		}
		h.mu.Unlock()
		if err != nil || ok(last) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("the Secret never %s, but is %+v", what, last)
		}
	}
}
