package externalsecret_test

import (
	"maps"
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A model says what becomes of one ExternalSecret and the Secrets that it may write. Its rules are
// those of the design, section 4, written down once more: nothing here calls the code under test.
type model struct {
	spec modelSpec
	// edits counts its changes.
	edits int
	// life counts the ExternalSecrets that had the name; alive is false while there is none.
	life  int
	alive bool
	// request is the number of the refresh that was asked for last, served of the one that was served.
	request, served int

	// remotes are the values that the provider has, and faults what it answers instead.
	remotes map[string]string
	faults  map[string]provider.Class

	running bool
	flag    v1alpha1.CleanupPolicy
	now     time.Time

	// synced is true once a refresh has succeeded.
	synced bool
	// changed and labelled are true while a change of the spec, or of the metadata, awaits its refresh.
	changed, labelled bool
	// next is the time of the next periodic refresh; zero if it is overdue. A restart finds it in the
	// status only if stored is true.
	next   time.Time
	stored bool
	// reason and ready are the Ready condition; class begins its message, where it has one.
	reason string
	ready  bool
	class  provider.Class
	// retrying is true while the operator tries again by itself.
	retrying bool

	// reverts counts how often of late the Secret was put right without a refresh being due.
	reverts int
	// secrets by what follows the name of the ExternalSecret in theirs.
	secrets map[string]*modelSecret
	born    int

	// What a step brings: woken is true if the operator looks at the object, asked and refreshed if it
	// asks the provider and if that succeeds, and wrote holds the Secrets that it writes.
	woken, asked, refreshed bool
	// rehashed is true if it serves a change of the metadata.
	rehashed bool
	wrote    map[string]bool
	// between is called where the operator writes in the midst of a look.
	between func()
}

// modelSpec is what a person asks for.
type modelSpec struct {
	creation  v1alpha1.CreationPolicy
	deletion  v1alpha1.DeletionPolicy
	cleanup   v1alpha1.CleanupPolicy
	refresh   v1alpha1.RefreshPolicy
	interval  time.Duration
	immutable bool
	suspend   bool
	// target is what follows the name of the ExternalSecret in that of the Secret.
	target  string
	entries []modelEntry
}

type modelEntry struct {
	key, remote string
	optional    bool
}

// modelSecret is what a Secret holds.
type modelSecret struct {
	// born tells one Secret from a later one of its name.
	born int
	data map[string]modelValue
	// labels and annotations of others.
	labels, annotations map[string]string
	// owner is the life of the ExternalSecret that the ownerReference names; 0 if there is none.
	owner     int
	immutable bool
	// released is true once the object has let go of it.
	released bool
	// mark is what the operator knows of its last write; life is 0 if the Secret does not bear it.
	mark modelMark
}

type modelValue struct {
	value string
	// own is true if nobody has touched it since the operator wrote it.
	own bool
}

type modelMark struct {
	life    int
	policy  v1alpha1.CreationPolicy
	created bool
	values  map[string]string
	// edits tells the spec under which it was written; shared is true if that asked for no type.
	edits  int
	shared bool
}

func (s modelSpec) clone() modelSpec {
	s.entries = slices.Clone(s.entries)
	return s
}

func (s modelSpec) policy() v1alpha1.CreationPolicy {
	if s.creation == "" {
		return v1alpha1.CreateOwner
	}
	return s.creation
}

// shares reports whether the Secret may be that of others.
func (s modelSpec) shares() bool {
	return s.creation == v1alpha1.CreateMerge || s.creation == v1alpha1.CreateCreateOrMerge
}

func (s modelSpec) retains() bool {
	return s.deletion == "" || s.deletion == v1alpha1.DeletionRetain
}

func (s modelSpec) periodic() bool {
	return (s.refresh == "" || s.refresh == v1alpha1.RefreshPeriodic) && s.interval > 0
}

// once reports whether the provider is read once.
func (s modelSpec) once() bool { return s.refresh != v1alpha1.RefreshOnChange && !s.periodic() }

func (s *modelSecret) clone() *modelSecret {
	if s == nil {
		return nil
	}
	c := *s
	c.data, c.labels, c.annotations = maps.Clone(s.data), maps.Clone(s.labels), maps.Clone(s.annotations)
	return &c
}

// shared reports whether a Secret has a key that the object does not hold alone.
func (s *modelSecret) shared() bool {
	for _, v := range s.data {
		if !v.own {
			return true
		}
	}
	return false
}

// intact reports whether the object holds the keys that it wrote.
func (s *modelSecret) intact() bool {
	for k := range s.mark.values {
		if !s.data[k].own {
			return false
		}
	}
	return true
}

// owns reports whether the Secret shall have an ownerReference.
func (m *model) owns() bool {
	if m.spec.policy() != v1alpha1.CreateOwner {
		return false
	}
	if m.spec.cleanup == "" {
		return m.flag == v1alpha1.CleanupOnDelete
	}
	return m.spec.cleanup == v1alpha1.CleanupOnDelete
}

func (m *model) owner() int {
	if m.owns() {
		return m.life
	}
	return 0
}

// due reports whether the provider is to be read, whatever the Secret looks like.
func (m *model) due() bool {
	// Who waits for somebody to create the Secret does not fail.
	waits := m.reason == v1alpha1.ReasonSecretMissing && m.spec.creation == v1alpha1.CreateMerge
	switch {
	case m.request != m.served, !m.synced, !m.ready && !waits:
		return true
	case m.spec.once():
		return false
	case m.changed, m.labelled:
		return true
	}
	return m.spec.periodic() && !m.now.Before(m.next)
}

// look is what the operator does when it looks at the object.
func (m *model) look() { //nolint:gocyclo // One case for each state of the object.
	if !m.alive || !m.running || !m.woken {
		return
	}
	switch {
	case m.spec.suspend:
		// Nothing is touched, and Ready keeps its value.
		m.reason, m.changed, m.retrying = v1alpha1.ReasonSuspended, false, false
		return
	case len(m.spec.entries) == 0:
		m.fail(v1alpha1.ReasonInvalidSpec, "")
		return
	case m.spec.creation == v1alpha1.CreateNone:
		if m.due() {
			m.read()
			return
		}
		m.stand()
		return
	}

	s := m.secrets[m.spec.target]
	if s != nil && s.mark.life == m.life && (s.owner != m.owner() || s.mark.policy != m.spec.policy()) {
		// The owner follows the spec at once, whatever the provider says.
		if s.mark.edits == m.edits {
			m.reverts++ // Somebody else has moved it.
		}
		s.owner, s.mark.policy, s.mark.edits = m.owner(), m.spec.policy(), m.edits
		m.wrote[m.spec.target] = true
		m.between()
	}
	switch {
	case m.spec.creation == v1alpha1.CreateMerge && s == nil:
		m.fail(v1alpha1.ReasonSecretMissing, "")
	case s == nil || s.mark.life == 0 && m.spec.creation != v1alpha1.CreateMerge:
		// Nobody has told the operator of a Secret that was made in the place of its own.
		onPurpose := m.reason == v1alpha1.ReasonSecretDeleted && m.spec.deletion == v1alpha1.DeletionDelete
		atOnce := m.spec.creation != v1alpha1.CreateOrphan && !onPurpose
		if atOnce || m.due() {
			m.revert()
			return
		}
		m.stand()
	case s.immutable && m.spec.immutable:
		m.frozen(s)
	case s.immutable:
		m.fail(v1alpha1.ReasonSecretSyncedError, provider.Invalid) // It cannot become mutable again.
	case m.due(), m.spec.creation != v1alpha1.CreateOrphan && (s.mark.life != m.life || !s.intact()):
		m.revert()
	default:
		m.stand()
	}
}

// revert puts right what was changed or deleted by others.
func (m *model) revert() {
	due := m.due()
	m.read()
	if !due && m.wrote[m.spec.target] {
		m.reverts++
	}
}

// frozen is an immutable Secret that shall be one: it is never rewritten, and reading stops.
func (m *model) frozen(s *modelSecret) {
	if s.mark.life != m.life {
		s.mark.life, s.mark.policy, s.mark.edits, s.owner = m.life, m.spec.policy(), m.edits, m.owner()
		s.mark.values = map[string]string{}
		for k, v := range s.data {
			if v.own {
				s.mark.values[k] = v.value
			}
		}
		m.wrote[m.spec.target] = true
	}
	due := m.due()
	m.stand()
	if due {
		m.reason, m.ready, m.retrying = v1alpha1.ReasonSecretSynced, true, false
		m.rehashed = m.labelled
		m.served, m.labelled, m.stored = m.request, false, false
	}
}

// stand is the end of a look that finds nothing to do.
func (m *model) stand() {
	m.leave()
	m.changed = false
	switch m.reason {
	case v1alpha1.ReasonSuspended:
		m.reason = v1alpha1.ReasonSecretSynced
	case v1alpha1.ReasonSecretMissing: // What it waited for is there, and is as it shall be.
		m.reason, m.ready = v1alpha1.ReasonSecretSynced, true
	}
}

func (m *model) fail(reason string, class provider.Class) {
	m.reason, m.class, m.ready, m.changed = reason, class, false, false
	m.retrying = reason == v1alpha1.ReasonSecretSyncedError && class != provider.Invalid
}

// provided is the provider's answer: the values, whether something is gone that is not optional, and
// the class of the first failure.
func (m *model) provided() (values map[string]string, gone bool, failed provider.Class) {
	values = map[string]string{}
	for _, e := range m.spec.entries {
		v, there := m.remotes[e.remote]
		switch class := m.faults[e.remote]; {
		case class != "" && failed == "":
			failed = class
		case class != "":
		case there:
			values[e.key] = v
		case !e.optional:
			gone = true
		}
	}
	return values, gone, failed
}

// read reads the provider and does what its answer asks for.
func (m *model) read() {
	m.asked = true
	values, gone, failed := m.provided()
	switch {
	case failed != "":
		m.fail(v1alpha1.ReasonSecretSyncedError, failed)
		return
	case gone && m.spec.retains():
		m.fail(v1alpha1.ReasonSecretSyncedError, provider.NotFound)
		return
	case m.spec.creation == v1alpha1.CreateNone:
		m.succeed(v1alpha1.ReasonSecretSynced)
		return
	}

	reason := v1alpha1.ReasonSecretSynced
	s := m.secrets[m.spec.target]
	if m.spec.deletion == v1alpha1.DeletionDelete && len(values) == 0 {
		switch {
		case s == nil, s.mark.life == 0:
			reason = v1alpha1.ReasonSecretDeleted
		case !s.shared() && (s.owner == m.life || s.mark.created):
			reason = v1alpha1.ReasonSecretDeleted
			delete(m.secrets, m.spec.target)
		}
	}
	if reason != v1alpha1.ReasonSecretDeleted {
		m.write(values)
	}
	m.leave()
	m.succeed(reason)
}

// write brings the Secret to the values, and nothing else of it to anything.
func (m *model) write(values map[string]string) {
	s := m.secrets[m.spec.target]
	switch {
	case s == nil:
		m.born++
		s = &modelSecret{born: m.born, data: map[string]modelValue{}, mark: modelMark{created: true}}
		m.secrets[m.spec.target] = s
	case s.mark.life == m.life && s.intact() && maps.Equal(s.mark.values, values) &&
		s.mark.edits == m.edits && s.mark.shared == m.spec.shares() && !m.spec.immutable:
		return
	}
	for k, v := range s.data {
		if _, wanted := values[k]; v.own && !wanted {
			delete(s.data, k)
		}
	}
	for k, v := range values {
		s.data[k] = modelValue{value: v, own: true}
	}
	s.owner, s.immutable = m.owner(), m.spec.immutable
	s.mark = modelMark{life: m.life, edits: m.edits, policy: m.spec.policy(), created: s.mark.created, values: values, shared: m.spec.shares()}
	m.wrote[m.spec.target] = true
}

// leave lets go of the Secrets that the object owned under its former target.name: they go as they
// would with the object, now that the new one is in step.
func (m *model) leave() {
	if m.spec.creation == v1alpha1.CreateNone {
		return
	}
	for name, s := range m.secrets {
		if name == m.spec.target || s.owner != m.life {
			continue
		}
		m.wrote[name] = true
		switch {
		case !m.owns(), s.shared() && s.immutable:
			s.owner, s.mark.policy = 0, m.spec.policy()
		case s.shared():
			maps.DeleteFunc(s.data, func(_ string, v modelValue) bool { return v.own })
			s.owner, s.mark, s.released = 0, modelMark{}, true
		default:
			delete(m.secrets, name)
		}
	}
}

func (m *model) succeed(reason string) {
	m.reason, m.ready, m.synced, m.refreshed, m.retrying = reason, true, true, true, false
	m.rehashed = m.labelled
	m.served, m.changed, m.labelled = m.request, false, false
	m.next, m.stored = time.Time{}, true
	if m.spec.periodic() {
		m.next = m.now.Add(m.spec.interval * 9 / 10) // The least of the jitter.
	}
}

// edit changes the spec. A change of cleanupPolicy alone is none that the provider is read for; an
// operator that did not run meanwhile cannot tell.
func (m *model) edit(next modelSpec) {
	if next.equal(m.spec) {
		return
	}
	same := next.clone()
	same.cleanup = m.spec.cleanup
	if !same.equal(m.spec) || !m.running {
		m.changed = true
	}
	m.spec, m.woken = next, true
	m.edits++
}

func (s modelSpec) equal(o modelSpec) bool {
	entries := slices.Equal(s.entries, o.entries)
	return entries && s.creation == o.creation && s.deletion == o.deletion && s.cleanup == o.cleanup &&
		s.refresh == o.refresh && s.interval == o.interval && s.immutable == o.immutable &&
		s.suspend == o.suspend && s.target == o.target
}

// live begins the life of a new ExternalSecret.
func (m *model) live() {
	m.life++
	m.alive, m.woken = true, true
	m.request, m.served, m.synced, m.changed, m.labelled = 0, 0, false, false, false
	m.next, m.stored, m.reason, m.class, m.ready, m.retrying = time.Time{}, false, "", "", false, false
}

// die ends it. The collector takes what it owns, the rest stays as it is.
func (m *model) die() {
	m.alive, m.retrying = false, false
	maps.DeleteFunc(m.secrets, func(_ string, s *modelSecret) bool { return s.owner == m.life })
}

// start is a restart of the operator: what it has in memory is gone.
func (m *model) start() {
	m.running, m.woken = true, true
	if !m.stored || !m.now.Before(m.next) {
		m.next = time.Time{}
	}
}

// touched is told of a change of a Secret by others. The operator sees those that bear its mark, and
// the one that it waits for.
func (m *model) touched(name string, was *modelSecret) {
	awaited := name == m.spec.target && m.reason == v1alpha1.ReasonSecretMissing
	if awaited || was != nil && was.mark.life > 0 {
		m.woken = true
	}
}
