//go:build long

package scenarios

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// TestPasswordKilled kills the process at every step from generating a password to delivering it. A password
// that was stored is the one that is delivered, and there is never another.
func TestPasswordKilled(t *testing.T) {
	cases := map[string]struct {
		reason   string
		like     among
		answered bool
		// rotation means that values that were delivered before are replaced.
		rotation bool
	}{
		"Part":           {"The values are generated, but not stored: they are generated again, and the first ones were never visible.", partPost, false, false},
		"PartAnswer":     {"The values are stored, but the process does not know it.", partPost, true, false},
		"Record":         {"The values are stored, but the status does not show it.", partRecord, false, false},
		"RecordAnswer":   {"The status shows the values, but the process does not know it.", partRecord, true, false},
		"Target":         {"The values are stored, but not delivered.", targetPost, false, false},
		"TargetAnswer":   {"The values are delivered, but the process does not know it.", targetPost, true, false},
		"Status":         {"The values are delivered, but the status does not show it.", statusRecord, false, false},
		"Rotation":       {"New values are not stored, and the Secret keeps the previous ones.", partPatch, false, true},
		"RotationAnswer": {"New values are stored, but the process does not know it.", partPatch, true, true},
		"RotationRecord": {"New values are stored, but the status does not show it.", partRecord, false, true},
		"RotationTarget": {"New values are stored, but not delivered.", targetPatch, false, true},
		"RotationStatus": {"New values are delivered, but the status does not show it.", statusRecord, false, true},
		"RotationUnsure": {"New values are delivered, but the process does not know it.", targetPatch, true, true},
	}
	names := []string{"plain", "shaped", "salted"}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := "killed-" + strings.ToLower(name)
			h := passwords(t, ns)
			proxy, err := shared.StartProxy(nil)
			must(t, err)
			t.Cleanup(func() { must(t, proxy.Stop()) })
			path, err := installFor(t, ns, "").Kubeconfig(t.Context(), stack.GeneratorPassword, proxy)
			must(t, err)
			p := startModule(t, stack.GeneratorPassword, ns, "--kubeconfig="+path)
			create := func() {
				for i, change := range []specChange{func(*v1alpha1.ExternalSecretSpec) {}, shaped, salted} {
					must(t, shared.Admin.Create(t.Context(), generated(ns, names[i], change)))
				}
			}
			rotations := 0
			if tc.rotation {
				rotations = 1
				create()
				waitUntilHandled(t, ns, names...)
			}
			var caught []<-chan struct{}
			for _, name := range names {
				caught = append(caught, proxy.Hold(tc.answered, func(r *http.Request, body []byte) bool { return tc.like(r, body, ns, name) }))
			}
			if tc.rotation {
				for _, name := range names {
					refresh(t, ns, name, "now")
				}
			} else {
				create()
			}
			for i, c := range caught {
				wait(t, c, tc.reason+" "+names[i]+": no such request")
			}
			must(t, p.Kill())

			p = startModule(t, stack.GeneratorPassword, ns)
			waitUntilHandled(t, ns, names...)
			must(t, p.Stop())
			h.checkHistory(t, ns, rotations, names...)
			if n := len(h.contents("salted")); n != 1+rotations {
				t.Errorf("%s: the Secret with a salt held %d different contents, want %d", tc.reason, n, 1+rotations)
			}
		})
	}
}

// wait waits until a channel is closed.
func wait(t *testing.T, c <-chan struct{}, missing string) {
	t.Helper()
	eventually(t, func() string {
		select {
		case <-c:
			return ""
		default:
			return missing
		}
	})
}

