package externalsecret_test

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// A modelStep is an event. It changes the cluster or the provider and also the model, and returns a description. The
// reaction of the operator is predicted by model.predictReconcile.
type modelStep struct {
	name   string
	weight int
	can    func(*modelRun) bool
	do     func(*modelRun) string
}

var (
	modelTargets = []string{"", "-b", "-c"}
	modelRemotes = []string{"x", "y"}
	modelKeys    = []string{"k1", "k2", "k3"}
	modelFaults  = []fake.Fault{
		{Err: provider.NewError(provider.Denied, "not allowed")},
		{Err: provider.NewError(provider.Unavailable, "status 500")},
		{Err: provider.NewError(provider.Throttled, "slow down")},
		{Err: io.ErrUnexpectedEOF}, // An unclassified error counts as Unavailable,
		{Drop: true},               // and so does an entry that the answer lacks.
	}
)

var (
	modelStepsOf []modelStep
	modelRefresh = modelStep{"refresh", 12, (*modelRun).there, (*modelRun).refresh}
	modelClock   = modelStep{"clock", 5, nil, (*modelRun).wait}
)

func init() {
	modelStepsOf = []modelStep{
		{"put", 10, nil, (*modelRun).put},
		{"remove", 6, (*modelRun).canRemove, (*modelRun).remove},
		{"fault", 4, (*modelRun).canFault, (*modelRun).fault},
		{"heal", 8, (*modelRun).canRepair, (*modelRun).repair},

		modelRefresh,
		{"label", 2, (*modelRun).there, (*modelRun).label},
		{"creationPolicy", 4, (*modelRun).there, (*modelRun).creationPolicy},
		{"deletionPolicy", 3, (*modelRun).there, (*modelRun).deletionPolicy},
		{"cleanupPolicy", 4, (*modelRun).canCleanup, (*modelRun).cleanupPolicy},
		{"refreshPolicy", 3, (*modelRun).there, (*modelRun).refreshPolicy},
		{"immutable", 1, (*modelRun).canBeImmutable, (*modelRun).immutable},
		{"rename", 3, (*modelRun).there, (*modelRun).rename},
		{"entries", 6, (*modelRun).there, (*modelRun).entries},
		{"suspend", 2, (*modelRun).there, (*modelRun).suspend},
		{"delete", 2, (*modelRun).there, (*modelRun).delete},
		{"create", 12, (*modelRun).isDeleted, (*modelRun).create},

		{"edit own key", 6, (*modelRun).canDrift, (*modelRun).editOwn},
		{"delete own key", 3, (*modelRun).canDrift, (*modelRun).deleteOwn},
		{"foreign key", 5, (*modelRun).canWrite, (*modelRun).foreignKey},
		{"disown", 2, (*modelRun).canDisown, (*modelRun).disown},
		{"foreign metadata", 5, (*modelRun).canTouch, (*modelRun).foreignMetadata},
		{"delete Secret", 4, (*modelRun).canTouch, (*modelRun).deleteSecret},
		{"create Secret", 10, (*modelRun).canCreate, (*modelRun).createSecret},

		modelClock,
		{"restart", 2, nil, (*modelRun).restart},
	}
}

func (r *modelRun) there() bool     { return r.m.exists }
func (r *modelRun) isDeleted() bool { return !r.m.exists }

// Steps at the provider.

func (r *modelRun) remote(e string) string { return r.name + "/" + e }

// value returns a value that was never used before.
func (r *modelRun) value(of string) string {
	r.values++
	return fmt.Sprintf("%s-%d", of, r.values)
}

// requestRefresh requests a refresh if the operator is about to retry, so that it is certain when it reads the changed value.
func (r *modelRun) requestRefresh() string {
	if !r.m.retrying || !r.m.running || r.m.woken {
		return ""
	}
	return ", " + r.refresh()
}

func (r *modelRun) put() string {
	e := modelPick(r, "remote", modelRemotes...)
	v := r.value(e)
	r.m.remotes[e] = v
	r.Backend.Put(r.remote(e), []byte(v))
	return v
}

