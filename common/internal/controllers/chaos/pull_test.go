package chaos_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

var faults = []fake.Fault{
	{Hang: true},
	{Hang: true},
	{Latency: 300 * time.Millisecond},
	{Err: provider.NewError(provider.Denied, "not allowed")},
	{Err: provider.NewError(provider.Unavailable, "status 500")},
	{Drop: true},
}

// foreignKey is a key of a Secret that a user owns.
const foreignKey = "foreign"

// keysOf are the keys of the Secret that are made from a remote secret.
var keysOf = map[string][]string{"a": {"k1", "t"}, "b": {"k2"}, "j": {"p", "q"}}

// A pull is a sequence with one ExternalSecret, which may be a child of a ClusterExternalSecret.
type pull struct {
	*sequence
	there bool
	// child is the name of the ExternalSecret; fans is true if a ClusterExternalSecret creates it.
	child string
	fans  bool
	// The fields of the spec.
	creation                  v1alpha1.CreationPolicy
	deletion                  v1alpha1.DeletionPolicy
	refresh                   v1alpha1.RefreshPolicy
	target                    string
	second, extract, template bool
	// stored is true while the store exists. backend is the index of the backend that it uses.
	stored  bool
	backend int
	// remotes are the values in the backends.
	remotes [2]map[string]string
	request int
	// drifted are the keys that a user wrote. They stay when the object no longer wants them.
	drifted map[string]bool
	// turned is true after the store has switched to the other backend, whose values may be older. It is guarded by the
	// worker's lock. So is tracks, which holds the tracks of the Secrets by name.
	turned bool
	tracks map[string]*track
}

// A track is what was seen of a Secret, and what it is allowed to lose.
type track struct {
	// seen are the keys that it has, with the number of each value.
	seen map[string]int
	// loose are keys that may be removed, and unordered those whose value may be replaced by an older one.
	loose, unordered map[string]bool
	// all is how often the whole Secret may be deleted.
	all int
}

func (p *pull) track(name string) *track {
	t := p.tracks[name]
	if t == nil {
		t = &track{seen: map[string]int{}, loose: map[string]bool{}, unordered: map[string]bool{}}
		p.tracks[name] = t
	}
	return t
}

// see compares a version of a Secret with the versions seen before. The caller must hold the worker's lock.
func (p *pull) see(what watch.EventType, s *corev1.Secret) {
	if !strings.HasPrefix(s.Name, p.name+"-") {
		return
	}
	t := p.track(s.Name)
	for k, before := range t.seen {
		value, there := s.Data[k]
		if what == watch.Deleted {
			there = false
		}
		n := number(string(value))
		switch {
		case !there && t.all == 0 && !t.loose[k]:
			p.never("Secret %s loses %s by %s %s", s.Name, k, what, writers(s))
		case there && n < before && n >= 0 && !p.turned && !t.unordered[k]:
			p.never("Secret %s goes back from %d to %d at %s by %s", s.Name, before, n, k, writers(s))
		}
	}
	t.seen = map[string]int{}
	if what == watch.Deleted {
		t.all = max(0, t.all-1)
		return
	}
	for k, value := range s.Data {
		t.seen[k] = number(string(value))
	}
}

// writers returns the field managers of a Secret.
func writers(s *corev1.Secret) string {
	var all []string
	for _, m := range s.ManagedFields {
		all = append(all, fmt.Sprintf("%s %s", m.Manager, m.Time.Format("05")))
	}
	return strings.Join(all, ", ")
}

// number returns the number of a value; -1 if it has none.
func number(value string) int {
	_, n, _ := strings.Cut(value, "-")
	if i, err := strconv.Atoi(n); err == nil {
		return i
	}
	return -1
}

// loosen allows keys of the target to be removed.
func (p *pull) loosen(keys ...string) {
	p.locked(func() {
		for _, k := range keys {
			p.track(p.target).loose[k], p.track(p.target).unordered[k] = true, true
		}
	})
}

