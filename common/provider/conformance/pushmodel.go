package conformance

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// The sequences are the same in each run, so that all changes are tested with the same ones. -rapid.seed selects
// other sequences (0 for random ones).
const (
	sequences = 60
	seed      = 20261121
)

// fixSequences sets the flags of rapid that are not given. Tests at the same time share them.
var fixSequences = sync.OnceValue(func() error {
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.seed": strconv.Itoa(seed), "rapid.checks": strconv.Itoa(sequences), "rapid.nofailfile": "true"} {
		if !given[name] {
			if err := flag.Set(name, value); err != nil {
				return err
			}
		}
	}
	return nil
})

// PushModel compares a provider's Writer with a model of a PushSecret, in random sequences of pushes, edits, other spellings,
// removals, concurrent writes by others, lost answers and crashes. Put and Delete of the harness are the writes by
// others.
func PushModel(t *testing.T, h Harness) {
	t.Helper()
	if err := fixSequences(); err != nil {
		t.Fatal(err)
	}
	if h.Key == nil {
		h.Key = func(name string) string { return name }
	}
	_, w := h.connectWriter(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		m := &model{T: rt, ctx: context.Background(), h: h, spoiler: &spoiler{Writer: w}, run: n, facts: map[string]*fact{}}
		m.sequence()
		for _, leaf := range keys {
			if err := h.Delete(m.ctx, m.key(leaf)); err != nil {
				rt.Fatal(err)
			}
		}
	})
	Result{Kind: h.Kind, Service: h.Service, Capability: "Push", Passed: n}.Log(t) // A sequence that fails ends the test.
}

var keys = []string{"a", "b"}

// propertiesOf returns the properties that the model uses. A provider whose properties hold only text has no path of names.
func propertiesOf(h Harness) []string {
	if _, flat := h.Without["read/json"]; flat {
		return []string{"x", "y", "z"}
	}
	return []string{"x", "y", "z.z"}
}

// A spoiler is a Writer that injects events at the worst moment.
type spoiler struct {
	provider.Writer
	// before is called once, between the read of a secret and its write.
	before func()
	// fails makes the next write fail without an effect; loses makes it, but loses the answer.
	fails, loses bool
}

var errLost = provider.NewError(provider.Unavailable, "no answer")

func spoil[T any](s *spoiler, write func() (T, error)) (T, error) {
	var none T
	if f := s.before; f != nil {
		s.before = nil
		f()
	}
	if s.fails {
		s.fails = false
		return none, errLost
	}
	v, err := write()
	if s.loses {
		s.loses = false
		return none, errLost
	}
	return v, err
}

func (s *spoiler) Create(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
	return spoil(s, func() (provider.Written, error) { return s.Writer.Create(ctx, t, data, mark) })
}

func (s *spoiler) Update(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
	return spoil(s, func() (provider.Written, error) { return s.Writer.Update(ctx, t, seen, data) })
}

func (s *spoiler) Delete(ctx context.Context, t provider.Target, seen provider.Observed) error {
	_, err := spoil(s, func() (struct{}, error) { return struct{}{}, s.Writer.Delete(ctx, t, seen) })
	return err
}

// A fact is what the model knows about one remote secret: its content, its creator, and the last writer of each
// property.
type fact struct {
	// ours is true if the current object created the secret.
	ours bool
	// values are the properties by name.
	values map[string]pushed
}

type pushed struct {
	text string
	// made is true if the current object created the property, and wrote if it was the last writer.
	made, wrote bool
}

type model struct {
	*rapid.T
	ctx     context.Context
	h       Harness
	spoiler *spoiler
	run     int
	object  int
	writes  int
	facts   map[string]*fact

	// The object: the values that it wants, by key and property ("" for the whole secret), and its status.
	want     map[string]map[string]string
	status   []v1alpha1.PushEntryStatus
	policies push.Policies
}

func (m *model) key(leaf string) string { return m.h.Key(fmt.Sprintf("push-model/%d-%s", m.run, leaf)) }