// TestPasswordStays does to objects and to the operator everything that must not change a password, one after
// the other.
func TestPasswordStays(t *testing.T) {
	t.Parallel()
	const ns = "stays"
	h := passwords(t, ns)
	objects := map[string][]specChange{
		"plain": {often}, "salted": {often, salted},
		"orphan": {often, orphan, shaped}, "never": {often, leftBehind, shaped}, "never-plain": {leftBehind},
	}
	names := slices.Sorted(maps.Keys(objects))
	create := func(name string) { must(t, shared.Admin.Create(t.Context(), generated(ns, name, objects[name]...))) }
	remove := func(name string) { must(t, shared.Admin.Delete(t.Context(), generated(ns, name))) }
	left := []string{"orphan", "never", "never-plain"} // These Secrets stay without their objects.
	wipe := func() {
		for _, name := range names {
			must(t, shared.Admin.Status().Patch(t.Context(), generated(ns, name), client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))))
		}
	}
	collected := func(name string) {
		eventually(t, func() string {
			if n := len(getSecret(t, ns, partName(name)).OwnerReferences); n != 1 {
				return fmt.Sprintf("%s: the part has %d owners, and the collector has not seen that one is deleted", name, n)
			}
			return ""
		})
	}
	since := time.Now()
	p := startModule(t, stack.GeneratorPassword, ns)
	again := func() { p = startModule(t, stack.GeneratorPassword, ns) }
	for _, name := range names {
		create(name)
	}
	for _, step := range []struct {
		reason string
		do     func()
	}{
		{"a hundred refreshes", func() {
			for _, times := range []int{50, 100} { // Each round has its own deadline, because the operator refreshes once a second.
				refreshed(t, p, since, ns, times, "plain", "salted", "orphan", "never")
			}
		}},
		{"an orderly restart", func() { must(t, p.Stop()); again() }},
		{"restarts after a kill", func() {
			for range 4 {
				after := time.NewTimer(rand.N(300 * time.Millisecond))
				<-after.C // The delay is random; it does not wait for a condition.
				must(t, p.Kill())
				again()
			}
		}},
		{"a wiped status", wipe},
		{"a status that is removed while no operator runs", func() { must(t, p.Kill()); wipe(); again() }},
		{"a new object, immediately", func() {
			for _, name := range left {
				remove(name)
				create(name)
			}
		}},
		{"a new object, after the collector has seen the deletion of the first", func() {
			for _, name := range left {
				remove(name)
				collected(name)
				create(name)
			}
		}},
		{"a new object while no operator runs", func() {
			must(t, p.Kill())
			for _, name := range left {
				remove(name)
				collected(name)
				create(name)
			}
			again()
		}},
		{"a new object without a status, and a restart after a kill", func() {
			wipe()
			for _, name := range left {
				remove(name)
				create(name)
			}
			must(t, p.Kill())
			again()
		}},
	} {
		step.do()
		waitUntilHandled(t, ns, names...)
		for _, name := range names {
			if n := len(h.contents(name)); n != 1 {
				t.Fatalf("%s: after %s it has held %d different contents", name, step.reason, n)
			}
		}
	}
	must(t, p.Stop())
	h.checkHistory(t, ns, 0, names...)
}

// refreshed waits until a process has refreshed each object a number of times, and has read its part.
func refreshed(t *testing.T, p *stack.Process, since time.Time, ns string, times int, names ...string) {
	t.Helper()
	eventually(t, func() string { // The metric is cheap to read. The audit log shows that each object was refreshed.
		n, err := p.Metric(`directsecrets_syncs_total{kind="ExternalSecret",result="SecretSynced"}`)
		must(t, err)
		if n < float64(times*len(names)) {
			return fmt.Sprintf("%v refreshes of %d objects", n, len(names))
		}
		return ""
	})
	eventually(t, func() string {
		log, err := shared.ReadAuditLog(since)
		must(t, err)
		reads := map[string]int{}
		for _, e := range log {
			if e.Verb == "get" && e.ObjectRef.Namespace == ns && strings.HasPrefix(e.UserAgent, "direct-secrets/"+stack.GeneratorPassword) {
				reads[e.ObjectRef.Name]++
			}
		}
		for _, name := range names {
			if n := reads[partName(name)]; n < times {
				return fmt.Sprintf("the part of %s was read %d times", name, n)
			}
		}
		return ""
	})
}

// TestPasswordLate rotates passwords that two concurrent processes manage, one of which sees all changes late.
func TestPasswordLate(t *testing.T) {
	t.Parallel()
	const ns, rounds = "late", 3
	h := passwords(t, ns)
	behind := startModule(t, stack.GeneratorPassword, ns, "--kubeconfig="+latePath(t, installFor(t, ns, ""), stack.GeneratorPassword, rand.Uint64()))
	ahead := startModule(t, stack.GeneratorPassword, ns)
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("es-%d", i))
		must(t, shared.Admin.Create(t.Context(), generated(ns, names[i], salted)))
	}
	waitUntilHandled(t, ns, names...)
	for round := range rounds {
		for _, name := range names {
			refresh(t, ns, name, fmt.Sprint(round))
		}
		waitUntilHandled(t, ns, names...)
	}
	must(t, ahead.Stop())
	waitUntilHandled(t, ns, names...) // Now it has seen all of this.
	must(t, behind.Stop())
	h.checkHistory(t, ns, rounds, names...)
}

// TestPasswordLeader kills the leader of two processes in the middle of a rotation.
func TestPasswordLeader(t *testing.T) {
	t.Parallel()
	const ns = "leader"
	h := passwords(t, ns)
	var both []*stack.Process
	for range 2 {
		p, err := installFor(t, ns, "").StartModule(t.Context(), stack.GeneratorPassword, "--leader-elect")
		must(t, err)
		t.Cleanup(func() { must(t, p.Stop()) })
		both = append(both, p)
	}
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("es-%d", i))
		must(t, shared.Admin.Create(t.Context(), generated(ns, names[i], salted)))
	}
	waitUntilHandled(t, ns, names...)
	for _, name := range names {
		refresh(t, ns, name, "now")
	}
	first := leader(t, both)
	must(t, first.Kill())
	waitUntilHandled(t, ns, names...)
	second := leader(t, slices.DeleteFunc(both, func(p *stack.Process) bool { return p == first }))
	must(t, second.Stop())
	h.checkHistory(t, ns, 1, names...)
}

// leader returns the process that is the leader.
func leader(t *testing.T, of []*stack.Process) *stack.Process {
	t.Helper()
	for _, p := range of {
		isLeader, err := p.IsLeader()
		must(t, err)
		if isLeader {
			return p
		}
	}
	t.Fatal("none of the processes leads")
	return nil
}
