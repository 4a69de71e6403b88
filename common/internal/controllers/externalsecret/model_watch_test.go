package externalsecret_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// modelTimeout is the timeout for the effects of a step. Only a failing test waits that long.
const modelTimeout = 2 * time.Minute

// A recorder watches a namespace. It holds the present objects, and records every version of every Secret.
type recorder struct {
	mu      sync.Mutex
	changed chan struct{}
	secrets map[string]*corev1.Secret
	objects map[string]*v1alpha1.ExternalSecret
	seen    []modelEvent
	// known holds the resourceVersions that were seen, and the uids of Secrets that were seen to be deleted.
	known map[string]bool
	ended string
}

// modelEvent is a version of a Secret, or its deletion.
type modelEvent struct {
	what   watch.EventType
	secret *corev1.Secret
}

// record watches a namespace until the test ends.
func record(c *testenv.Client) *recorder {
	c.Helper()
	r := &recorder{
		changed: make(chan struct{}), known: map[string]bool{},
		secrets: map[string]*corev1.Secret{}, objects: map[string]*v1alpha1.ExternalSecret{},
	}
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &v1alpha1.ExternalSecretList{}} {
		w, err := c.API.Watch(context.Background(), list, client.InNamespace(c.NS))
		if err != nil {
			c.Fatal(err)
		}
		c.Cleanup(w.Stop)
		go r.run(w)
	}
	return r
}

func (r *recorder) run(w watch.Interface) {
	for ev := range w.ResultChan() {
		r.note(ev)
	}
	r.update(func() { r.ended = "a watch has ended" })
}

func (r *recorder) note(ev watch.Event) {
	r.update(func() {
		switch o := ev.Object.(type) {
		case *corev1.Secret:
			r.seen = append(r.seen, modelEvent{ev.Type, o})
			r.secrets[o.Name] = o
			r.known[o.ResourceVersion] = true
			if ev.Type == watch.Deleted {
				r.known[string(o.UID)] = true
				delete(r.secrets, o.Name)
			}
		case *v1alpha1.ExternalSecret:
			r.objects[o.Name] = o
			if ev.Type == watch.Deleted {
				delete(r.objects, o.Name)
			}
		default:
			r.ended = fmt.Sprintf("a watch returned %s: %v", ev.Type, ev.Object)
		}
	})
}

func (r *recorder) update(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	close(r.changed)
	r.changed = make(chan struct{})
}

// wait waits until missing returns an empty string; missing may read the recorder. At the timeout wait returns the
// result of missing.
func (r *recorder) wait(missing func() string) string {
	deadline := time.After(modelTimeout)
	for {
		r.mu.Lock()
		what, changed := missing(), r.changed
		if r.ended != "" {
			what = r.ended
		}
		r.mu.Unlock()
		if what == "" {
			return ""
		}
		select {
		case <-deadline:
			return what
		case <-changed:
		}
	}
}

// take returns the events since its last call.
func (r *recorder) take() []modelEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// modelView holds the fields of a Secret that are compared.
type modelView struct {
	Data map[string]string
	// Own are the keys that only the operator holds.
	Own                 []string
	Labels, Annotations map[string]string
	Owner               string
	Mark                string
	Managed             bool
	Immutable           bool
}

// viewOf returns the view of a Secret of the model; nil if there is none.
func viewOf(s *modelSecret) *modelView {
	if s == nil {
		return nil
	}
	v := &modelView{
		Data: map[string]string{}, Own: s.ownKeys(),
		Labels: maps.Clone(s.labels), Annotations: maps.Clone(s.annotations),
		Managed: s.mark.incarnation > 0, Immutable: s.immutable,
	}
	for k, value := range s.data {
		v.Data[k] = value.value
	}
	if s.owner > 0 {
		v.Owner = fmt.Sprintf("life %d", s.owner)
	}
	if s.mark.incarnation > 0 {
		v.Mark = fmt.Sprintf("life %d, %s", s.mark.incarnation, s.mark.policy)
	}
	return v.orNil()
}

