//go:build long

package scenarios

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// mixedSeed repeats the choices of a run. The timing still depends on the machine.
var mixedSeed = flag.Uint64("mixed.seed", 0, "seed of TestMixedKilled; 0 takes any")

// TestMixedKilled creates, refreshes and changes objects with values from three modules, while these are killed
// at any moment, and some stay down for a while. Each Secret changes from one complete content to the next. It
// never mixes values of two contents, and is never missing.
func TestMixedKilled(t *testing.T) {
	t.Parallel()
	const objects, rounds = 6, 12
	seed := *mixedSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	m := newMix(t, "mixed-killed")
	var names []string
	for i := range objects {
		names = append(names, fmt.Sprintf("es-%d", i))
	}
	// wants holds the expected content after each round, by name.
	wants, refreshes := map[string][]killedExpectation{}, map[string]int{}
	m.run(mixedModules...)
	for round := range rounds {
		killer := rand.New(rand.NewPCG(seed, uint64(round)+1))
		var killing sync.WaitGroup
		killing.Go(func() { m.killAny(killer) })
		for _, name := range names {
			// Each spec reads another remote secret, whose value changes in each round.
			w := killedExpectation{remote: fmt.Sprintf("%s-%d", name, round), n: round, password: refreshes[name]}
			switch {
			case round == 0:
				m.put(w.remote, w.n)
				m.create(name, func(es *v1alpha1.ExternalSecretSpec) { m.read(es, w.remote) })
			case random.IntN(2) == 0:
				m.put(w.remote, w.n)
				m.change(name, func(es *v1alpha1.ExternalSecretSpec) { m.read(es, w.remote) })
			default:
				was := wants[name][round-1]
				refreshes[name]++
				w.remote, w.password = was.remote, refreshes[name]
				m.put(w.remote, w.n)
				m.refresh(name)
			}
			wants[name] = append(wants[name], w)
		}
		killing.Wait()
		if t.Failed() {
			return
		}
		for _, name := range names {
			w := wants[name][round]
			m.waitUntilInSync(name, w.remote, w.n, w.n)
		}
	}
	m.history.end(t, m.ns)
	for _, name := range names {
		m.whole(name)
		m.checkContents(seed, name, wants[name])
	}
}

// A killedExpectation is the expected content of a Secret after a round.
type killedExpectation struct {
	remote   string
	n        int
	password int // password is the number of passwords before this one.
}

// killAny kills modules at random moments, and starts each again after a random time.
func (m *mix) killAny(random *rand.Rand) {
	pause := func() {
		after := time.NewTimer(time.Duration(random.Int64N(int64(250 * time.Millisecond))))
		<-after.C // The delay is random; it does not wait for a condition.
	}
	for range 1 + random.IntN(3) {
		module := mixedModules[random.IntN(len(mixedModules))]
		pause()
		if err := m.processes[module].Kill(); err != nil {
			m.t.Errorf("cannot kill %s: %v", module, err)
			return
		}
		if random.IntN(3) == 0 {
			for range 4 {
				pause() // The other modules continue without it.
			}
		}
		p, err := installFor(m.t, m.ns, m.ns).StartModule(m.t.Context(), module)
		if err != nil {
			m.t.Errorf("cannot start %s: %v", module, err)
			return
		}
		m.t.Cleanup(func() {
			if err := p.Stop(); err != nil {
				m.t.Error(err)
			}
		})
		m.processes[module] = p
	}
}

// checkContents checks all contents that a Secret has had: only expected ones, in their order.
func (m *mix) checkContents(seed uint64, name string, expectations []killedExpectation) {
	m.t.Helper()
	var passwords []string
	for _, data := range m.history.contents(partName(name), inspect.GeneratorID(pw)) {
		passwords = append(passwords, string(valuesOf(data).Current["password"]))
	}
	if n := 1 + expectations[len(expectations)-1].password; len(passwords) != n {
		m.t.Errorf("seed %d: %s: %d passwords were made, want %d", seed, name, len(passwords), n)
		return
	}
	var want []map[string]string
	for _, w := range expectations {
		want = append(want, map[string]string{awsKey: awsValue(w.remote, w.n), vaultKey: vaultValue(w.remote, w.n), passwordKey: passwords[w.password]})
	}
	if diff := cmp.Diff(want, m.history.contents(name, awsKey, vaultKey, passwordKey)); diff != "" {
		m.t.Errorf("seed %d: Secret %s: -want, +held:\n%s", seed, name, diff)
	}
}