func (m *model) sequence() {
	m.renew()
	for range rapid.IntRange(5, 25).Draw(m.T, "steps") {
		switch rapid.IntRange(0, 9).Draw(m.T, "step") {
		case 0, 1, 2:
			m.edit()
		case 3:
			m.foreign(rapid.SampledFrom(keys).Draw(m.T, "key"))
		case 4:
			m.takeOut()
		case 6:
			m.want, m.status = map[string]map[string]string{}, nil // From now on it refers to another store.
			m.disown()
		case 5:
			if rapid.IntRange(0, 3).Draw(m.T, "end") == 0 {
				m.want = map[string]map[string]string{}
				m.apply()
				m.renew()
				continue
			}
		}
		m.apply()
	}
}

// renew starts another object. The secrets of the previous object then count as those of another object.
func (m *model) renew() {
	m.object++
	m.want, m.status = map[string]map[string]string{}, nil
	features := m.spoiler.Features()
	m.policies = push.Policies{
		Mark:     fmt.Sprintf("%08d-0000-4000-8000-%012d", m.run, m.object),
		Deletes:  rapid.Bool().Draw(m.T, "deletes"),
		Features: features,
	}
	if features.Exclusive {
		m.policies.Update = rapid.SampledFrom([]v1alpha1.PushUpdatePolicy{"", v1alpha1.UpdateIfNotExists}).Draw(m.T, "update")
		m.policies.Adoption = rapid.SampledFrom([]v1alpha1.PushAdoptionPolicy{"", v1alpha1.AdoptionRefuse, v1alpha1.AdoptionOwn}).Draw(m.T, "adoption")
	}
	for _, f := range m.facts {
		f.ours = false
	}
	m.disown()
}

// disown makes the model forget that the object owns any property, because the object has no record of them. The mark
// still shows the owner of a whole secret.
func (m *model) disown() {
	for _, f := range m.facts {
		for p, v := range f.values {
			f.values[p] = pushed{text: v.text, made: p == "whole" && f.ours}
		}
	}
}

func (m *model) fresh() string {
	m.writes++
	return fmt.Sprintf("v%d", m.writes)
}

// edit changes a value that the object wants.
func (m *model) edit() {
	leaf := rapid.SampledFrom(keys).Draw(m.T, "key")
	if m.policies.Guarded && rapid.IntRange(0, 3).Draw(m.T, "whole") > 0 {
		delete(m.want[leaf], "")
		m.wants(leaf, rapid.SampledFrom(propertiesOf(m.h)).Draw(m.T, "property"))
		return
	}
	m.want[leaf] = nil
	m.wants(leaf, "")
}

func (m *model) wants(leaf, property string) {
	if m.want[leaf] == nil {
		m.want[leaf] = map[string]string{}
	}
	m.want[leaf][property] = m.fresh()
}

// takeOut removes an entry from the spec.
func (m *model) takeOut() {
	for _, leaf := range slices.Sorted(maps.Keys(m.want)) {
		for _, p := range slices.Sorted(maps.Keys(m.want[leaf])) {
			delete(m.want[leaf], p)
			return
		}
	}
}

// whole returns the value of a secret that is pushed as a whole: a JSON object, because some providers accept nothing
// else.
func whole(text string) string { return fmt.Sprintf(`{"whole":%q}`, text) }

// foreign changes a secret like another writer.
func (m *model) foreign(leaf string) {
	f := m.facts[leaf]
	switch what := rapid.IntRange(0, 4).Draw(m.T, "foreign"); {
	case what == 0 && f != nil:
		delete(m.facts, leaf)
		if err := m.h.Delete(m.ctx, m.key(leaf)); err != nil {
			m.Fatal(err)
		}
		return
	case what == 1 && f != nil && len(f.values) > 1:
		delete(f.values, slices.Sorted(maps.Keys(f.values))[0])
	default:
		if f == nil {
			f = &fact{values: map[string]pushed{}}
			m.facts[leaf] = f
		}
		p := rapid.SampledFrom(append(propertiesOf(m.h), "theirs")).Draw(m.T, "property")
		if _, isWhole := f.values["whole"]; isWhole {
			p = "whole"
		}
		f.values[p] = pushed{text: m.fresh(), made: f.values[p].made}
	}
	if err := m.h.Put(m.ctx, m.key(leaf), document(f), nil); err != nil {
		m.Fatal(err)
	}
}