func (r *modelRun) canRemove() bool { return len(r.m.remotes) > 0 }

func (r *modelRun) remove() string {
	e := modelPick(r, "remote", sortedKeys(r.m.remotes)...)
	delete(r.m.remotes, e)
	r.Backend.Delete(r.remote(e))
	return e
}

func (r *modelRun) canFault() bool { return len(r.m.faults) < len(modelRemotes) }

func (r *modelRun) fault() string {
	var well []string
	for _, e := range modelRemotes {
		if r.m.faults[e] == "" {
			well = append(well, e)
		}
	}
	e, f := modelPick(r, "remote", well...), modelPick(r, "fault", modelFaults...)
	class := provider.Unavailable
	if f.Err != nil {
		class = provider.ClassOf(f.Err)
	}
	f.Key = r.remote(e)
	r.m.faults[e] = class
	r.throttled = r.throttled || class == provider.Throttled
	r.repairs[e] = r.Backend.Inject(f)
	return fmt.Sprintf("%s of %s", class, e)
}

func (r *modelRun) canRepair() bool { return len(r.m.faults) > 0 }

func (r *modelRun) repair() string {
	e := modelPick(r, "remote", sortedKeys(r.m.faults)...)
	r.repairs[e]()
	delete(r.m.faults, e)
	if r.m.retrying && r.m.running && r.oneIn(4, "hurry") {
		r.m.woken = true
		return e + ", and the operator retries by itself"
	}
	return e
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Steps of the ExternalSecret.

// build returns the spec of the model.
func (r *modelRun) build() v1alpha1.ExternalSecretSpec {
	s := r.m.spec
	spec := v1alpha1.ExternalSecretSpec{
		StoreRef: &v1alpha1.StoreRef{Kind: "FakeStore", Name: r.name},
		Suspend:  s.suspend, RefreshPolicy: s.refresh, RefreshInterval: v1alpha1.Duration(s.interval.String()),
		Target: v1alpha1.Target{
			CreationPolicy: s.creation, DeletionPolicy: s.deletion, CleanupPolicy: s.cleanup, Immutable: s.immutable,
		},
	}
	if s.target != "" {
		spec.Target.Name = r.name + s.target
	}
	for _, e := range s.entries {
		spec.Data = append(spec.Data, v1alpha1.DataEntry{
			SecretKey: e.key, Optional: e.optional, RemoteRef: v1alpha1.RemoteRef{Key: r.remote(e.remote)},
		})
	}
	return spec
}

// edit changes the spec, and corrects it to one that the API server accepts.
func (r *modelRun) edit(change func(*modelSpec)) {
	next := r.m.spec.clone()
	change(&next)
	r.m.edit(next.allowed())
	r.change(func(es *v1alpha1.ExternalSecret) { es.Spec = r.build() })
}

// allowed corrects a spec to one that the API server accepts.
func (s modelSpec) allowed() modelSpec {
	none := s.creation == v1alpha1.CreateNone
	if s.policy() != v1alpha1.CreateOwner {
		s.cleanup = ""
	}
	if s.deletion == v1alpha1.DeletionDelete && (s.shares() || none) || s.deletion == v1alpha1.DeletionMerge && none {
		s.deletion = v1alpha1.DeletionRetain
	}
	if s.shares() || none {
		s.immutable = false
	}
	return s
}

func (r *modelRun) refresh() string {
	r.m.request++
	r.m.woken = true
	r.change(func(es *v1alpha1.ExternalSecret) {
		if es.Annotations == nil {
			es.Annotations = map[string]string{}
		}
		es.Annotations[v1alpha1.RefreshRequestAnnotation] = strconv.Itoa(r.m.request)
	})
	return fmt.Sprintf("refresh %d", r.m.request)
}

func (r *modelRun) label() string {
	v := r.value("label")
	r.m.labelled, r.m.woken = true, true
	r.change(func(es *v1alpha1.ExternalSecret) { es.Labels = map[string]string{"example.com/label": v} })
	return v
}

var modelCreations = []v1alpha1.CreationPolicy{
	"", v1alpha1.CreateOwner, v1alpha1.CreateOrphan, v1alpha1.CreateMerge, v1alpha1.CreateCreateOrMerge, v1alpha1.CreateNone,
}

func (r *modelRun) creationPolicy() string {
	c := modelOther(r, "creationPolicy", r.m.spec.creation, modelCreations...)
	r.edit(func(s *modelSpec) { s.creation = c })
	return strconv.Quote(string(c))
}

var modelDeletions = []v1alpha1.DeletionPolicy{v1alpha1.DeletionDelete, v1alpha1.DeletionMerge, v1alpha1.DeletionRetain, ""}

func (r *modelRun) deletionPolicy() string {
	d := modelOther(r, "deletionPolicy", r.m.spec.deletion, modelDeletions...)
	r.edit(func(s *modelSpec) { s.deletion = d })
	return strconv.Quote(string(r.m.spec.deletion))
}

var modelCleanups = []v1alpha1.CleanupPolicy{"", v1alpha1.CleanupOnDelete, v1alpha1.CleanupNever}

func (r *modelRun) canCleanup() bool {
	return r.m.exists && r.m.spec.policy() == v1alpha1.CreateOwner
}

func (r *modelRun) cleanupPolicy() string {
	c := modelOther(r, "cleanupPolicy", r.m.spec.cleanup, modelCleanups...)
	r.edit(func(s *modelSpec) { s.cleanup = c })
	return strconv.Quote(string(c))
}

func (s *modelSpec) drawRefresh(r *modelRun) {
	s.refresh = modelPick(r, "refreshPolicy", "", v1alpha1.RefreshPeriodic, v1alpha1.RefreshOnChange, v1alpha1.RefreshCreatedOnce)
	s.interval = modelPick(r, "refreshInterval", time.Hour, 5*time.Hour, 0)
}

func (r *modelRun) refreshPolicy() string {
	r.edit(func(s *modelSpec) { s.drawRefresh(r) })
	return fmt.Sprintf("%s every %s", r.m.spec.refresh, r.m.spec.interval)
}

func (r *modelRun) canBeImmutable() bool {
	c := r.m.spec.policy()
	return r.m.exists && (r.m.spec.immutable || c == v1alpha1.CreateOwner || c == v1alpha1.CreateOrphan)
}

func (r *modelRun) immutable() string {
	r.edit(func(s *modelSpec) { s.immutable = !s.immutable })
	return strconv.FormatBool(r.m.spec.immutable)
}

func (r *modelRun) rename() string {
	var others []string
	for _, name := range modelTargets {
		if name != r.m.spec.target && !r.released(name) {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return "not possible"
	}
	name := modelPick(r, "target", others...)
	r.edit(func(s *modelSpec) { s.target = name })
	return strconv.Quote(name)
}

// released reports whether the object has released a Secret. If the object uses that name again, only the operator's
// memory can show who created the Secret.
func (r *modelRun) released(name string) bool {
	s := r.m.secrets[name]
	return s != nil && s.released
}

func (r *modelRun) entries() string {
	free := func() string {
		for _, k := range modelKeys {
			if !slices.ContainsFunc(r.m.spec.entries, func(e modelEntry) bool { return e.key == k }) {
				return k
			}
		}
		return ""
	}()
	remote := modelPick(r, "remote", modelRemotes...)
	optional := r.oneIn(4, "optional")
	what := modelPick(r, "what", "add", "remove", "change")
	r.edit(func(s *modelSpec) {
		all := len(s.entries)
		i := all - 1
		if all > 1 {
			i = modelPick(r, "index", 0, i)
		}
		switch {
		case all == 0, what == "add" && free != "":
			s.entries = append(s.entries, modelEntry{free, remote, optional})
		case what != "change" && (all > 1 || r.oneIn(4, "last")): // A spec without entries is not valid.
			s.entries = slices.Delete(s.entries, i, i+1)
		default:
			s.entries[i].remote, s.entries[i].optional = remote, optional
			if free != "" {
				s.entries[i].key = free
			}
		}
	})
	return fmt.Sprint(r.m.spec.entries)
}

func (r *modelRun) suspend() string {
	r.edit(func(s *modelSpec) { s.suspend = !s.suspend })
	return strconv.FormatBool(r.m.spec.suspend)
}

// begin creates the object. Sometimes a remote secret is missing, or the target exists already.
func (r *modelRun) begin() string {
	what := ""
	for _, e := range modelRemotes {
		if !r.oneIn(8, "missing") {
			v := r.value(e)
			r.m.remotes[e] = v
			r.Backend.Put(r.remote(e), []byte(v))
			what += v + " "
		}
	}
	if r.oneIn(3, "before") {
		what += "over " + r.make("") + " "
	}
	return what + r.create()
}

// create creates an ExternalSecret: the first one, or one in place of a deleted one, mostly with the same spec.
func (r *modelRun) create() string {
	if r.m.incarnation == 0 || r.oneIn(3, "another") {
		s := modelSpec{target: r.m.spec.target, entries: []modelEntry{{"k1", "x", false}, {"k2", "y", r.oneIn(4, "optional")}}}
		s.creation = modelPick(r, "creationPolicy", modelCreations...)
		s.deletion = modelPick(r, "deletionPolicy", modelDeletions...)
		s.cleanup = modelPick(r, "cleanupPolicy", modelCleanups...)
		s.immutable = r.oneIn(12, "immutable")
		s.drawRefresh(r)
		r.m.spec = s
	}
	r.m.live()
	r.m.spec = r.m.spec.allowed()
	r.es = &v1alpha1.ExternalSecret{ObjectMeta: r.Meta(r.name), Spec: r.build()}
	r.must(r.API.Create(r.Ctx, r.es))
	r.incarnations[r.es.UID] = r.m.incarnation
	return r.m.spec.String()
}

func (r *modelRun) delete() string {
	r.m.die()
	r.must(r.API.Delete(r.Ctx, r.es))
	r.expect("delete", r.mirror) // The garbage collector takes some time.
	if r.m.running {
		r.seen()
	}
	return ""
}

// seen waits until the operator has seen all events of ExternalSecrets so far: it could repair the Secret of an object that it does
// not know to be deleted. For that it handles an object that reads nothing.
func (r *modelRun) seen() {
	es := r.ExternalSecret("seen", func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true })
	r.must(r.API.Create(r.Ctx, es))
	r.expect("delete", func() string {
		if is := r.rec.objects["seen"]; is == nil || is.UID != es.UID || len(is.Status.Conditions) == 0 {
			return "the operator has not seen the deletion"
		}
		return ""
	})
	r.must(r.API.Delete(r.Ctx, es))
}

// Steps of the Secrets.

// secretsThat returns the names of the matching Secrets. The target is listed three times, so that it is drawn more
// often.
func (r *modelRun) secretsThat(is func(*modelSecret) bool) []string {
	var names []string
	for _, name := range modelTargets {
		s := r.m.secrets[name]
		if s == nil || !is(s) {
			continue
		}
		names = append(names, name)
		if name == r.m.spec.target {
			names = append(names, name, name)
		}
	}
	return names
}

func (s *modelSecret) writable() bool { return !s.immutable }
func (s *modelSecret) any() bool      { return true }

// drifts reports whether a Secret has an own key that can be changed.
func (s *modelSecret) drifts() bool { return !s.immutable && len(s.ownKeys()) > 0 }

func (s *modelSecret) ownKeys() []string {
	var keys []string
	for _, k := range sortedKeys(s.data) {
		if s.data[k].own {
			keys = append(keys, k)
		}
	}
	return keys
}

func (r *modelRun) canDrift() bool {
	return len(r.secretsThat((*modelSecret).drifts)) > 0
}

// editSecret changes a Secret as a user or a tool does.
func (r *modelRun) editSecret(name string, change func(*corev1.Secret)) {
	manager := client.FieldOwner(modelPick(r, "manager", "kubectl-edit", "helm"))
	s := &corev1.Secret{}
	r.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := r.API.Get(r.Ctx, client.ObjectKey{Namespace: r.NS, Name: r.name + name}, s); err != nil {
			return err
		}
		change(s)
		return r.API.Update(r.Ctx, s, manager)
	}))
	r.mine[s.ResourceVersion] = true
	r.expectedVersions = append(r.expectedVersions, s.ResourceVersion)
}

