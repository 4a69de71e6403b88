//go:build long

package scenarios

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// TestEventsKilled kills the operator at random moments under a stream of changes that a queue reports, which delivers messages
// again, twice, and in any order. In the end every Secret is current, although no object polls, and no workload was restarted twice for the
// same data.
func TestEventsKilled(t *testing.T) {
	t.Parallel()
	const kills = 50
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := newStream(t, kills)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	for i, do := range []func(*rand.Rand){f.change, f.disturb} {
		running.Go(func() { repeat(ctx, rand.New(rand.NewPCG(seed, uint64(i))), do) })
	}
	running.Go(func() { f.roll(ctx, t) })
	killer := rand.New(rand.NewPCG(seed, 2))
	for round := range kills {
		p, err := f.installation.StartModule(t.Context(), stack.ProviderAWS)
		must(t, err)
		if round == 0 { // A process may need longer than a round for its first restart.
			eventually(t, f.restarted)
		}
		pause(t.Context(), killer, time.Second)
		f.last(round)
		pause(t.Context(), killer, 60*time.Millisecond)
		must(t, p.Kill())
	}
	p, err := f.installation.StartModule(t.Context(), stack.ProviderAWS)
	must(t, err)
	t.Cleanup(func() {
		must(t, p.Stop())
		if t.Failed() {
			t.Log(p.Log())
		}
	})
	for name, value := range f.current() {
		wantValue(t, f.ns, name, "value", value)
	}
	eventually(t, func() string { return f.restarting(t) })
	stop()
	running.Wait()

	changes, restarts := 0, 0
	for name, hashes := range f.hashes {
		changes, restarts = changes+f.count[name], restarts+len(hashes)
		if distinct := len(slices.Compact(slices.Sorted(slices.Values(hashes)))); distinct != len(hashes) {
			t.Errorf("seed %d: %s was restarted %d times for %d contents", seed, name, len(hashes), distinct)
		}
	}
	t.Logf("%d changes, %d restarts", changes, restarts)
}

// stream are objects whose remote secrets change again and again, each with a Deployment.
type stream struct {
	ns           string
	queue        *emulator.Queue
	installation *stack.Installation

	mu sync.Mutex
	// ended is the number of objects whose remote secrets do not change any more.
	ended int
	// values are the current values, and count their number so far, by the name of the object.
	values map[string]string
	count  map[string]int
	// hashes are the annotations that the pod template of a Deployment has had.
	hashes map[string][]string
}

func newStream(t *testing.T, objects int) *stream {
	t.Helper()
	f := &stream{
		ns: namespace(t, "events-killed"), queue: shared.AWS.AddQueue("events-killed"),
		values: map[string]string{}, count: map[string]int{}, hashes: map[string][]string{},
	}
	var err error
	f.installation, err = upgrade(t.Context(), shared, "direct-secrets", "operators-events-killed", stack.Values{"global": stack.Values{
		"scope": stack.Values{"namespaces": []string{f.ns}}, "crds": stack.Values{"enabled": false},
		"leaderElection": stack.Values{"enabled": false}, "workloadRestarts": stack.Values{"enabled": true},
	}})
	must(t, err)
	var store awsv1.AWSSecretsManager
	must(t, shared.Admin.Get(t.Context(), types.NamespacedName{Namespace: f.ns, Name: "store"}, &store))
	source := &awsv1.AWSEventSource{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "changes"}}
	source.Spec.AWSSpec = store.Spec.AWSSpec
	source.Spec.Endpoint, source.Spec.SQS.QueueURL = shared.AWS.URL(), f.queue.URL
	must(t, shared.Admin.Create(t.Context(), source))
	for i := range objects {
		name := objectName(i)
		f.put(i)
		es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name}}
		es.Spec.StoreRef = &v1alpha1.StoreRef{Kind: "AWSSecretsManager", Name: "store"}
		es.Spec.RefreshInterval = "24h"
		es.Spec.Data = []v1alpha1.DataEntry{{SecretKey: "value", RemoteRef: v1alpha1.RemoteRef{Key: f.ns + "/" + name}}}
		es.Spec.Target.Restart = &v1alpha1.Restart{Auto: true, Window: "1s"}
		must(t, shared.Admin.Create(t.Context(), es))
		must(t, shared.Admin.Create(t.Context(), stack.Deployment(f.ns, name)))
	}
	return f
}