// pull runs one sequence.
func (w *worker) pull(rt *rapid.T) {
	p := &pull{
		sequence: w.begin(rt), tracks: map[string]*track{}, drifted: map[string]bool{}, stored: true,
		creation: testenv.Pick(rt, "creation", v1alpha1.CreateOwner, v1alpha1.CreateOwner, v1alpha1.CreateOrphan, v1alpha1.CreateMerge, v1alpha1.CreateCreateOrMerge),
		refresh:  testenv.Pick(rt, "refresh", v1alpha1.RefreshPeriodic, v1alpha1.RefreshPeriodic, v1alpha1.RefreshOnChange),
		fans:     testenv.Pick(rt, "fans", true, false, false),
		second:   testenv.Pick(rt, "second", true, false), extract: testenv.Pick(rt, "extract", true, false), template: testenv.Pick(rt, "template", true, false),
	}
	p.child, p.target = p.name, p.name+"-t"
	p.pickDeletion()
	w.locked(func() { w.see = p.see })
	defer w.locked(func() { w.see = nil })
	for i := range p.remotes {
		p.remotes[i] = map[string]string{}
		for _, r := range []string{"a", "b", "j"} {
			p.put(i, r)
		}
	}
	p.must(p.API.Create(p.Ctx, p.Store(p.name, p.names[0])))
	if p.creation == v1alpha1.CreateMerge {
		p.foreign()
	}
	p.create()
	defer p.clear()
	for range steps {
		p.step()
		p.breathe()
		p.check()
	}
	p.waitUntilStable()
}

// Store returns a store over a backend.
func (w *worker) Store(name, backend string) *fakev1.FakeStore {
	return &fakev1.FakeStore{ObjectMeta: w.Meta(name), Spec: fakev1.FakeStoreSpec{Backend: backend}}
}

func (p *pull) step() {
	type step struct {
		weight int
		can    bool
		do     func()
	}
	all := []step{
		{6, true, func() { p.put(p.backend, testenv.Pick(p.rt, "remote", "a", "b", "j")) }},
		{2, true, p.remove},
		{3, true, func() {
			b, key := p.backends[p.backend], p.name+"/"+testenv.Pick(p.rt, "remote", "a", "b", "j")
			p.note("%s: %s", key, p.fault(b, key))
		}},
		{3, len(p.repairs) > 0, func() { p.note("heal"); p.repair() }},
		{4, p.there, func() { p.request++; p.ask() }},
		{3, p.there, p.edit},
		{1, p.there, p.rename},
		{1, p.there && p.fans, p.renameChild},
		{1, p.there, p.delete},
		{6, !p.there, p.create},
		{2, p.stored, p.switchStore},
		{1, p.stored, p.deleteStore},
		{5, !p.stored, p.restore},
		{2, true, p.foreign},
		{2, true, p.drift},
		{1, true, p.deleteSecret},
	}
	var possible []func()
	for _, s := range all {
		if s.can {
			possible = append(possible, slices.Repeat([]func(){s.do}, s.weight)...)
		}
	}
	indices := make([]int, len(possible))
	for i := range indices {
		indices[i] = i
	}
	possible[testenv.Pick(p.rt, "step", indices...)]()
}

// The provider.

func (p *pull) put(backend int, remote string) {
	v := p.value(remote)
	p.note("backend %d has %s", backend, v)
	p.remotes[backend][remote] = v
	data := v
	if remote == "j" {
		data = fmt.Sprintf(`{"p":%q,"q":%q}`, v, v)
	}
	p.backends[backend].Put(p.name+"/"+remote, []byte(data))
}

func (p *pull) remove() {
	remote := testenv.Pick(p.rt, "remote", "a", "b", "j")
	p.note("backend %d loses %s", p.backend, remote)
	if p.deletion != v1alpha1.DeletionRetain {
		p.loosen(keysOf[remote]...)
	}
	delete(p.remotes[p.backend], remote)
	p.backends[p.backend].Delete(p.name + "/" + remote)
}

