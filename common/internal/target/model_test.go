package target_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

const modelSteps = 200

// model is the expected content of a Secret: fields of others are changed only by others.
type model struct {
	*env
	rnd  *rand.Rand
	me   object
	uids []types.UID // Of owners that others may set.

	// Fields of others.
	data, labels, annotations map[string]string
	owners                    map[types.UID]bool
	finalizer                 bool
	// Fields of ours.
	ours      map[string]string
	ourLabels map[string]string
	owned     bool
	// applied is what each tool has in its manifest.
	applied map[string]map[string]string
}

// TestForeignFieldsStay does random writes of ours and of others. Fields of others must never change by our writes. Our
// fields must exist after each of our writes, and must be removed when we drop them.
func TestForeignFieldsStay(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("Seed%d", seed), func(t *testing.T) {
			e := newEnv(t)
			m := &model{
				env: e, rnd: rand.New(rand.NewPCG(seed, 1)), me: e.object("db"),
				data: map[string]string{}, labels: map[string]string{}, annotations: map[string]string{},
				owners: map[types.UID]bool{}, ours: map[string]string{}, ourLabels: map[string]string{},
				applied: map[string]map[string]string{},
			}
			for _, name := range []string{"o1", "o2"} {
				m.uids = append(m.uids, e.object(name).uid)
			}
			if seed%2 == 0 {
				m.ourLabels = map[string]string{target.ManagedLabel(module): "true"}
				m.ours = map[string]string{"mine0": "0"}
				e.writes(m.wants())
			} else {
				e.posted("db", "kubectl-create", "theirs0", "0", "mine1", "0")
				m.data["theirs0"] = "0"
				m.ourLabels = map[string]string{target.ManagedLabel(module): "true"}
				m.ours = map[string]string{"mine1": "1"} // Taken over.
				m.writes(m.wants())
			}
			for i := range modelSteps {
				what := m.step()
				m.check(i, what)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// step does one action, ours or theirs, and returns its name.
func (m *model) step() string {
	n := m.rnd.IntN(11)
	k, v := fmt.Sprintf("theirs%d", m.rnd.IntN(6)), fmt.Sprint(m.rnd.IntN(3))
	switch n {
	case 0, 1, 2:
		m.write()
		return "Apply"
	case 3, 4:
		m.owned = !m.owned
		m.own()
		return fmt.Sprintf("Own(%v)", m.owned)
	case 5:
		m.edit(k, v)
		return "update by a user"
	case 6:
		m.apply([]string{"flux", "argo"}[m.rnd.IntN(2)])
		return "apply by a tool"
	case 7:
		m.spoil()
		m.write()
		return "drift of our keys, reverted"
	case 8:
		m.stringData(k, v)
		return "apply of stringData"
	case 9:
		m.release()
		return "Release, and Apply again"
	}
	m.resetsManagedFields("db")
	// The owners of the fields are unknown now. The next write takes the fields that have our value.
	m.writes(m.wants())
	return "reset of managedFields"
}

func (m *model) wants() target.Desired {
	var pairs []string
	for k, v := range m.ours {
		pairs = append(pairs, k, v)
	}
	d := m.me.wants("db", pairs...)
	d.Labels = m.ourLabels
	d.Seal()
	if m.owned {
		d = owned(d, m.me.reference(true))
	}
	return d
}

// write applies other keys and values than before.
func (m *model) write() {
	m.Helper()
	m.ourLabels = map[string]string{target.ManagedLabel(module): "true"}
	if m.rnd.IntN(2) == 0 {
		m.ourLabels[target.StoreLabel("g", "K", m.ns, fmt.Sprint(m.rnd.IntN(3)))] = "true"
	}
	m.rewrite(map[string]string{})
}

func (m *model) rewrite(next map[string]string) {
	m.Helper()
	for i := range 4 {
		if m.rnd.IntN(2) == 0 {
			next[fmt.Sprintf("mine%d", i)] = fmt.Sprint(m.rnd.IntN(3))
		}
	}
	m.ours = next
	m.writes(m.wants())
}

func (m *model) own() {
	m.Helper()
	if len(target.FieldsOf(m.secret("db").ManagedFields, m.me.manager()).Data) != len(m.ours) {
		m.write() // The controller calls Own only if the Secret is intact.
		return
	}
	d := m.me.wants("db")
	if m.owned {
		d = owned(d, m.me.reference(true))
	}
	m.owns(d)
}

// release removes everything of ours, and then writes again.
func (m *model) release() {
	m.Helper()
	m.ours, m.ourLabels, m.owned = map[string]string{}, map[string]string{}, false
	m.releases(m.me.wants("db"))
	m.check(-1, "Release")
	if _, marked := m.secret("db").Annotations[target.MarkKey("db")]; marked {
		m.Error("the mark still exists after Release")
	}
	m.write()
}

// edit changes fields of others with an update.
func (m *model) edit(k, v string) {
	m.Helper()
	held := map[string]bool{}
	for _, keys := range m.applied {
		for k := range keys {
			held[k] = true
		}
	}
	if held[k] {
		k = "edited" // A tool would apply its own fields again, which is not tested here.
	}
	remove := m.rnd.IntN(3) == 0
	what := m.rnd.IntN(5)
	m.updates("db", "kubectl-edit", func(s *corev1.Secret) {
		switch what {
		case 0:
			s.Data, m.data = set(s.Data, k, []byte(v), remove), set(m.data, k, v, remove)
		case 1:
			s.Labels, m.labels = set(s.Labels, k, v, remove), set(m.labels, k, v, remove)
		case 2:
			s.Annotations, m.annotations = set(s.Annotations, k, v, remove), set(m.annotations, k, v, remove)
		case 3:
			uid := m.uids[m.rnd.IntN(len(m.uids))]
			s.OwnerReferences = slices.DeleteFunc(s.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == uid })
			if m.owners[uid] = !remove; !remove {
				name := map[types.UID]string{m.uids[0]: "o1", m.uids[1]: "o2"}[uid]
				s.OwnerReferences = append(s.OwnerReferences, object{name: name, uid: uid}.reference(false))
			}
		case 4:
			if m.finalizer = !remove; remove {
				s.Finalizers = nil
			} else {
				s.Finalizers = []string{"example.com/theirs"}
			}
		}
	})
}

func set[V any](m map[string]V, k string, v V, remove bool) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	if m[k] = v; remove {
		delete(m, k)
	}
	return m
}

// apply applies keys as a tool: own ones, and one of ours with its present value.
func (m *model) apply(tool string) {
	m.Helper()
	keys := map[string]string{tool: fmt.Sprint(m.rnd.IntN(3))}
	pairs := []string{tool, keys[tool]}
	for k, v := range m.ours {
		pairs = append(pairs, k, v)
		break
	}
	m.applied[tool] = keys
	maps.Copy(m.data, keys)
	m.mustApply("db", tool, data(pairs...))
	// It gives up our key, so that the tool does not hold a key that we drop.
	m.mustApply("db", tool, data(tool, keys[tool]))
}

func (m *model) stringData(k, v string) {
	m.Helper()
	m.mustApply("db", "helm", map[string]any{"stringData": map[string]string{"helm-" + k: v}})
	m.data["helm-"+k] = v
}

// spoil changes or removes a key of ours.
func (m *model) spoil() {
	m.Helper()
	m.updates("db", "vandal", func(s *corev1.Secret) {
		for k := range m.ours {
			if m.rnd.IntN(2) == 0 {
				delete(s.Data, k)
			} else {
				s.Data[k] = []byte("spoilt")
			}
		}
	})
	// A key that they wrote and that we no longer want would become theirs, so all keys are wanted.
	next := maps.Clone(m.ours)
	m.rewrite(next)
}

func (m *model) check(step int, what string) {
	m.Helper()
	s := m.secret("db")
	want := map[string]any{}
	d := maps.Clone(m.data)
	maps.Copy(d, m.ours)
	want["data"] = d
	l := maps.Clone(m.labels)
	maps.Copy(l, m.ourLabels)
	want["labels"] = l
	want["annotations"] = orEmpty(m.annotations)
	want["finalizer"] = m.finalizer
	owners := maps.Clone(m.owners)
	owners[m.me.uid] = m.owned
	maps.DeleteFunc(owners, func(_ types.UID, there bool) bool { return !there })
	want["owners"] = owners

	got := map[string]any{"data": stringsOf(s.Data), "labels": orEmpty(s.Labels), "finalizer": len(s.Finalizers) > 0}
	a := orEmpty(s.Annotations)
	maps.DeleteFunc(a, func(k, _ string) bool { return k == target.MarkKey("db") })
	got["annotations"] = a
	is := map[types.UID]bool{}
	for _, r := range s.OwnerReferences {
		is[r.UID] = true
	}
	got["owners"] = is
	if diff := cmp.Diff(want, got); diff != "" {
		m.Errorf("after step %d, %s: -want, +got:\n%s\n%v", step, what, diff, s.ManagedFields)
	}
}
