package externalsecret_test

import (
	"maps"
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A model predicts the state of one ExternalSecret and of the Secrets that it may write. It implements the rules of
// the design, section 4, independently: it does not call the code under test.
type model struct {
	spec modelSpec
	// edits counts the changes of the spec.
	edits int
	// incarnation counts the ExternalSecrets that had the name; exists is false while there is none.
	incarnation int
	exists      bool
	// request is the number of the last refresh request, served the number of the last one that was served.
	request, served int

	// remotes are the values at the provider, and faults the errors that it returns instead.
	remotes map[string]string
	faults  map[string]provider.Class

	running bool
	flag    v1alpha1.CleanupPolicy
	now     time.Time

	// synced is true once a refresh has succeeded.
	synced bool
	// compared is true if the last refresh only compared, since nothing is written under creationPolicy None.
	compared bool
	// changed and labelled are true while a change of the spec, or of the metadata, has not caused its refresh.
	changed, labelled bool
	// next is the time of the next periodic refresh; zero if it is overdue. After a restart the operator knows it
	// from the status only if stored is true.
	next   time.Time
	stored bool
	// reason and ready are the Ready condition; class is the prefix of its message, if there is one.
	reason string
	ready  bool
	class  provider.Class
	// retrying is true while the operator retries with back-off.
	retrying bool

	// reverts counts the recent writes that restored the Secret while no refresh was due.
	reverts int
	// secrets holds the Secrets, by the suffix of their name after the name of the ExternalSecret.
	secrets map[string]*modelSecret
	born    int

	// Results of a step: woken is true if the operator reconciles the object. asked is true if it reads the provider,
	// and refreshed if that succeeds. wrote holds the Secrets that it writes.
	woken, asked, refreshed bool
	// rehashed is true if the operator serves a change of the metadata.
	rehashed bool
	wrote    map[string]bool
	// between is called between two writes of one reconcile.
	between func()
}

// modelSpec is the spec of the ExternalSecret.
type modelSpec struct {
	creation  v1alpha1.CreationPolicy
	deletion  v1alpha1.DeletionPolicy
	cleanup   v1alpha1.CleanupPolicy
	refresh   v1alpha1.RefreshPolicy
	interval  time.Duration
	immutable bool
	suspend   bool
	// target is the suffix of the Secret's name after the name of the ExternalSecret.
	target  string
	entries []modelEntry
}

type modelEntry struct {
	key, remote string
	optional    bool
}

// modelSecret is the state of a Secret.
type modelSecret struct {
	// born distinguishes a Secret from a later one of the same name.
	born int
	data map[string]modelValue
	// labels and annotations of users.
	labels, annotations map[string]string
	// owner is the incarnation of the ExternalSecret in the ownerReference; 0 without an ownerReference.
	owner     int
	immutable bool
	// released is true once the object has released the Secret.
	released bool
	// mark is the operator's mark of its last write; incarnation is 0 if the Secret has none.
	mark modelMark
}

type modelValue struct {
	value string
	// own is true if the value has not changed since the operator wrote it.
	own bool
}

type modelMark struct {
	incarnation int
	policy      v1alpha1.CreationPolicy
	created     bool
	values      map[string]string
	// edits identifies the spec of the write; shared is true if that spec set no type.
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

// shares reports whether the target may be a Secret of another client.
func (s modelSpec) shares() bool {
	return s.creation == v1alpha1.CreateMerge || s.creation == v1alpha1.CreateCreateOrMerge
}

func (s modelSpec) retains() bool {
	return s.deletion == "" || s.deletion == v1alpha1.DeletionRetain
}

func (s modelSpec) periodic() bool {
	return (s.refresh == "" || s.refresh == v1alpha1.RefreshPeriodic) && s.interval > 0
}

// once reports whether the provider is read only once.
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

// intact reports whether the object still holds the keys that it wrote.
func (s *modelSecret) intact() bool {
	for k := range s.mark.values {
		if !s.data[k].own {
			return false
		}
	}
	return true
}

// owns reports whether the Secret should have an ownerReference.
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
		return m.incarnation
	}
	return 0
}

// due reports whether the provider must be read, whatever the state of the Secret.
func (m *model) due() bool {
	// Waiting for a user to create the Secret is not a failure.
	waits := m.reason == v1alpha1.ReasonSecretMissing && m.spec.creation == v1alpha1.CreateMerge
	switch {
	case m.request != m.served, !m.synced, !m.ready && !waits, m.compared && m.spec.creation != v1alpha1.CreateNone:
		return true
	case m.spec.once():
		return false
	case m.changed, m.labelled:
		return true
	}
	return m.spec.periodic() && !m.now.Before(m.next)
}