func (r *modelRun) editOwn() string {
	name := modelPick(r, "Secret", r.secretsThat((*modelSecret).drifts)...)
	s := r.m.secrets[name]
	k := modelPick(r, "key", s.ownKeys()...)
	v := r.value("edited")
	// Sometimes the new value is the one that the provider has by now.
	for _, e := range r.m.spec.entries {
		if now := r.m.remotes[e.remote]; e.key == k && now != "" && now != s.data[k].value && r.oneIn(2, "same") {
			v = now
		}
	}
	r.m.touched(name, s)
	s.data[k] = modelValue{value: v}
	r.editSecret(name, func(s *corev1.Secret) { s.Data[k] = []byte(v) })
	return fmt.Sprintf("%q %s=%s", name, k, v)
}

func (r *modelRun) deleteOwn() string {
	name := modelPick(r, "Secret", r.secretsThat((*modelSecret).drifts)...)
	s := r.m.secrets[name]
	k := modelPick(r, "key", s.ownKeys()...)
	r.m.touched(name, s)
	delete(s.data, k)
	r.editSecret(name, func(s *corev1.Secret) { delete(s.Data, k) })
	return fmt.Sprintf("%q %s", name, k)
}

func (r *modelRun) canWrite() bool { return len(r.secretsThat((*modelSecret).writable)) > 0 }
func (r *modelRun) canTouch() bool { return len(r.secretsThat((*modelSecret).any)) > 0 }