func document(f *fact) []byte {
	out := map[string]any{}
	for p, v := range f.values {
		if p == "z.z" {
			out["z"] = map[string]string{"z": v.text}
			continue
		}
		out[p] = v.text
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err) // Strings can always be encoded.
	}
	return raw
}

// apply pushes all keys, in some cases with a fault, and checks the result of each.
func (m *model) apply() {
	status := m.status
	m.status = nil
	for _, leaf := range keys {
		var known, rest []v1alpha1.PushEntryStatus
		for _, e := range status {
			if e.RemoteKey == m.key(leaf) {
				known = append(known, e)
			} else {
				rest = append(rest, e)
			}
		}
		status = rest
		for _, e := range m.applyOne(leaf, known) {
			e.RemoteKey = m.key(leaf)
			m.status = append(m.status, e)
		}
	}
}

func (m *model) applyOne(leaf string, known []v1alpha1.PushEntryStatus) []v1alpha1.PushEntryStatus {
	s := &spoiler{Writer: m.spoiler.Writer}
	trouble := rapid.IntRange(0, 9).Draw(m.T, "trouble")
	spoilt := false
	switch {
	case trouble == 0:
		s.fails = true
	case trouble == 1:
		s.loses = true
	case trouble == 2 && m.policies.Guarded:
		s.before = func() { spoilt = true; m.foreign(leaf) }
	}
	p := push.Pusher{Policies: m.policies, Store: fake.Link("model", s)}
	before := m.facts[leaf].clone()
	o := p.Apply(m.ctx, m.target(leaf), m.values(leaf), known)
	if spoilt {
		before = m.facts[leaf].clone()
	}
	quiet := trouble > 2
	m.check(leaf, before, o, quiet)
	if rapid.IntRange(0, 11).Draw(m.T, "crash") == 0 {
		return known // The process crashed before it could write the status.
	}
	if quiet && o.Err == nil {
		again := p.Apply(m.ctx, m.target(leaf), m.values(leaf), o.Entries)
		if again.Wrote || again.Deleted || again.Err != nil {
			m.Fatalf("%s: an unchanged value is written again: %+v", leaf, again)
		}
	}
	return o.Entries
}