// predictReconcile predicts a reconcile of the object.
func (m *model) predictReconcile() { //nolint:gocyclo // One case for each state of the object.
	if !m.exists || !m.running || !m.woken {
		return
	}
	switch {
	case m.spec.suspend:
		// Nothing is written, and Ready keeps its value.
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
	if s != nil && s.mark.incarnation == m.incarnation && (s.owner != m.owner() || s.mark.policy != m.spec.policy()) {
		// The owner follows the spec at once, whatever the provider returns.
		if s.mark.edits == m.edits {
			m.reverts++ // Another client has changed it.
		}
		s.owner, s.mark.policy, s.mark.edits = m.owner(), m.spec.policy(), m.edits
		m.wrote[m.spec.target] = true
		m.between()
	}
	switch {
	case m.spec.creation == v1alpha1.CreateMerge && s == nil:
		m.fail(v1alpha1.ReasonSecretMissing, "")
	case s == nil || s.mark.incarnation == 0 && m.spec.creation != v1alpha1.CreateMerge:
		// The operator gets no event of a Secret that a user created in place of its own.
		onPurpose := m.reason == v1alpha1.ReasonSecretDeleted && m.spec.deletion == v1alpha1.DeletionDelete
		atOnce := m.spec.creation != v1alpha1.CreateOrphan && !onPurpose
		if atOnce || m.due() {
			m.revert()
			return
		}
		m.stand()
	case s.immutable && m.spec.immutable:
		m.handleImmutable(s)
	case s.immutable:
		m.fail(v1alpha1.ReasonSecretSyncedError, provider.Invalid) // It cannot become mutable again.
	case m.due(), m.spec.creation != v1alpha1.CreateOrphan && (s.mark.incarnation != m.incarnation || !s.intact()):
		m.revert()
	default:
		m.stand()
	}
}

// revert restores a Secret that another client has changed or deleted.
func (m *model) revert() {
	due := m.due()
	m.read()
	if !due && m.wrote[m.spec.target] {
		m.reverts++
	}
}

// handleImmutable handles a Secret that is immutable as specified: it is never rewritten, and the provider is no longer read.
func (m *model) handleImmutable(s *modelSecret) {
	if s.mark.incarnation != m.incarnation {
		s.mark.incarnation, s.mark.policy, s.mark.edits, s.owner = m.incarnation, m.spec.policy(), m.edits, m.owner()
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

// stand ends a reconcile that needs no read and no write.
func (m *model) stand() {
	m.releaseOldTargets()
	m.changed = false
	switch m.reason {
	case v1alpha1.ReasonSuspended:
		m.reason = v1alpha1.ReasonSecretSynced
	case v1alpha1.ReasonSecretMissing: // The target exists and is as specified.
		m.reason, m.ready = v1alpha1.ReasonSecretSynced, true
	}
}

func (m *model) fail(reason string, class provider.Class) {
	m.reason, m.class, m.ready, m.changed = reason, class, false, false
	m.retrying = reason == v1alpha1.ReasonSecretSyncedError && class != provider.Invalid
}

// provided returns the provider's answer: the values, whether a non-optional secret does not exist, and the class of
// the first failure.
func (m *model) provided() (values map[string]string, notFound bool, failed provider.Class) {
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
			notFound = true
		}
	}
	return values, notFound, failed
}

// read reads the provider and applies its answer.
func (m *model) read() {
	m.asked = true
	values, notFound, failed := m.provided()
	switch {
	case failed != "":
		m.fail(v1alpha1.ReasonSecretSyncedError, failed)
		return
	case notFound && m.spec.retains():
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
		case s == nil, s.mark.incarnation == 0:
			reason = v1alpha1.ReasonSecretDeleted
		case !s.shared() && (s.owner == m.incarnation || s.mark.created):
			reason = v1alpha1.ReasonSecretDeleted
			delete(m.secrets, m.spec.target)
		}
	}
	if reason != v1alpha1.ReasonSecretDeleted {
		m.write(values)
	}
	m.releaseOldTargets()
	m.succeed(reason)
}

// write changes the keys of the object to the values, and leaves the rest of the Secret as it is.
func (m *model) write(values map[string]string) {
	s := m.secrets[m.spec.target]
	switch {
	case s == nil:
		m.born++
		s = &modelSecret{born: m.born, data: map[string]modelValue{}, mark: modelMark{created: true}}
		m.secrets[m.spec.target] = s
	case s.mark.incarnation == m.incarnation && s.intact() && maps.Equal(s.mark.values, values) &&
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
	s.mark = modelMark{incarnation: m.incarnation, edits: m.edits, policy: m.spec.policy(), created: s.mark.created, values: values, shared: m.spec.shares()}
	m.wrote[m.spec.target] = true
}

// releaseOldTargets releases the Secrets that the object owned under its former target.name. They are treated as if the object
// was deleted, once the new Secret is in sync.
func (m *model) releaseOldTargets() {
	if m.spec.creation == v1alpha1.CreateNone {
		return
	}
	for name, s := range m.secrets {
		if name == m.spec.target || s.owner != m.incarnation {
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
	m.next, m.stored, m.compared = time.Time{}, true, m.spec.creation == v1alpha1.CreateNone
	if m.spec.periodic() {
		m.next = m.now.Add(m.spec.interval * 9 / 10) // The minimum with jitter.
	}
}

// edit changes the spec. A change of cleanupPolicy alone does not cause a read; an operator that did not run
// meanwhile reads, since it does not know what has changed.
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

// live creates a new ExternalSecret.
func (m *model) live() {
	m.incarnation++
	m.exists, m.woken = true, true
	m.request, m.served, m.synced, m.compared, m.changed, m.labelled = 0, 0, false, false, false, false
	m.next, m.stored, m.reason, m.class, m.ready, m.retrying = time.Time{}, false, "", "", false, false
}

// die deletes it. The garbage collector deletes the Secrets that it owns, the others stay as they are.
func (m *model) die() {
	m.exists, m.retrying = false, false
	maps.DeleteFunc(m.secrets, func(_ string, s *modelSecret) bool { return s.owner == m.incarnation })
}

// start restarts the operator, whose memory is lost.
func (m *model) start() {
	m.running, m.woken = true, true
	if !m.stored || !m.now.Before(m.next) {
		m.next = time.Time{}
	}
}

// touched records that a user has changed a Secret. The operator gets an event of Secrets with its mark, and of the
// Secret that it waits for.
func (m *model) touched(name string, was *modelSecret) {
	isWaiting := name == m.spec.target && m.reason == v1alpha1.ReasonSecretMissing
	if isWaiting || was != nil && was.mark.incarnation > 0 {
		m.woken = true
	}
}
