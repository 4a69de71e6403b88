//go:build long

package generation_test

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
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

// generatorSteps is the number of steps of a sequence.
const generatorSteps = 12

// TestGeneratorModel does random actions, some that rotate values and some that must not, with random faults and
// restarts. Each rotation must change the value once, and nothing else may change it. No credential may be made in
// vain, be revoked while a Secret holds it, or be left over.
func TestGeneratorModel(t *testing.T) {
	t.Parallel()
	testenv.Sequences{Workers: 6, Each: 30, Seeds: []uint64{20261121, 20261123}}.Run(t,
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

// generatorModel drives one object.
type generatorModel struct {
	*genEnv
	rt   *rapid.T
	name string
	user string
	// rounds counts the actions, to make each one different.
	rounds int
	// lost is how many credentials may have been lost because an operator stopped before it could store them.
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
		fault := testenv.Pick(m.rt, "fault", "", "", "target", "part", "target responses", "part responses", "status", "revocation")
		action := testenv.Pick(m.rt, "action", "request", "generator", "interval", "wipe", "label", "target", "again", "nothing")
		restart := testenv.Pick(m.rt, "restart", "", "", "after", "while")
		if action == "again" && !stays {
			continue // The Secret would be deleted with the object.
		}
		if action == "target" && target.CreationPolicy == v1alpha1.CreateOrphan {
			continue // It is created again only at the next refresh.
		}
		m.Logf("%s: fault %q, %s, restart %q", m.name, fault, action, restart)
		m.waitUntilInSync(action)
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
			m.lost++ // It may have stopped between making and storing.
		}
		if fault != "" && fault != "revocation" {
			m.lost++ // A credential that could not be stored may be lost with the operator.
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

// waitUntilInSync waits until the object is in sync, and until an action has what it needs of a running operator.
func (m *generatorModel) waitUntilInSync(action string) {
	m.wantDelivered(m.name)
	if action == "again" {
		m.wantOwned()
	}
}

// wantOwned waits until the Secret owns the part, so that the part is kept when the object is deleted.
func (m *generatorModel) wantOwned() {
	m.Eventually(func() string {
		if !operatortest.OwnedBy(&m.parts()[0], m.Secret(m.name)) {
			return "the Secret does not own the part"
		}
		return ""
	})
}

// end deletes the object and its Secret. No credential may be left afterwards.
func (m *generatorModel) end() {
	m.Delete(m.Get(m.name))
	if s := m.Secret(m.name); s != nil && len(s.OwnerReferences) == 0 {
		m.Delete(s)
	}
	m.wantNoParts()
	m.Eventually(func() string { // A replaced part is deleted before its credentials are revoked.
		if slices.Contains(m.Backend.Live(), m.user) {
			return fmt.Sprintf("credential %q is left", m.user)
		}
		return ""
	})
}

// fault refuses requests of one sort until the returned function is called.
func (m *generatorModel) fault(kind string) (open func()) {
	switch kind {
	case "target":
		return m.gate.Close(writesOf(false))
	case "target responses":
		return m.gate.Lose(writesOf(false))
	case "part":
		return m.gate.Close(writesOf(true))
	case "part responses":
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

// act does one action, and reports whether it rotates.
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
		m.Delete(m.Get(m.name))
		m.Eventually(func() string {
			if n := len(m.parts()[0].OwnerReferences); n > 1 {
				return "the garbage collector has not seen yet that the object was deleted"
			}
			return ""
		})
		m.Create(m.generated(m.name, policy))
	}
	return false
}