// foreignKey adds, changes or removes a key that the object does not hold. The object may want such a key later.
func (r *modelRun) foreignKey() string {
	name := modelPick(r, "Secret", r.secretsThat((*modelSecret).writable)...)
	s := r.m.secrets[name]
	keys := []string{"f1", "f2"}
	for _, k := range modelKeys {
		if v, there := s.data[k]; there && !v.own || !there && !r.wants(k) {
			keys = append(keys, k)
		}
	}
	k := modelPick(r, "key", keys...)
	r.m.touched(name, s)
	if _, there := s.data[k]; there && r.oneIn(3, "remove") {
		delete(s.data, k)
		r.editSecret(name, func(s *corev1.Secret) { delete(s.Data, k) })
		return fmt.Sprintf("%q without %s", name, k)
	}
	v := r.value("foreign")
	s.data[k] = modelValue{value: v}
	r.editSecret(name, func(s *corev1.Secret) {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[k] = []byte(v)
	})
	return fmt.Sprintf("%q %s=%s", name, k, v)
}

func (r *modelRun) wants(key string) bool {
	return slices.ContainsFunc(r.m.spec.entries, func(e modelEntry) bool { return e.key == key })
}

func (r *modelRun) foreignMetadata() string {
	return r.touch(modelPick(r, "Secret", r.secretsThat((*modelSecret).any)...))
}

