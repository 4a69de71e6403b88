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

// Classes of stores; each store bears the name of its class.
const (
	// contested is served by an operator that is up to date and by one whose watches are late.
	contested = "a"
	// late is served by an operator whose watches are late, and by no other.
	late = "b"
)

const (
	handOverNamespace = "handover"
	// Together 1,000 events.
	handOverSubjects, eventsEach = 25, 40
	// patience bounds each wait.
	patience = 90 * time.Second
)

// TestHandOver changes and re-creates ExternalSecrets and hands them from one operator to another, all
// at once and faster than the operators see it: of the three that write these Secrets, only one is up
// to date. No version that a Secret ever had may be wrong.
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
		shared.AWS.Put(remoteKey(n), []byte(remoteValue(remoteKey(n))))
	}
	h := record(t, ns)
	kubeconfig := "--kubeconfig=" + latePath(t, seed)
	ahead := start(t, ns, "--controller-class="+contested)
	behind := []*stack.Process{
		start(t, ns, "--controller-class="+contested, kubeconfig),
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
		return s.leave(ctx, i%2 == 0)
	})

	// Those that are late have seen all of this once they serve what comes after it. The one that is
	// not must not do so in their place.
	must(t, ahead.Stop())
	for _, class := range []string{contested, late} {
		s := newSubject("last-"+class, h, rand.NewPCG(seed, 0))
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
	random := rand.New(rand.NewPCG(seed, handOverSubjects))
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

func remoteKey(n int) string        { return fmt.Sprintf("handover/%d", n) }
func remoteValue(key string) string { return "value of " + key }

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

func newSubject(name string, h *history, random rand.Source) *subject {
	return &subject{name: name, history: h, random: rand.New(random), counts: map[string]int{}}
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

// never has the Secret stay when the object goes.
func never(spec v1alpha1.ExternalSecretSpec) v1alpha1.ExternalSecretSpec {
	spec.Target.CleanupPolicy = v1alpha1.CleanupNever
	return spec
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
		if err := s.pace(ctx); err != nil {
			return err
		}
	}
	return s.inStep(ctx)
}

// thereAndBack switches to the other class, and back to what is in the Secret already.
func (s *subject) thereAndBack(ctx context.Context) error {
	if err := s.inStep(ctx); err != nil {
		return err
	}
	was := s.spec
	return errors.Join(s.change(ctx, s.fresh(s.other())), s.change(ctx, was))
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

// leave deletes the ExternalSecret for good, and maybe its Secret, which does not come back. Its last
// incarnation lives so shortly that it is gone before those that are late see it.
func (s *subject) leave(ctx context.Context, secretToo bool) error {
	s.counts["switches"]++
	s.counts["re-creations"]++
	if err := s.settle(ctx, s.change(ctx, never(s.fresh(late)))); err != nil {
		return err
	}
	if err := s.settle(ctx, s.recreate(ctx, never(s.fresh(contested)))); err != nil {
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

// recreate deletes the object and makes it again. If it owned the Secret, the collector is on its way.
func (s *subject) recreate(ctx context.Context, spec v1alpha1.ExternalSecretSpec) error {
	if err := shared.Admin.Delete(ctx, s.object()); err != nil {
		return err
	}
	return s.create(ctx, spec)
}

func (s *subject) wished(es *v1alpha1.ExternalSecret) {
	s.spec = es.Spec
	w := wish{
		generation: generation{es.UID, es.Generation},
		data:       map[string]string{},
		owned:      es.Spec.Target.CleanupPolicy != v1alpha1.CleanupNever,
	}
	for _, d := range es.Spec.Data {
		w.data[d.SecretKey] = remoteValue(d.RemoteRef.Key)
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
	err := s.history.until(ctx, s.name, fmt.Sprintf("is in step with %+v", last), func(v version) bool {
		return !v.Deleted && v.By.UID == last.UID && differs(v, last) == ""
	})
	if err == nil {
		return nil
	}
	es := s.object()
	err = errors.Join(err, shared.Admin.Get(ctx, client.ObjectKeyFromObject(es), es))
	return fmt.Errorf("%w\nits status is %+v", err, es.Status)
}

// settle waits likewise after an event that was no error.
func (s *subject) settle(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	return s.inStep(ctx)
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

// TestWrongs shows that wrongs finds what it is there for, and nothing else.
func TestWrongs(t *testing.T) {
	wishes := []wish{
		{generation: generation{"one", 1}, data: map[string]string{"value": "1", "key-1": "1"}},
		{generation: generation{"one", 2}, data: map[string]string{"value": "2", "key-2": "2"}, owned: true},
		{generation: generation{"two", 1}, data: map[string]string{"value": "3", "key-3": "3"}},
	}
	// is returns a version as a wish wants it, changed by pairs of key and value.
	is := func(n int, changed ...string) version {
		v := version{UID: "secret", Mark: fmt.Sprint(n), By: wishes[n].generation, Data: maps.Clone(wishes[n].data), Owners: wishes[n].owners()}
		for ; len(changed) > 0; changed = changed[2:] {
			v.Data[changed[0]] = changed[1]
		}
		return v
	}
	with := func(v version, change func(*version)) version {
		change(&v)
		return v
	}
	gone := version{UID: "secret", Deleted: true}
	edit := edited + "1"
	cases := map[string]struct {
		reason  string
		history []version
		want    []string
	}{
		"Right":             {"every wish in turn", []version{is(0), is(1), is(2)}, nil},
		"Skipped":           {"not every wish needs to be seen", []version{is(0), is(2)}, nil},
		"OlderGeneration":   {"a generation came back", []version{is(1), is(0)}, []string{"version 1: back from wish 1 to 0"}},
		"OlderUID":          {"an incarnation came back", []version{is(2), is(1)}, []string{"version 1: back from wish 2 to 1"}},
		"OlderAnew":         {"a new Secret is no excuse", []version{is(2), gone, is(1)}, []string{"version 2: back from wish 2 to 1"}},
		"Nobody":            {"a mark that was never asked for", []version{with(is(0), func(v *version) { v.By.Number = 7 })}, []string{"version 0: the mark is nobody's"}},
		"Leftover":          {"a key of the generation before", []version{is(0), is(1, "key-1", "1")}, []string{"version 1: not what wish 1 asks for"}},
		"HalfFilled":        {"a key is missing", []version{with(is(0), func(v *version) { delete(v.Data, "key-1") })}, []string{"version 0: not what wish 0 asks for"}},
		"Owner":             {"no owner where there shall be one", []version{with(is(1), func(v *version) { v.Owners = nil })}, []string{"version 0: not what wish 1 asks for"}},
		"OwnerFirst":        {"the owner may change before the data", []version{is(0), is(0, "value", edit), with(is(1), func(v *version) { v.Data = is(0, "value", edit).Data })}, nil},
		"Edited":            {"a person writes, and an operator mends", []version{is(0), is(0, "value", edit), is(0)}, nil},
		"EditKept":          {"an operator writes around an edit", []version{is(0), is(0, "value", edit), is(1, "value", edit)}, []string{"version 2: not what wish 1 asks for"}},
		"EditedOther":       {"what is no edit is an operator's doing", []version{is(0), is(0, "value", "3")}, []string{"version 1: not what wish 0 asks for"}},
		"ForeignKey":        {"it is nobody's wish, and stays", []version{is(0), is(0, foreignKey, foreignValue), is(1, foreignKey, foreignValue)}, nil},
		"ForeignKeyLost":    {"it went", []version{is(0, foreignKey, foreignValue), is(1)}, []string{"version 1: the foreign key was changed"}},
		"ForeignKeyChanged": {"it was overwritten", []version{is(0, foreignKey, foreignValue), is(1, foreignKey, "2")}, []string{"version 1: the foreign key was changed"}},
		"ForeignKeyAnew":    {"it goes with its Secret", []version{is(0, foreignKey, foreignValue), gone, is(1)}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range wrongs(tc.history, wishes) {
				line, _, _ := strings.Cut(w, "\n")
				line, _, _ = strings.Cut(line, ": -want")
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
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
