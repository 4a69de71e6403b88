package generated_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

const (
	// generatorWorkers go through their sequences at the same time; each mostly waits.
	generatorWorkers = 6
	// generatorSteps is how many steps a sequence has.
	generatorSteps = 12
)

// TestGeneratorModel does at random what rotates and what must not, with faults and restarts at any time. The
// value must change with each rotation, once, and with nothing else; no credential is made in vain, none is
// revoked while a Secret holds it, and none is left.
func TestGeneratorModel(t *testing.T) {
	t.Parallel()
	testenv.Sequences{Workers: generatorWorkers, Each: generatorSequences, Seeds: generatorSeeds, Random: generatorRandom}.Run(t,
		func(t *testing.T, _ int) func(*rapid.T) {
			g := genEnvOf(testenv.NewSerial(t), leased, func(o *fakev1.FakeGenerator) { o.Spec.TTL, o.Spec.RotationInterval = "1000h", "24h" })
			count := 0
			return func(rt *rapid.T) {
				count++
				m := &generatorModel{genEnv: g, name: fmt.Sprintf("db-%d", count), rt: rt}
				m.sequence()
			}
		})
}

// generatorModel is the life of one object.
type generatorModel struct {
	*genEnv
	rt   *rapid.T
	name string
	user string
	// rounds counts what was done, so that each is another.
	rounds int
	// lost is how many credentials may have been lost with an operator that ended before it could keep them.
	lost int
}

func (m *generatorModel) sequence() {
	policy := testenv.Pick(m.rt, "policy",
		func(*v1alpha1.ExternalSecret) {},
		func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CleanupPolicy = v1alpha1.CleanupNever },
		func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CreationPolicy = v1alpha1.CreateOrphan },
		func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CreationPolicy = v1alpha1.CreateCreateOrMerge },
	)
	target := m.generated(m.name, policy).Spec.Target
	stays := target.CleanupPolicy != "" || target.CreationPolicy != ""
	m.user = m.made(m.name, policy)
	made := m.Backend.Count(fake.CallGenerate)
	for range generatorSteps {
		fault := testenv.Pick(m.rt, "fault", "", "", "target", "part", "target answers", "part answers", "status", "revocation")
		action := testenv.Pick(m.rt, "action", "request", "generator", "interval", "wipe", "label", "target", "again", "nothing")
		restart := testenv.Pick(m.rt, "restart", "", "", "after", "while")
		if action == "again" && !stays {
			continue // The Secret would go with the object.
		}
		if action == "target" && target.CreationPolicy == v1alpha1.CreateOrphan {
			continue // It comes back at the next refresh only.
		}
		m.Logf("%s: fault %q, %s, restart %q", m.name, fault, action, restart)
		m.wantDelivered(m.name)
		open := m.fault(fault)
		if restart == "while" {
			m.Stop()
		}
		rotates := m.act(action, policy)
		switch restart {
		case "while":
			m.Start(testenv.Ahead(&m.ahead))
		case "after":
			m.restart()
			m.lost++ // It may have ended between making and keeping.
		}
		if fault != "" && fault != "revocation" {
			m.lost++ // What could not be kept may be gone with the operator.
		}
		if rotates && fault != "" && fault != "revocation" {
			m.Eventually(func() string {
				if m.gate.Hits.Load() == 0 {
					return "the fault was not hit"
				}
				return ""
			})
		}
		open()
		if rotates {
			was := m.user
			m.user = m.wantUser(m.name, action+" rotates", not(was))
			made++
		}
		m.wantDelivered(m.name)
		if got := m.wantUser(m.name, "there is a Secret", func(u string) bool { return u != "" }); got != m.user {
			m.Fatalf("after %s the Secret holds %q, want %q", action, got, m.user)
		}
		if n := m.Backend.Count(fake.CallGenerate); n < made || n > made+m.lost {
			m.Fatalf("after %s: %d credentials were made, want %d and at most %d that were lost", action, n, made, m.lost)
		}
		made, m.lost = m.Backend.Count(fake.CallGenerate), 0
	}
	m.end()
}

// end deletes the object and its Secret, after which nothing may be left.
func (m *generatorModel) end() {
	m.Delete(m.Get(m.name))
	if s := m.Secret(m.name); s != nil && len(s.OwnerReferences) == 0 {
		m.Delete(s)
	}
	m.wantNoParts()
	m.Eventually(func() string { // A part that was replaced is gone before what it held.
		if slices.Contains(m.Backend.Live(), m.user) {
			return fmt.Sprintf("credential %q is left", m.user)
		}
		return ""
	})
}

// fault refuses something until the function returned is called.
func (m *generatorModel) fault(kind string) (open func()) {
	switch kind {
	case "target":
		return m.gate.Close(writesOf(false))
	case "target answers":
		return m.gate.Lose(writesOf(false))
	case "part":
		return m.gate.Close(writesOf(true))
	case "part answers":
		return m.gate.Lose(writesOf(true))
	case "status":
		return m.gate.Close(func(r *http.Request) bool {
			return r.Method == http.MethodPatch && r.URL.Path[len(r.URL.Path)-7:] == "/status"
		})
	case "revocation":
		m.Backend.Inject(fake.Fault{Call: fake.CallCleanup, Times: 2, Err: errUnavailable})
	}
	return func() {}
}

// act does one thing, and reports whether it rotates.
func (m *generatorModel) act(action string, policy spec) bool {
	m.rounds++
	round := fmt.Sprintf("%s-%d", m.name, m.rounds)
	switch action {
	case "request":
		testenv.Update(m.Client, m.Get(m.name), testenv.Request(round))
		return true
	case "generator":
		testenv.Update(m.Client, m.generator("gen"), func(o *fakev1.FakeGenerator) { o.Spec.Prefix = round + "-" })
		return true
	case "interval":
		m.pass(25 * time.Hour)
		return true
	case "wipe":
		m.patchStatus(m.name, `{"status":null}`)
	case "label":
		testenv.Update(m.Client, m.Get(m.name), func(es *v1alpha1.ExternalSecret) { es.Labels = map[string]string{"round": round} })
	case "target":
		m.Delete(m.Secret(m.name))
	case "again":
		m.Eventually(func() string { // Of a Secret that does not own it yet the part knows nothing.
			if !testenv.OwnedBy(&m.parts()[0], m.Secret(m.name)) {
				return "the part does not belong to the Secret"
			}
			return ""
		})
		m.Delete(m.Get(m.name))
		m.Eventually(func() string {
			if n := len(m.parts()[0].OwnerReferences); n > 1 {
				return "the collector has not seen yet that the object is gone"
			}
			return ""
		})
		m.Create(m.generated(m.name, policy))
	}
	return false
}