func (r *modelRun) touch(name string) string {
	s := r.m.secrets[name]
	label, k, v := r.oneIn(2, "label"), "example.com/foreign", r.value("foreign")
	had := s.annotations
	if label {
		had = s.labels
	}
	r.m.touched(name, s)
	next := map[string]string{k: v}
	if had[k] != "" && r.oneIn(3, "remove") {
		next = nil
	}
	if label {
		s.labels = next
	} else {
		s.annotations = next
	}
	r.editSecret(name, func(s *corev1.Secret) {
		of := &s.Annotations
		if label {
			of = &s.Labels
		}
		if *of == nil {
			*of = map[string]string{}
		}
		delete(*of, k)
		maps.Copy(*of, next)
	})
	return fmt.Sprintf("%q label %t: %v", name, label, next)
}

func (s *modelSecret) owned() bool { return s.owner > 0 }

func (r *modelRun) canDisown() bool { return len(r.secretsThat((*modelSecret).owned)) > 0 }

// disown removes the ownerReference.
func (r *modelRun) disown() string {
	name := modelPick(r, "Secret", r.secretsThat((*modelSecret).owned)...)
	s := r.m.secrets[name]
	r.m.touched(name, s)
	s.owner = 0
	r.editSecret(name, func(s *corev1.Secret) { s.OwnerReferences = nil })
	return strconv.Quote(name)
}