// repeat calls f at random moments until ctx ends.
func repeat(ctx context.Context, random *rand.Rand, f func(*rand.Rand)) {
	for pause(ctx, random, 60*time.Millisecond) {
		f(random)
	}
}

// pause waits for a random time, not for a condition. It returns false if ctx ends.
func pause(ctx context.Context, random *rand.Rand, atMost time.Duration) bool {
	after := time.NewTimer(time.Duration(random.Int64N(int64(atMost))))
	defer after.Stop()
	select {
	case <-after.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// put changes the remote secret of an object to a value that it never had.
func (f *stream) put(i int) {
	name := objectName(i)
	f.count[name]++
	f.values[name] = fmt.Sprintf("%s-%d", name, f.count[name])
	shared.AWS.Put(f.ns+"/"+name, []byte(f.values[name]))
}

func objectName(i int) string { return fmt.Sprintf("es-%d", i) }

// change changes a remote secret that has not had its last change.
func (f *stream) change(random *rand.Rand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if left := len(f.count) - f.ended; left > 0 {
		f.put(f.ended + random.IntN(left))
	}
}

// last changes the remote secret of an object for the last time.
func (f *stream) last(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(i)
	f.ended = i + 1
}

func (f *stream) disturb(random *rand.Rand) { f.queue.Disturb(random) }

func (f *stream) current() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.values)
}

// roll plays the controller of Deployments: each change of a pod template is rolled out at once. It records the annotations.
func (f *stream) roll(ctx context.Context, t *testing.T) {
	watcher, err := client.NewWithWatch(shared.Config(), client.Options{Scheme: stack.Scheme()})
	if err != nil {
		t.Error(err)
		return
	}
	w, err := watcher.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(f.ns))
	if err != nil {
		t.Error(err)
		return
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.ResultChan():
			d, ok := e.Object.(*appsv1.Deployment)
			if !ok {
				t.Errorf("the watch ended: %v", e.Object)
				return
			}
			f.note(d)
			if err := shared.RollOut(ctx, d); err != nil && ctx.Err() == nil { // After a conflict, the event of the other change follows.
				t.Error(err)
			}
		}
	}
}

// note records the annotation of a pod template.
func (f *stream) note(d *appsv1.Deployment) {
	for key, hash := range d.Spec.Template.Annotations {
		if !strings.HasPrefix(key, v1alpha1.RestartAnnotationPrefix) {
			continue
		}
		f.mu.Lock()
		if all := f.hashes[d.Name]; len(all) == 0 || all[len(all)-1] != hash {
			f.hashes[d.Name] = append(all, hash)
		}
		f.mu.Unlock()
	}
}

// restarted returns why no workload counts as restarted yet; empty if one does.
func (f *stream) restarted() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.hashes) == 0 {
		return "no workload was restarted"
	}
	return ""
}

// restarting returns an object whose restarts are not complete; empty if there is none.
func (f *stream) restarting(t *testing.T) string {
	var list v1alpha1.ExternalSecretList
	must(t, shared.Admin.List(t.Context(), &list, client.InNamespace(f.ns)))
	for i := range list.Items {
		es := &list.Items[i]
		if c := meta.FindStatusCondition(es.Status.Conditions, v1alpha1.ConditionWorkloadsRestarted); c == nil || c.Reason != v1alpha1.ReasonUpToDate {
			return fmt.Sprintf("WorkloadsRestarted of %s is %+v", es.Name, c)
		}
	}
	return ""
}
