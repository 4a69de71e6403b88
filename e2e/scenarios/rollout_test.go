//go:build long

package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/previous"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// A replica is a process of provider-aws behind a Proxy that counts what it writes.
type replica struct {
	*stack.Process
	t     *testing.T
	proxy *stack.Proxy
	// before are the writes that are no longer of interest.
	before map[stack.Write]int
	// needless are requests that this version also sends without a reason.
	needless []string
	// messages is set while the statuses have the messages of another version.
	messages bool
}

// writes returns what the replica has written since the last call, other than Leases.
func (r *replica) writes() map[string]int {
	r.t.Helper()
	found, all := map[string]int{}, r.proxy.Writes()
	for w, n := range all {
		if n -= r.before[w]; n > 0 && w.Resource != "leases" {
			found[strings.TrimSpace(fmt.Sprintf("%s %s %s", w.Method, w.Resource, w.Name))] += n
		}
	}
	r.before = all
	return found
}

// A rollout is a namespace with objects of provider-aws, and up to two replicas of different versions that serve it.
type rollout struct {
	t       *testing.T
	ns      string
	install *stack.Installation
	// versions are the binaries.
	versions map[string]string
	source   *corev1.Secret
	requests int
	// changes is the number of times that all values have changed, and remote the expected calls that change remote secrets.
	changes int
	remote  map[string]int
}

// These are the ExternalSecrets of a rollout: with an interval of an hour, with one of a second, and those that fail.
var (
	rareObjects     = []string{"rare-0", "rare-1", "rare-2", "rare-3", "rare-4", "rare-5"}
	frequentObjects = []string{"frequent-0", "frequent-1", "frequent-2"}
	failingObjects  = []string{"missing"}
)

// These are its PushSecrets: with an interval of an hour, and with one of a second.
const rarePush, frequentPush = "push-rare", "push-frequent"

// newRollout creates the objects.
func newRollout(t *testing.T, ns string) *rollout {
	t.Helper()
	r := &rollout{t: t, ns: namespace(t, ns), install: installFor(t, ns, ""), versions: map[string]string{}, remote: map[string]int{}}
	r.put(0)
	for _, name := range slices.Concat(rareObjects, frequentObjects, failingObjects) {
		es := pair(ns, name, r.key(name), r.key(name))
		es.Spec.Target.Template = &v1alpha1.Template{MergePolicy: "Merge", Data: map[string]string{"both": "{{ .a }} {{ .b }}"}}
		if !slices.Contains(rareObjects, name) {
			es.Spec.RefreshInterval = "1s"
		}
		must(t, shared.Admin.Create(t.Context(), es))
	}
	r.source = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "source"}, StringData: map[string]string{"value": r.value("source", 0)}}
	must(t, shared.Admin.Create(t.Context(), r.source))
	for _, name := range []string{rarePush, frequentPush} {
		ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		ps.Spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "AWSSecretsManager", Name: "store"}}
		ps.Spec.Selector.Secret = &v1alpha1.PushSecretSelector{Name: "source"}
		ps.Spec.Data = []v1alpha1.PushData{{Match: v1alpha1.PushMatch{SecretKey: "value", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: r.key(name)}}}}
		ps.Spec.DeletionPolicy = v1alpha1.PushDeletionDelete
		if name == frequentPush {
			ps.Spec.RefreshInterval = "1s"
		}
		must(t, shared.Admin.Create(t.Context(), ps))
	}
	return r
}

func (r *rollout) key(name string) string          { return r.ns + "/" + name }
func (r *rollout) value(name string, n int) string { return fmt.Sprintf("%s, %d", name, n) }
func (r *rollout) objects() []string               { return slices.Concat(rareObjects, frequentObjects) }
func (r *rollout) object(name string) *v1alpha1.ExternalSecret {
	return &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: r.ns, Name: name}}
}

// put gives each remote secret its nth value.
func (r *rollout) put(n int) {
	for _, name := range r.objects() {
		shared.AWS.Put(r.key(name), []byte(r.value(name, n)))
	}
}

// start starts a replica, and waits until it is ready. The Lease has the name that the code before the first release gives it,
// because that code has no flag for it.
func (r *rollout) start(version string) *replica {
	r.t.Helper()
	proxy, err := shared.StartProxy(nil)
	must(r.t, err)
	r.t.Cleanup(func() { must(r.t, proxy.Stop()) })
	kubeconfig, err := r.install.Kubeconfig(r.t.Context(), stack.ProviderAWS, proxy)
	must(r.t, err)
	is := &replica{Process: startBinary(r.t, r.versions[version], stack.ProviderAWS, r.ns, "--leader-elect", "--leader-election-id=provider-aws.direct-secrets.io", "--kubeconfig="+kubeconfig), t: r.t, proxy: proxy}
	if version == previous.BeforeReleases { // It writes the time of each refresh.
		is.needless = []string{pushStatus(frequentPush)}
	}
	wantReplica(r.t, is.Process)
	return is
}