// values returns what the object wants, with random spellings of the properties.
func (m *model) values(leaf string) (want []push.Value) {
	for _, p := range slices.Sorted(maps.Keys(m.want[leaf])) {
		text := m.want[leaf][p]
		switch last := strings.LastIndex(p, ".") + 1; {
		case p == "":
			text = whole(text)
		case rapid.Bool().Draw(m.T, "spelled"):
			p = p[:last] + `\` + p[last:]
		}
		want = append(want, push.Value{Property: p, Data: []byte(text)})
	}
	return want
}

// target returns a secret by a random one of its keys.
func (m *model) target(leaf string) provider.Target {
	key := m.key(leaf)
	if m.h.Spell != nil && m.facts[leaf] != nil && rapid.Bool().Draw(m.T, "spelled key") {
		if other, err := m.h.Spell(m.ctx, key); err == nil { // Another writer may have deleted it.
			key = other
		}
	}
	return provider.Target{Key: key}
}

func (f *fact) clone() *fact {
	if f == nil {
		return nil
	}
	return &fact{ours: f.ours, values: maps.Clone(f.values)}
}

// read returns the properties of a stored secret, nil if it does not exist, and whether it has the mark of the object.
func (m *model) read(leaf string) (properties map[string]string, marked bool) {
	o, err := m.spoiler.Observe(m.ctx, provider.Target{Key: m.key(leaf)})
	if provider.IsNotFound(err) {
		return nil, false
	}
	if err != nil {
		m.Fatal(err)
	}
	out, marked := map[string]string{}, o.Mark == m.policies.Mark
	if o.Version == "" {
		return out, marked
	}
	var doc map[string]any
	if err := json.Unmarshal(o.Data, &doc); err != nil {
		m.Fatalf("%s has the value %q", leaf, o.Data)
	}
	for k, v := range doc {
		switch v := v.(type) {
		case string:
			out[k] = v
		case map[string]any:
			for k2, v2 := range v {
				out[k+"."+k2] = fmt.Sprint(v2)
			}
		}
	}
	return out, marked
}

// check compares the stored secret with its state before, and updates the facts.
func (m *model) check(leaf string, before *fact, o push.Outcome, quiet bool) {
	after, marked := m.read(leaf)
	if before == nil {
		before = &fact{values: map[string]pushed{}}
		if after != nil {
			before.ours = m.policies.Exclusive
		}
	} else if after == nil && !before.ours {
		m.Fatalf("%s was deleted, and this object did not create it; outcome %+v", leaf, o)
	}
	for p, v := range before.values {
		if wrong := m.unlawful(leaf, p, v, after); wrong != "" {
			m.Fatalf("%s: property %s was %s and is %q: %s; outcome %+v", leaf, p, v.text, after[p], wrong, o)
		}
	}
	m.learn(leaf, before, after)
	if marked && m.policies.Adoption == v1alpha1.AdoptionOwn {
		m.own(leaf)
	}
	if !quiet || o.Err != nil || !m.replaces() {
		return
	}
	for p, want := range m.want[leaf] {
		name := p
		if p == "" {
			name = "whole"
		}
		if diff := cmp.Diff(want, after[name]); diff != "" {
			m.Fatalf("%s: property %q is out of sync: -want, +got:\n%s", leaf, p, diff)
		}
	}
}

// replaces reports whether the policies overwrite all differences.
func (m *model) replaces() bool {
	return m.policies.Update == "" && m.policies.Adoption != v1alpha1.AdoptionRefuse
}

// own counts what is in sync in a secret as created by the object, which has taken it over.
func (m *model) own(leaf string) {
	f := m.facts[leaf]
	f.ours = true
	for p, v := range f.values {
		if want, ok := m.wanted(leaf, p); ok && want == v.text {
			f.values[p] = pushed{text: v.text, made: true, wrote: true}
		}
	}
}

// unlawful returns why a change of a value is not allowed; empty if it is.
func (m *model) unlawful(leaf, p string, v pushed, after map[string]string) string {
	text, there := after[p]
	_, wanted := m.wanted(leaf, p)
	_, whole := m.want[leaf][""]
	switch {
	case !there && whole && m.replaces():
		return "" // The whole secret was overwritten.
	case !there && !v.made:
		return "it was removed, and this object did not make it"
	case !there && !v.wrote:
		return "it was removed, and another writer wrote it last"
	case !there || text == v.text:
		return ""
	case m.policies.Update == v1alpha1.UpdateIfNotExists:
		return "IfNotExists changes nothing"
	case !v.wrote && m.policies.Adoption == v1alpha1.AdoptionRefuse:
		return "another writer wrote it, and the policy is Refuse"
	case !wanted:
		return "no object wants that value"
	}
	return ""
}

// learn updates the facts.
func (m *model) learn(leaf string, before *fact, after map[string]string) {
	if after == nil {
		delete(m.facts, leaf)
		return
	}
	next := &fact{ours: before.ours, values: map[string]pushed{}}
	for p, text := range after {
		was, existed := before.values[p]
		switch {
		case !existed:
			was = pushed{text: text, made: true, wrote: true}
		case was.text != text:
			was.text, was.wrote = text, true
		}
		next.values[p] = was
	}
	m.facts[leaf] = next
}

// wanted returns the value that the object wants for a stored property.
func (m *model) wanted(leaf, p string) (string, bool) {
	if p == "whole" {
		p = ""
	}
	v, ok := m.want[leaf][p]
	return v, ok
}