// orNil replaces empty maps by nil.
func (v *modelView) orNil() *modelView {
	for _, m := range []*map[string]string{&v.Data, &v.Labels, &v.Annotations} {
		if len(*m) == 0 {
			*m = nil
		}
	}
	return v
}

// realView returns the view of a real Secret; nil if there is none.
func (r *modelRun) realView(s *corev1.Secret) *modelView {
	if s == nil {
		return nil
	}
	v := &modelView{
		Data: map[string]string{}, Labels: foreign(s.Labels), Annotations: foreign(s.Annotations),
		Managed:   s.Labels[target.ManagedLabel(fakev1.Group)] == "true" && s.Labels[r.storeLabel] == "true",
		Immutable: s.Immutable != nil && *s.Immutable,
	}
	for k, value := range s.Data {
		v.Data[k] = string(value)
		if slices.Equal(holders(s, k), []string{v1alpha1.FieldManagerPrefix + r.name}) {
			v.Own = append(v.Own, k)
		}
	}
	slices.Sort(v.Own)
	var owners []string
	for _, o := range s.OwnerReferences {
		owner := r.incarnationOf(o.UID)
		if o.Controller == nil || !*o.Controller || o.BlockOwnerDeletion == nil || *o.BlockOwnerDeletion || o.Name != r.name {
			owner += fmt.Sprintf(" by %+v", o)
		}
		owners = append(owners, owner)
	}
	v.Owner = strings.Join(owners, ", ")
	if m, ok := target.Marks(s.Annotations)[r.name]; ok {
		policy := m.Policy
		if policy == "" {
			policy = v1alpha1.CreateOwner
		}
		v.Mark = r.incarnationOf(m.UID) + ", " + string(policy)
	}
	return v.orNil()
}

// holders returns the field managers of a key of data.
func holders(s *corev1.Secret, key string) []string {
	var managers []string
	for _, e := range s.ManagedFields {
		var fields struct {
			Data map[string]any `json:"f:data"`
		}
		if e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, holds := fields.Data["f:"+key]; holds && !slices.Contains(managers, e.Manager) {
			managers = append(managers, e.Manager)
		}
	}
	return managers
}

func (r *modelRun) incarnationOf(uid types.UID) string {
	incarnation, ok := r.incarnations[uid]
	if !ok {
		return "another owner"
	}
	return fmt.Sprintf("life %d", incarnation)
}

// foreign returns the labels or annotations that are not the operator's.
func foreign(m map[string]string) map[string]string {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(k, _ string) bool {
		return strings.HasSuffix(k, v1alpha1.ManagedLabelSuffix) || strings.HasPrefix(k, v1alpha1.StoreLabelPrefix) ||
			strings.HasPrefix(k, v1alpha1.MarkAnnotationPrefix)
	})
	return m
}

// modelSnapshot is the model at one moment of a step: the Secrets by name.
type modelSnapshot map[string]*modelSecret

func (r *modelRun) snapshot() modelSnapshot {
	s := modelSnapshot{}
	for name, secret := range r.m.secrets {
		s[name] = secret.clone()
	}
	return s
}

// mirror returns how the Secrets differ from the model; empty if they do not. The caller must hold the recorder's
// lock.
func (r *modelRun) mirror() string {
	for _, v := range r.expectedVersions {
		if !r.rec.known[v] {
			return "a write of the test itself is not seen yet"
		}
	}
	for _, name := range modelTargets {
		if diff := cmp.Diff(viewOf(r.m.secrets[name]), r.realView(r.rec.secrets[r.name+name])); diff != "" {
			return fmt.Sprintf("Secret %q: -want, +got:\n%s", name, diff)
		}
		if r.m.wrote[name] && r.m.secrets[name] != nil && !r.written(name) {
			return fmt.Sprintf("Secret %q was not written", name)
		}
	}
	return ""
}

// written reports whether the operator wrote a Secret in this step. Not every write changes the view, but the mark
// has a hash of the last one. The caller must hold the recorder's lock.
func (r *modelRun) written(name string) bool {
	was, is := r.snapshots[0][name], r.m.secrets[name]
	if was != nil && was.born == is.born && !was.mark.equal(is.mark) && r.markOf(name) == r.marks[name] {
		return false
	}
	return slices.ContainsFunc(r.rec.seen, func(ev modelEvent) bool {
		return ev.secret.Name == r.name+name && ev.what != watch.Deleted && !r.mine[ev.secret.ResourceVersion]
	})
}