// waitUntilLeader waits until a replica is the leader.
func (r *rollout) waitUntilLeader(is *replica) {
	r.t.Helper()
	eventually(r.t, func() string {
		if leader, err := is.IsLeader(); err != nil || !leader {
			return fmt.Sprintf("the replica is not the leader: %v", err)
		}
		return ""
	})
}

// waitUntilRefreshed waits until the objects with an interval of a second were refreshed three times.
func (r *rollout) waitUntilRefreshed() {
	r.t.Helper()
	const refreshes = 3
	keys := append([]string{frequentPush}, frequentObjects...)
	before := map[string]int{}
	for _, name := range keys {
		before[name] = awsCalls(r.key(name), awsReads...)
	}
	eventually(r.t, func() string {
		for _, name := range keys {
			if n := awsCalls(r.key(name), awsReads...) - before[name]; n < refreshes {
				return fmt.Sprintf("%s was read %d times, want %d", name, n, refreshes)
			}
		}
		return ""
	})
}

// change changes all values, and waits until they have arrived. It returns what the leader writes for that.
func (r *rollout) change() map[string]int {
	r.t.Helper()
	r.changes++
	r.put(r.changes)
	for _, name := range rareObjects {
		r.requests++
		refresh(r.t, r.ns, name, fmt.Sprint(r.requests))
	}
	r.source.StringData = map[string]string{"value": r.value("source", r.changes)}
	must(r.t, shared.Admin.Update(r.t.Context(), r.source))
	r.waitUntilInSync(r.changes)
	r.remote["PutSecretValue"] += 2           // one by each PushSecret
	r.remote["UpdateSecretVersionStage"] += 4 // two by each: the new version becomes current, and loses its temporary label
	want := map[string]int{pushStatus(rarePush): 1, pushStatus(frequentPush): 1, "POST events": len(r.objects())}
	for _, name := range r.objects() {
		want["PATCH secrets "+name], want[objectStatus(name)] = 1, 1
	}
	return want
}

func objectStatus(name string) string { return "PATCH externalsecrets/status " + name }
func pushStatus(name string) string   { return "PATCH pushsecrets/status " + name }

// waitUntilInSync waits until all Secrets and remote secrets have their nth values, and all statuses report it.
func (r *rollout) waitUntilInSync(n int) {
	r.t.Helper()
	for _, name := range r.objects() {
		s := wantValue(r.t, r.ns, name, "a", r.value(name, n))
		es := &v1alpha1.ExternalSecret{}
		eventually(r.t, func() string {
			must(r.t, shared.Admin.Get(r.t.Context(), client.ObjectKeyFromObject(s), es))
			return ready(es)
		})
	}
	for _, name := range []string{rarePush, frequentPush} {
		eventually(r.t, func() string {
			value, _ := shared.AWS.Get(r.key(name))
			return cmp.Diff(r.value("source", n), string(value)) + unpushed(r.t, r.ns, name)
		})
	}
	wantReady(r.t, r.ns, "missing", v1alpha1.ReasonSecretSyncedError)
	r.waitUntilRefreshed()
}

// remoteWrites returns the calls that changed remote secrets of the namespace, by operation.
func (r *rollout) remoteWrites() map[string]int {
	found := map[string]int{}
	for _, c := range shared.AWS.Calls() {
		read := slices.ContainsFunc([]string{"Get", "BatchGet", "Describe", "List"}, func(verb string) bool { return strings.HasPrefix(c.Operation, verb) })
		if !read && slices.ContainsFunc(c.SecretIDs, func(id string) bool { return strings.Contains(id, r.key("")) }) {
			found[c.Operation]++
		}
	}
	return found
}

// makeDue changes the status of objects with a long interval as if they were refreshed two hours ago, and are due soon. The
// leader keeps its own plan, so only the next leader refreshes them.
func (r *rollout) makeDue(names ...string) {
	r.t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"refreshTime": metav1.NewTime(time.Now().Add(-2 * time.Hour)), "nextRefreshTime": metav1.NewTime(time.Now().Add(10 * time.Second)),
	}})
	must(r.t, err)
	for _, name := range names {
		must(r.t, shared.Admin.Status().Patch(r.t.Context(), r.object(name), client.RawPatch(types.MergePatchType, patch)))
	}
}