// loosenMissing allows the keys made from missing secrets to be removed.
func (p *pull) loosenMissing() {
	for remote, keys := range keysOf {
		if _, there := p.remotes[p.backend][remote]; !there && p.deletion != v1alpha1.DeletionRetain {
			p.loosen(keys...)
		}
	}
}

// The store.

func (p *pull) switchStore() {
	p.switchBackend()
	s := p.Store(p.name, "")
	p.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := p.API.Get(p.Ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		s.Spec.Backend = p.names[p.backend]
		return p.API.Update(p.Ctx, s)
	}))
}

// switchBackend switches the store to the other backend, whose values may be older.
func (p *pull) switchBackend() {
	p.backend = 1 - p.backend
	p.note("the store leads to backend %d", p.backend)
	p.locked(func() { p.turned = true })
	p.loosenMissing()
}

func (p *pull) deleteStore() {
	p.note("delete the store")
	p.stored = false
	p.must(p.API.Delete(p.Ctx, p.Store(p.name, "")))
}

func (p *pull) restore() {
	if testenv.Pick(p.rt, "other", true, false) {
		p.switchBackend()
	}
	p.note("create the store")
	p.stored = true
	p.must(p.API.Create(p.Ctx, p.Store(p.name, p.names[p.backend])))
}

// The object.

func (p *pull) pickDeletion() {
	options := []v1alpha1.DeletionPolicy{v1alpha1.DeletionRetain, v1alpha1.DeletionRetain, v1alpha1.DeletionMerge}
	if p.creation == v1alpha1.CreateOwner || p.creation == v1alpha1.CreateOrphan {
		options = append(options, v1alpha1.DeletionDelete)
	}
	p.deletion = testenv.Pick(p.rt, "deletion", options...)
}

func (p *pull) spec() v1alpha1.ExternalSecretSpec {
	spec := v1alpha1.ExternalSecretSpec{
		StoreRef:      &v1alpha1.StoreRef{Kind: "FakeStore", Name: p.name},
		RefreshPolicy: p.refresh, RefreshInterval: "1s",
		Target: v1alpha1.Target{Name: p.target, CreationPolicy: p.creation, DeletionPolicy: p.deletion},
		Data:   []v1alpha1.DataEntry{{SecretKey: "k1", RemoteRef: v1alpha1.RemoteRef{Key: p.name + "/a"}}},
	}
	if p.second {
		spec.Data = append(spec.Data, v1alpha1.DataEntry{SecretKey: "k2", RemoteRef: v1alpha1.RemoteRef{Key: p.name + "/b"}})
	}
	if p.extract {
		spec.DataFrom = []v1alpha1.DataFromEntry{{Extract: &v1alpha1.RemoteRef{Key: p.name + "/j"}}}
	}
	if p.template {
		spec.Target.Template = &v1alpha1.Template{MergePolicy: "Merge", Data: map[string]string{"t": "{{ .k1 }}"}}
	}
	return spec
}

func (p *pull) wide() *v1alpha1.ClusterExternalSecret {
	return &v1alpha1.ClusterExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: p.NS + "-" + p.name}, Spec: v1alpha1.ClusterExternalSecretSpec{
		ExternalSecretSpec: p.spec(), ExternalSecretName: p.child, NamespaceChoice: v1alpha1.NamespaceChoice{Namespaces: []string{p.NS}},
	}}
}

func (p *pull) es() *v1alpha1.ExternalSecret {
	return &v1alpha1.ExternalSecret{ObjectMeta: p.Meta(p.child), Spec: p.spec()}
}

