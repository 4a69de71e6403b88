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

// TestPasswordKilled kills the process at every step from making a password to having it delivered. What was
// kept is what is delivered; there is never another.
func TestPasswordKilled(t *testing.T) {
	cases := map[string]struct {
		reason   string
		like     among
		answered bool
		// rotation has values replaced that were delivered before.
		rotation bool
	}{
		"Part":           {"Made and not kept: they are made anew, and nobody has seen the first.", partPost, false, false},
		"PartAnswer":     {"Kept, and the process does not know it.", partPost, true, false},
		"Record":         {"Kept, and the status does not say so.", partRecord, false, false},
		"RecordAnswer":   {"The status says so, and the process does not know it.", partRecord, true, false},
		"Target":         {"Kept and not delivered.", targetPost, false, false},
		"TargetAnswer":   {"Delivered, and the process does not know it.", targetPost, true, false},
		"Status":         {"Delivered, and the status does not say so.", statusRecord, false, false},
		"Rotation":       {"New values are not kept, and the Secret holds those before.", partPatch, false, true},
		"RotationAnswer": {"New values are kept, and the process does not know it.", partPatch, true, true},
		"RotationRecord": {"New values are kept, and the status does not say so.", partRecord, false, true},
		"RotationTarget": {"New values are kept and not delivered.", targetPatch, false, true},
		"RotationStatus": {"New values are delivered, and the status does not say so.", statusRecord, false, true},
		"RotationUnsure": {"New values are delivered, and the process does not know it.", targetPatch, true, true},
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
				settle(t, ns, names...)
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
			settle(t, ns, names...)
			must(t, p.Stop())
			h.judge(t, ns, rotations, names...)
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

// TestPasswordStays does to objects and to the operator, one after the other, what must not change a password.
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
	left := []string{"orphan", "never", "never-plain"} // Their Secrets stay without them.
	wipe := func() {
		for _, name := range names {
			must(t, shared.Admin.Status().Patch(t.Context(), generated(ns, name), client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))))
		}
	}
	collected := func(name string) {
		eventually(t, func() string {
			if n := len(getSecret(t, ns, partName(name)).OwnerReferences); n != 1 {
				return fmt.Sprintf("%s: the part has %d owners, and the collector has not seen that one is gone", name, n)
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
		{"a hundred refreshes", func() { refreshed(t, p, since, ns, 100, "plain", "salted", "orphan", "never") }},
		{"an orderly restart", func() { must(t, p.Stop()); again() }},
		{"restarts out of the blue", func() {
			for range 4 {
				after := time.NewTimer(rand.N(300 * time.Millisecond))
				<-after.C // The moment is what is random here; nothing is waited for.
				must(t, p.Kill())
				again()
			}
		}},
		{"a wiped status", wipe},
		{"a status that is wiped while nobody looks", func() { must(t, p.Kill()); wipe(); again() }},
		{"another object, at once", func() {
			for _, name := range left {
				remove(name)
				create(name)
			}
		}},
		{"another object, when the collector has seen that the first is gone", func() {
			for _, name := range left {
				remove(name)
				collected(name)
				create(name)
			}
		}},
		{"another object while nobody looks", func() {
			must(t, p.Kill())
			for _, name := range left {
				remove(name)
				collected(name)
				create(name)
			}
			again()
		}},
		{"another object of a wiped status, and a restart out of the blue", func() {
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
		settle(t, ns, names...)
		for _, name := range names {
			if n := len(h.contents(name)); n != 1 {
				t.Fatalf("%s: after %s it has held %d different contents", name, step.reason, n)
			}
		}
	}
	must(t, p.Stop())
	h.judge(t, ns, 0, names...)
}

// refreshed waits until a process has refreshed each object so many times, reading its part.
func refreshed(t *testing.T, p *stack.Process, since time.Time, ns string, times int, names ...string) {
	t.Helper()
	eventually(t, func() string { // The metric is cheap; that each object has had its share the audit log shows.
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

// TestPasswordLate rotates passwords that two processes look after at once, of which one sees late what happens.
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
	settle(t, ns, names...)
	for round := range rounds {
		for _, name := range names {
			refresh(t, ns, name, fmt.Sprint(round))
		}
		settle(t, ns, names...)
	}
	must(t, ahead.Stop())
	settle(t, ns, names...) // Now it has seen all of this.
	must(t, behind.Stop())
	h.judge(t, ns, rounds, names...)
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
	settle(t, ns, names...)
	for _, name := range names {
		refresh(t, ns, name, "now")
	}
	first := leader(t, both)
	must(t, first.Kill())
	settle(t, ns, names...)
	second := leader(t, slices.DeleteFunc(both, func(p *stack.Process) bool { return p == first }))
	must(t, second.Stop())
	h.judge(t, ns, 1, names...)
}

// leader returns the process that works.
func leader(t *testing.T, of []*stack.Process) *stack.Process {
	t.Helper()
	for _, p := range of {
		leads, err := p.Leads()
		must(t, err)
		if leads {
			return p
		}
	}
	t.Fatal("none of the processes leads")
	return nil
}