// waitUntilNotDue waits until objects have a recent time of a refresh.
func (r *rollout) waitUntilNotDue(names ...string) {
	r.t.Helper()
	for _, name := range names {
		eventually(r.t, func() string {
			es := r.object(name)
			must(r.t, shared.Admin.Get(r.t.Context(), client.ObjectKeyFromObject(es), es))
			if time.Since(es.Status.RefreshTime.Time) > time.Hour {
				return fmt.Sprintf("ExternalSecret %s was last refreshed at %s", name, es.Status.RefreshTime)
			}
			return ""
		})
	}
}

// want checks what replicas have written since the last check, and the calls that changed remote secrets.
func (r *rollout) want(reason string, want map[string]int, leader *replica, standby ...*replica) {
	r.t.Helper()
	r.wantWritten(reason, want, leader)
	for _, s := range standby {
		r.wantWritten(reason+": the other replica", nil, s)
	}
	if diff := cmp.Diff(r.remote, r.remoteWrites()); diff != "" {
		r.t.Errorf("%s: calls that change remote secrets: -want, +got:\n%s", reason, diff)
	}
}

func (r *rollout) wantWritten(reason string, want map[string]int, by *replica) {
	r.t.Helper()
	want, written := maps.Clone(want), by.writes()
	for _, w := range by.needless {
		delete(want, w)
		delete(written, w)
	}
	if by.messages {
		r.withoutMessages(written)
		by.messages = false
	}
	if diff := cmp.Diff(want, written, cmpopts.EquateEmpty()); diff != "" {
		r.t.Errorf("%s: -want, +wrote:\n%s", reason, diff)
	}
}

// handOver starts a version while the leader runs, and then ends the leader. messages is set if both versions write different
// messages into statuses.
func (r *rollout) handOver(reason string, leader *replica, version string, end func(*stack.Process) error, messages bool, due ...string) *replica {
	r.t.Helper()
	next := r.start(version)
	r.waitUntilRefreshed()
	r.want(reason+": a standby replica has started", nil, leader, next)
	want := r.change()
	r.want(reason+": new values with a standby replica", want, leader, next)
	r.makeDue(due...)
	r.waitUntilRefreshed()
	r.want(reason+": objects that only the next leader refreshes", nil, leader, next)
	must(r.t, end(leader.Process))
	r.waitUntilLeader(next)
	r.waitUntilRefreshed()
	r.waitUntilNotDue(due...)
	want = map[string]int{}
	for _, name := range due {
		want[objectStatus(name)] = 1
	}
	if next.messages = messages; messages {
		want = nil // The same write has the time and the message.
	}
	r.want(reason+": the hand-over", want, next, leader)
	want = r.change()
	r.want(reason+": new values after the hand-over", want, next)
	return next
}

// withoutMessages removes the writes of a version that writes other messages than the one before. They are one for each
// ExternalSecret and the store, one for each of the two conditions of a PushSecret, and an event of a failure.
func (r *rollout) withoutMessages(written map[string]int) {
	limits := map[string]int{"PATCH awssecretsmanagers/status store": 1, pushStatus(rarePush): 2, pushStatus(frequentPush): 2, "POST events": len(failingObjects)}
	for _, name := range slices.Concat(r.objects(), failingObjects) {
		limits[objectStatus(name)] = 1
	}
	maps.DeleteFunc(written, func(w string, n int) bool { return n <= limits[w] })
}

// TestRollout runs two versions of one module at the same time, as in a rollout, up and down. A hand-over writes nothing but
// Leases and what is due. A new value is written once. Every request to write counts, also one that changes nothing.
func TestRollout(t *testing.T) {
	t.Parallel()
	from, next := previousRelease(t), ahead(t, present(t), 1)
	r := newRollout(t, "rollout")
	r.versions[from], r.versions[next] = binaryOf(t, checkout(t, from), stack.ProviderAWS), buildWith(t, stack.ProviderAWS, next)
	r.versions["present"] = buildWith(t, stack.ProviderAWS, present(t))
	leader := r.start(from)
	r.waitUntilInSync(0)
	r.change() // The first change of a created Secret takes a second request, which makes it one of server-side apply.
	leader.writes()
	r.remote = r.remoteWrites()
	r.waitUntilRefreshed()
	r.want("the last release, alone", nil, leader)
	leader = r.handOver("an upgrade from the last release", leader, "present", (*stack.Process).Stop, true, rareObjects[:2]...)
	leader = r.handOver("an upgrade", leader, next, (*stack.Process).Stop, false, rareObjects[1:4]...)
	leader = r.handOver("a downgrade after a crash", leader, "present", (*stack.Process).Kill, false)
	r.handOver("a downgrade to the last release", leader, from, (*stack.Process).Stop, true)
}