func (p *pull) create() {
	p.note("create %s: %s, %s, %s, k2 %t, extract %t, template %t, of a cluster object %t", p.child, p.creation, p.deletion, p.refresh, p.second, p.extract, p.template, p.fans)
	p.there = true
	if p.fans {
		p.must(p.API.Create(p.Ctx, p.wide()))
		return
	}
	p.must(p.API.Create(p.Ctx, p.es()))
}

func (p *pull) delete() {
	p.note("delete %s", p.child)
	p.there = false
	// The Secret is deleted with the object, unless it is an Orphan.
	if p.creation != v1alpha1.CreateOrphan {
		p.loosen("k1", "k2", "p", "q", "t")
	}
	if p.creation == v1alpha1.CreateOwner {
		p.locked(func() { // This includes a former target that it has not released yet.
			for _, t := range p.tracks {
				t.all++
			}
		})
	}
	if p.fans {
		p.must(p.API.Delete(p.Ctx, p.wide()))
		return
	}
	p.must(p.API.Delete(p.Ctx, p.es()))
}

// edit changes the spec.
func (p *pull) edit() {
	switch testenv.Pick(p.rt, "edit", "k2", "extract", "template", "deletion") {
	case "k2":
		if p.second = !p.second; !p.second {
			p.loosen("k2")
		}
	case "extract":
		if p.extract = !p.extract; !p.extract {
			p.loosen("p", "q")
		}
	case "template":
		if p.template = !p.template; !p.template {
			p.loosen("t")
		}
	default:
		p.pickDeletion()
		p.loosenMissing()
	}
	p.note("%s, k2 %t, extract %t, template %t", p.deletion, p.second, p.extract, p.template)
	p.write()
}

// rename changes the target name. The former target is treated as if the object were deleted.
func (p *pull) rename() {
	p.loosen("k1", "k2", "p", "q", "t")
	p.locked(func() {
		t := p.track(p.target)
		_, foreign := t.seen[foreignKey]
		if p.creation == v1alpha1.CreateOwner && !foreign {
			t.all++
		}
	})
	p.values++
	p.target = fmt.Sprintf("%s-t%d", p.name, p.values)
	p.note("the target is %s", p.target)
	if p.creation == v1alpha1.CreateMerge {
		p.foreign()
	}
	p.write()
}

// renameChild makes the ClusterExternalSecret create an object with another name, for another Secret. The former ones
// are deleted when the new ones exist.
func (p *pull) renameChild() {
	if p.creation == v1alpha1.CreateOwner {
		p.locked(func() { p.track(p.target).all++ })
	}
	p.child = fmt.Sprintf("%s-c%d", p.name, p.values)
	p.note("the object is %s", p.child)
	p.rename()
}

// write updates the object that users write.
func (p *pull) write() {
	p.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if p.fans {
			now, want := p.wide(), p.wide()
			if err := p.API.Get(p.Ctx, client.ObjectKeyFromObject(now), now); err != nil {
				return err
			}
			now.Spec = want.Spec
			return p.API.Update(p.Ctx, now)
		}
		now, want := p.es(), p.es()
		if err := p.API.Get(p.Ctx, client.ObjectKeyFromObject(now), now); err != nil {
			return err
		}
		now.Spec = want.Spec
		return p.API.Update(p.Ctx, now)
	}))
}

// ask requests a refresh, if the object exists.
func (p *pull) ask() {
	err := p.API.Patch(p.Ctx, p.es(), client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, v1alpha1.RefreshRequestAnnotation, p.request)))
	p.must(client.IgnoreNotFound(err))
}

// The Secret.