func (m modelMark) equal(o modelMark) bool {
	return m.incarnation == o.incarnation && m.edits == o.edits && m.shared == o.shared && m.policy == o.policy && maps.Equal(m.values, o.values)
}

// markOf returns the mark of a Secret as stored. The caller must hold the recorder's lock.
func (r *modelRun) markOf(name string) string {
	if s := r.rec.secrets[r.name+name]; s != nil {
		return s.Annotations[target.MarkKey(r.name)]
	}
	return ""
}

// checkVersions checks each version of the Secrets in a step. It must match one of the snapshots of the step, and the operator
// may write only where the model expects a write.
func (r *modelRun) checkVersions(snapshots []modelSnapshot) string {
	for _, ev := range r.rec.take() {
		name, ok := strings.CutPrefix(ev.secret.Name, r.name)
		if !ok || !slices.Contains(modelTargets, name) {
			continue
		}
		first := snapshots[0][name]
		kept := first != nil && !slices.ContainsFunc(snapshots, func(s modelSnapshot) bool { return s[name] == nil || s[name].born != first.born })
		switch {
		case ev.what == watch.Deleted && kept:
			return fmt.Sprintf("Secret %q was deleted, but must be kept", name)
		case ev.what == watch.Deleted:
			continue
		}
		if r.uids[name] == "" || !kept {
			r.uids[name] = ev.secret.UID
		}
		if kept && r.uids[name] != ev.secret.UID {
			return fmt.Sprintf("Secret %q has uid %s instead of %s, but must be kept", name, ev.secret.UID, r.uids[name])
		}
		if wrong := among(r.realView(ev.secret), snapshots, name); wrong != "" {
			return wrong
		}
		if !r.mine[ev.secret.ResourceVersion] && !r.m.wrote[name] && !r.wrote[name] {
			return fmt.Sprintf("Secret %q was written without a reason: %+v", name, r.realView(ev.secret))
		}
	}
	r.wrote = r.m.wrote
	return ""
}

// among returns which field of a version of a Secret matches no snapshot of the step; empty if each matches one.
func among(got *modelView, snapshots []modelSnapshot, name string) string {
	var views []*modelView
	for _, s := range snapshots {
		if v := viewOf(s[name]); v != nil {
			views = append(views, v)
		}
	}
	for part, of := range map[string]func(*modelView) any{
		"data":        func(v *modelView) any { return v.Data },
		"labels":      func(v *modelView) any { return v.Labels },
		"annotations": func(v *modelView) any { return v.Annotations },
		"owner":       func(v *modelView) any { return v.Owner },
		"immutable":   func(v *modelView) any { return v.Immutable },
	} {
		if slices.ContainsFunc(views, func(v *modelView) bool { return cmp.Equal(of(v), of(got)) }) {
			continue
		}
		want := make([]any, len(views))
		for i, v := range views {
			want[i] = of(v)
		}
		return fmt.Sprintf("a version of Secret %q has %s %v, want one of %v", name, part, of(got), want)
	}
	return ""
}

func (s modelSpec) String() string {
	return fmt.Sprintf("creation %q, deletion %q, cleanup %q, refresh %q every %s, immutable %t, suspend %t, target %q, %v",
		s.creation, s.deletion, s.cleanup, s.refresh, s.interval, s.immutable, s.suspend, s.target, s.entries)
}

func (m *model) String() string {
	s := fmt.Sprintf("%s\nlife %d (%t), refresh %d of %d, remotes %v, faults %v, flag %s, %s, next %s, changed %t, labelled %t\nReady %t, %s %s",
		m.spec, m.incarnation, m.exists, m.served, m.request, m.remotes, m.faults, m.flag, m.now, m.next, m.changed, m.labelled, m.ready, m.reason, m.class)
	for name, secret := range m.secrets {
		s += fmt.Sprintf("\nSecret %q: %+v, created %t", name, *viewOf(secret), secret.mark.created)
	}
	return s
}
