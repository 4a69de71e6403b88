package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// TestReplicas replaces both of two replicas, and then kills the one that leads, while objects are created and
// values change: nothing is lost, and no Secret is ever half.
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
	}
	leading := func() int {
		var at int
		eventually(t, func() string {
			if at = slices.IndexFunc(running, func(p *stack.Process) bool { yes, err := p.Leads(); return err == nil && yes }); at < 0 {
				return "no replica leads"
			}
			return ""
		})
		return at
	}
	const each = 20
	names := []string{}
	value := func(name string, n int) string { return fmt.Sprintf("%s, %d", name, n) }
	load := func() { // More objects, and new values for those that are there.
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
	for range 2 { // As a Deployment does it: a new one comes, then an old one goes.
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
