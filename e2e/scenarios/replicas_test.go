//go:build long

package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// TestReplicas replaces both of two replicas, and then kills the leader, while objects are created and values
// change. Nothing is lost, and no Secret is ever incomplete.
func TestReplicas(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "replicas")
	h := record(t, ns)
	install := installFor(t, ns, "")
	var running []*stack.Process
	start := func() {
		p, err := install.StartModule(t.Context(), stack.ProviderAWS, "--leader-elect")
		must(t, err)
		t.Cleanup(func() { must(t, p.Stop()) })
		running = append(running, p)
		wantReplica(t, p)
	}
	leading := func() int {
		var at int
		eventually(t, func() string {
			if at = slices.IndexFunc(running, func(p *stack.Process) bool { yes, err := p.IsLeader(); return err == nil && yes }); at < 0 {
				return "no replica leads"
			}
			return ""
		})
		return at
	}
	const each = 20
	names := []string{}
	value := func(name string, n int) string { return fmt.Sprintf("%s, %d", name, n) }
	load := func() { // load creates further objects, and new values for the existing ones.
		round := len(names)/each + 1
		for i := range each {
			names = append(names, fmt.Sprintf("es-%d-%d", round, i))
		}
		for i, name := range names {
			key := ns + "/" + name
			shared.AWS.Put(key, []byte(value(name, round)))
			if i >= len(names)-each {
				must(t, shared.Admin.Create(t.Context(), pair(ns, name, key, key)))
			} else {
				refresh(t, ns, name, fmt.Sprint(round))
			}
		}
	}
	start()
	start()
	leading()
	load()
	for range 2 { // As in a Deployment, an old replica stops when a new one is ready.
		start()
		old := running[0]
		running = running[1:]
		load()
		must(t, old.Stop())
		load()
	}
	at := leading()
	load()
	must(t, running[at].Kill())
	running = slices.Delete(running, at, at+1)
	load()
	leading()
	for _, name := range names {
		wantValue(t, ns, name, "a", value(name, len(names)/each))
		wantReady(t, ns, name, v1alpha1.ReasonSecretSynced)
	}
	for _, name := range names {
		must(t, h.until(t.Context(), name, "has its last value", func(v version) bool { return v.Data["a"] == value(name, len(names)/each) }))
		newest := 0
		for i, v := range h.of(name) {
			var n int
			if _, err := fmt.Sscanf(strings.TrimPrefix(v.Data["a"], name), ", %d", &n); err != nil || v.Deleted || v.Data["a"] != v.Data["b"] || n < newest {
				t.Errorf("Secret %s, version %d: %+v, after the value %d", name, i, v, newest)
			}
			newest = n
		}
	}
}

// TestNotReady starts a replica without permissions in the namespace that it serves. It is live but not ready,
// so that a rollout would not stop the previous replica. It becomes ready when it gets the permissions.
func TestNotReady(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "not-ready")
	install := installFor(t, ns, "")
	var bindings rbacv1.RoleBindingList
	must(t, shared.Admin.List(t.Context(), &bindings, client.InNamespace(ns), client.MatchingLabels{"app.kubernetes.io/name": stack.ProviderAWS}))
	if len(bindings.Items) == 0 {
		t.Fatal("the chart binds no Role of the namespace")
	}
	for _, b := range bindings.Items {
		must(t, shared.Admin.Delete(t.Context(), b.DeepCopy()))
	}
	p, err := install.StartModule(t.Context(), stack.ProviderAWS)
	must(t, err)
	t.Cleanup(func() { must(t, p.Stop()) })
	eventually(t, func() string {
		if !strings.Contains(p.Log(), "is forbidden") {
			return "the module has not made a forbidden request"
		}
		return ""
	})
	if p.Ready() {
		t.Errorf("a module without rights is ready:\n%s", p.Log())
	}
	for _, b := range bindings.Items {
		b.ResourceVersion, b.UID = "", ""
		must(t, shared.Admin.Create(t.Context(), &b))
	}
	wantReplica(t, p)
}

// wantReplica waits until a process is ready to replace another.
func wantReplica(t *testing.T, p *stack.Process) {
	t.Helper()
	eventually(t, func() string {
		if !p.Ready() {
			return "the module is not ready: " + p.Log()
		}
		return ""
	})
}