func (r *modelRun) deleteSecret() string {
	name := modelPick(r, "Secret", r.secretsThat((*modelSecret).any)...)
	r.m.touched(name, r.m.secrets[name])
	delete(r.m.secrets, name)
	s := &corev1.Secret{}
	r.must(r.API.Get(r.Ctx, client.ObjectKey{Namespace: r.NS, Name: r.name + name}, s))
	r.must(r.API.Delete(r.Ctx, s))
	r.expectedVersions = append(r.expectedVersions, string(s.UID))
	return fmt.Sprintf("%q", name)
}

// canCreate is true while the target does not exist.
func (r *modelRun) canCreate() bool { return r.m.secrets[r.m.spec.target] == nil }

func (r *modelRun) createSecret() string {
	name := r.m.spec.target
	r.m.touched(name, nil)
	return r.make(name)
}

// make creates a Secret as a user does, sometimes with a key that the object wants.
func (r *modelRun) make(name string) string {
	r.m.born++
	s := &modelSecret{born: r.m.born, data: map[string]modelValue{}}
	secret := &corev1.Secret{ObjectMeta: r.Meta(r.name + name), Data: map[string][]byte{}}
	for _, k := range []string{"f1", modelPick(r, "key", modelKeys...)}[:modelPick(r, "keys", 0, 1, 2)] {
		v := r.value("made")
		s.data[k] = modelValue{value: v}
		secret.Data[k] = []byte(v)
	}
	r.m.secrets[name] = s
	r.must(r.API.Create(r.Ctx, secret, client.FieldOwner("kubectl-create")))
	r.mine[secret.ResourceVersion] = true
	r.expectedVersions = append(r.expectedVersions, secret.ResourceVersion)
	return fmt.Sprintf("%q %v", name, sortedKeys(s.data))
}

// Steps of the operator and its clock.

// wait advances the clock by hours. The operator notices that at its next reconcile, which may be at once if one is
// still in progress. If a refresh is due by then, wait triggers a reconcile.
func (r *modelRun) wait() string {
	d := modelPick(r, "time", 13*time.Minute, 61*time.Minute, 301*time.Minute)
	r.advance(d)
	what := d.String()
	if !r.m.running || !r.m.exists || r.m.spec.suspend || !r.m.spec.periodic() || r.m.now.Before(r.m.next) {
		return what
	}
	for _, name := range modelTargets {
		if s := r.m.secrets[name]; s != nil && s.mark.incarnation > 0 {
			return what + ", touch " + r.touch(name)
		}
	}
	return what + ", label " + r.label()
}

func (r *modelRun) advance(d time.Duration) {
	r.m.now, r.m.reverts = r.m.now.Add(d), 0
	// After a restart, the operator knows the next refresh only from the status, which may be ten minutes behind. So
	// the clock never stops within those.
	if early := r.m.next.Sub(r.m.now); early > 0 && early <= 11*time.Minute {
		r.m.now = r.m.next.Add(time.Minute)
	}
	r.clock.Store(r.m.now.Unix())
	r.advanced = true
}

// restart stops the operator and starts it again, sometimes with another flag. Other steps may happen meanwhile.
func (r *modelRun) restart() string {
	r.Stop()
	r.m.running = false
	what := ""
	for range modelPick(r, "meanwhile", 0, 0, 1, 2) {
		s := r.choose(true)
		what += s.name + " " + s.do(r) + "; "
		r.snapshots = append(r.snapshots, r.snapshot())
	}
	if r.oneIn(2, "flag") {
		r.flag = modelPick(r, "to", v1alpha1.CleanupOnDelete, v1alpha1.CleanupNever)
		r.m.flag = r.flag
	}
	r.base = r.passes.Load() + 2 // Two controllers read the clock once when they are set up.
	r.start()
	r.m.start()
	return what + "with " + string(r.flag)
}