// secret changes the target as a user does. If it does not exist, it is created only if create is true.
func (p *pull) secret(create bool, change func(*corev1.Secret)) {
	p.must(retry.OnError(retry.DefaultBackoff, func(err error) bool {
		return kerrors.IsConflict(err) || kerrors.IsAlreadyExists(err) || kerrors.IsNotFound(err)
	}, func() error {
		s := &corev1.Secret{ObjectMeta: p.Meta(p.target)}
		err := p.API.Get(p.Ctx, client.ObjectKeyFromObject(s), s)
		switch {
		case kerrors.IsNotFound(err) && create:
			s.Data = map[string][]byte{}
			change(s)
			return p.API.Create(p.Ctx, s, client.FieldOwner("person"))
		case kerrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		change(s)
		return p.API.Update(p.Ctx, s, client.FieldOwner("person"))
	}))
}

func (p *pull) foreign() {
	v := p.value("f")
	p.note("a user writes %s to %s", v, p.target)
	p.secret(p.creation == v1alpha1.CreateMerge, func(s *corev1.Secret) { s.Data[foreignKey] = []byte(v) })
}

func (p *pull) drift() {
	k := testenv.Pick(p.rt, "key", "k1", "k2", "p", "t")
	p.note("a user writes %s of %s", k, p.target)
	p.loosen(k)
	p.drifted[k] = true
	p.secret(false, func(s *corev1.Secret) {
		if _, there := s.Data[k]; there {
			s.Data[k] = []byte("drift")
		}
	})
}

func (p *pull) deleteSecret() {
	p.note("a user deletes %s", p.target)
	p.locked(func() { p.track(p.target).all++ })
	p.must(client.IgnoreNotFound(p.API.Delete(p.Ctx, &corev1.Secret{ObjectMeta: p.Meta(p.target)})))
	if p.creation == v1alpha1.CreateMerge {
		p.foreign()
	}
}

// waitUntilStable ends all disturbances, and waits until the Secret is as the spec says.
func (p *pull) waitUntilStable() {
	p.note("no more disturbances from now on")
	p.repair()
	if !p.stored {
		p.restore()
	}
	for remote := range keysOf {
		if p.remotes[p.backend][remote] == "" {
			p.put(p.backend, remote)
		}
	}
	if !p.there {
		p.create()
	}
	want := map[string]string{"k1": p.remotes[p.backend]["a"]}
	if p.second {
		want["k2"] = p.remotes[p.backend]["b"]
	}
	if p.extract {
		want["p"], want["q"] = p.remotes[p.backend]["j"], p.remotes[p.backend]["j"]
	}
	if p.template {
		want["t"] = want["k1"]
	}
	p.request++
	p.finally(func() string {
		es := p.es()
		if err := p.API.Get(p.Ctx, client.ObjectKeyFromObject(es), es); err != nil {
			return err.Error()
		}
		if es.Annotations[v1alpha1.RefreshRequestAnnotation] != strconv.Itoa(p.request) {
			p.ask() // The object may be new, or an older object with that name may have got the request.
			return "no refresh was requested"
		}
		ready := meta.FindStatusCondition(es.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != v1alpha1.ReasonSecretSynced || es.Status.ObservedRefreshRequest != strconv.Itoa(p.request) {
			return fmt.Sprintf("Ready is %+v, and request %q of %d was served", ready, es.Status.ObservedRefreshRequest, p.request)
		}
		got := map[string]string{}
		if s := p.Secret(p.target); s != nil {
			for k, v := range s.Data {
				got[k] = string(v)
			}
		}
		maps.DeleteFunc(got, func(k, _ string) bool { return k == foreignKey || want[k] == "" && p.drifted[k] })
		return cmp.Diff(want, got)
	})
}

// clear removes everything for the next sequence.
func (p *pull) clear() {
	p.repair()
	p.locked(func() { p.worker.see = nil })
	for _, o := range []client.Object{p.wide(), p.es(), p.Store(p.name, "")} {
		if err := client.IgnoreNotFound(p.API.Delete(p.Ctx, o)); err != nil {
			p.Error(err)
		}
	}
	p.waitUntilEmpty(&v1alpha1.ExternalSecretList{})
	if err := p.API.DeleteAllOf(p.Ctx, &corev1.Secret{}, client.InNamespace(p.NS)); err != nil {
		p.Error(err)
	}
}
