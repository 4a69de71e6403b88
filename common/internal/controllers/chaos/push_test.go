package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/retry"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

// TestPush runs sequences with PushSecrets.
func TestPush(t *testing.T) { run(t, pushes, (*worker).push) }

// A pusher is a PushSecret, as a user last wrote it.
type pusher struct {
	name, source, remote string
	deletes              bool
	// firm is true once the object was in sync with its present spec: its remote secret must exist from then on. It is
	// guarded by the worker's lock.
	firm bool
	// from is a remote secret to which it alone pushed, in sync, before its remoteKey was changed. It is guarded, too.
	from string
}

// An incarnation is a remote secret from its creation to its removal, with the number of the value seen last.
type incarnation struct {
	id     string
	number int
}

// A push is a sequence with PushSecrets that share sources and remote secrets.
type push struct {
	*sequence
	// pushers are the existing objects, by name.
	pushers map[string]*pusher
	// sources are the values of the existing Secrets.
	sources map[string]string
	stored  bool

	// The following fields are guarded by the worker's lock. seen is the number of each remote value, sourcesOf the
	// possible sources of each, and users its objects.
	seen      map[string]incarnation
	sourcesOf map[string]map[string]bool
	users     map[string]map[string]bool
	// pendingRemovals are remote secrets that must be removed, because their only object, which created them, was deleted; with
	// the source of each.
	pendingRemovals map[string]string
}

func (p *push) remote(name string) string { return p.name + "/" + name }

func (w *worker) push(rt *rapid.T) {
	p := &push{
		sequence: w.begin(rt), pushers: map[string]*pusher{}, sources: map[string]string{}, stored: true,
		seen: map[string]incarnation{}, sourcesOf: map[string]map[string]bool{}, users: map[string]map[string]bool{}, pendingRemovals: map[string]string{},
	}
	p.must(p.API.Create(p.Ctx, p.Store(p.name, p.names[0])))
	p.write("s1")
	p.write("s2")
	defer p.clear()
	ctx, cancel := context.WithCancel(p.Ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			p.locked(p.checkRemotes)
			time.Sleep(5 * time.Millisecond)
		}
	})
	defer watching.Wait()
	defer cancel()
	p.create("", "", "")
	for range steps {
		p.step()
		p.breathe()
		p.check()
	}
	p.waitUntilStable()
}

// checkRemotes checks the remote secrets for forbidden states. The caller must hold the worker's lock.
func (p *push) checkRemotes() {
	for _, u := range p.pushers {
		if _, there := p.backends[0].Value(p.remote(u.remote)); u.firm && !there {
			p.never("%s is missing, and %s pushes to it", u.remote, u.name)
		} else if _, before := p.backends[0].Value(p.remote(u.from)); u.from != "" && !there && !before {
			p.never("%s is missing, and %s, to which %s pushes now, does not exist yet", u.from, u.remote, u.name)
		}
	}
	for remote, sources := range p.sourcesOf {
		v, there := p.backends[0].Value(p.remote(remote))
		n, was := number(string(v)), p.seen[remote]
		// A secret created again after its removal may be from a delayed operator, until the next push.
		id := p.backends[0].ID(p.remote(remote))
		if there && len(sources) == 1 && id == was.id && n < was.number {
			p.never("%s goes back from %d to %d", remote, was.number, n)
		}
		p.seen[remote] = incarnation{id, n}
	}
}

func (p *push) step() {
	some := len(p.pushers) > 0
	all := []struct {
		weight int
		can    bool
		do     func()
	}{
		{6, len(p.pushers) < 3, func() { p.create("", "", "") }},
		{3, some, func() { p.delete(p.any()) }},
		{2, true, p.alone},
		{4, some, p.handOver},
		{2, some, p.retarget},
		{1, some, p.policy},
		{5, some, func() { p.waitForSync(p.any()) }},
		{6, true, func() { p.write(testenv.Pick(p.rt, "source", "s1", "s2")) }},
		{1, len(p.sources) > 0, p.deleteSource},
		{3, true, func() {
			key := p.remote(testenv.Pick(p.rt, "remote", "r1", "r2"))
			p.note("%s: %s", key, p.fault(p.backends[0], key))
		}},
		{4, len(p.repairs) > 0, func() { p.note("heal"); p.repair() }},
		{1, p.stored, p.deleteStore},
		{5, !p.stored, p.restore},
	}
	var possible []int
	for i, s := range all {
		if s.can {
			possible = append(possible, slices.Repeat([]int{i}, s.weight)...)
		}
	}
	all[testenv.Pick(p.rt, "step", possible...)].do()
}

// any draws one of the objects.
func (p *push) any() *pusher {
	return p.pushers[testenv.Pick(p.rt, "object", slices.Sorted(maps.Keys(p.pushers))...)]
}

func (p *push) object(u *pusher) *v1alpha1.PushSecret {
	ps := &v1alpha1.PushSecret{ObjectMeta: p.Meta(u.name), Spec: v1alpha1.PushSecretSpec{
		StoreRefs:       []v1alpha1.PushStoreRef{{Kind: "FakeStore", Name: p.name}},
		RefreshInterval: "1s",
		Selector:        v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: p.name + "-" + u.source}},
		Data:            []v1alpha1.PushData{testenv.PushData("password", p.remote(u.remote), "")},
	}}
	if u.deletes {
		ps.Spec.DeletionPolicy = v1alpha1.PushDeletionDelete
	}
	return ps
}

// uses records that an object may push from now on. The caller must hold the worker's lock.
func (p *push) uses(u *pusher) {
	for _, m := range []map[string]map[string]bool{p.sourcesOf, p.users} {
		if m[u.remote] == nil {
			m[u.remote] = map[string]bool{}
		}
	}
	p.sourcesOf[u.remote][u.source], p.users[u.remote][u.name] = true, true
	delete(p.pendingRemovals, u.remote)
}

// create creates an object; empty arguments are drawn.
func (p *push) create(source, remote, deletes string) *pusher {
	p.values++
	u := &pusher{name: fmt.Sprintf("%s-p%d", p.name, p.values), source: source, remote: remote, deletes: deletes == "true"}
	if source == "" {
		u.source = testenv.Pick(p.rt, "source", "s1", "s1", "s2")
		u.remote = testenv.Pick(p.rt, "remote", "r1", "r2")
		u.deletes = testenv.Pick(p.rt, "deletes", true, true, false)
	}
	p.note("create %s from %s to %s, deletes %t", u.name, u.source, u.remote, u.deletes)
	p.locked(func() {
		p.pushers[u.name] = u
		p.uses(u)
	})
	p.must(p.API.Create(p.Ctx, p.object(u)))
	return u
}

func (p *push) delete(u *pusher) {
	recorded := p.recorded(u)
	p.note("delete %s, recorded %t", u.name, recorded)
	p.locked(func() {
		delete(p.pushers, u.name)
		if delete(p.pendingRemovals, u.remote); u.firm && u.deletes && len(p.users[u.remote]) == 1 && recorded {
			p.pendingRemovals[u.remote] = u.source
		}
	})
	p.must(p.API.Delete(p.Ctx, p.object(u)))
}

// recorded reports whether the status of an object lists the present version of its remote secret, with the wanted
// value. If an operator was killed before it could record a write, no operator can know later which object made it.
func (p *push) recorded(u *pusher) bool {
	remote := p.remote(u.remote)
	if v, there := p.backends[0].Value(remote); !there || string(v) != p.sources[u.source] {
		return false
	}
	ps := p.object(u)
	if err := p.API.Get(p.Ctx, client.ObjectKeyFromObject(ps), ps); err != nil {
		return false
	}
	versions := p.backends[0].Versions(remote)
	for _, s := range ps.Status.Stores {
		for _, e := range s.Entries {
			if e.RemoteKey == remote && len(versions) > 0 && e.Version == versions[len(versions)-1] {
				return true
			}
		}
	}
	return false
}

// alone lets an object push where no other object does, and deletes it.
func (p *push) alone() {
	u := p.create(testenv.Pick(p.rt, "source", "s1", "s2"), fmt.Sprintf("own-%d", p.values), "true")
	p.waitForSync(u)
	p.delete(u)
}

// handOver replaces an object by another with the same spec, as a renamed manifest does.
func (p *push) handOver() {
	former := p.any()
	next := p.create(former.source, former.remote, strconv.FormatBool(former.deletes))
	if testenv.Pick(p.rt, "wait", true, true, false) {
		p.waitForSync(next)
	}
	p.delete(former)
}

// change replaces the spec of an object.
func (p *push) change(u *pusher, change func()) {
	p.locked(func() {
		u.from = ""
		change()
		u.firm = false
		p.uses(u)
	})
	p.note("%s from %s to %s, deletes %t", u.name, u.source, u.remote, u.deletes)
	p.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now := p.object(u)
		if err := p.API.Get(p.Ctx, client.ObjectKeyFromObject(now), now); err != nil {
			return err
		}
		now.Spec = p.object(u).Spec
		return p.API.Update(p.Ctx, now)
	}))
}

func (p *push) retarget() {
	u := p.any()
	other := map[string]string{"r1": "r2", "r2": "r1"}[u.remote]
	p.change(u, func() {
		if alone := len(p.users[u.remote]) == 1; alone && u.firm {
			u.from = u.remote
		}
		p.users[u.remote]["changed"] = true // Its secret is kept or removed by the policy at that time.
		u.remote = other
	})
}

func (p *push) policy() {
	u := p.any()
	p.locked(func() { p.users[u.remote]["changed"] = true })
	p.change(u, func() { u.deletes = !u.deletes })
}

// state returns why an object is not in sync; empty if it is.
func (p *push) state(u *pusher) string {
	ps := p.object(u)
	if err := p.API.Get(p.Ctx, client.ObjectKeyFromObject(ps), ps); err != nil {
		return err.Error()
	}
	ready := meta.FindStatusCondition(ps.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != "True" || ready.ObservedGeneration != ps.Generation {
		return fmt.Sprintf("%s, generation %d: Ready is %+v", u.name, ps.Generation, ready)
	}
	for _, s := range ps.Status.Stores {
		for _, e := range s.Entries {
			if e.RemoteKey == p.remote(u.remote) && s.ObservedGeneration == ps.Generation {
				return ""
			}
		}
	}
	return fmt.Sprintf("the status of %s does not list %s", u.name, u.remote)
}

// waitForSync waits for at most a second or so until an object is in sync.
func (p *push) waitForSync(u *pusher) {
	for range 100 {
		if p.state(u) == "" {
			p.note("%s is in sync", u.name)
			p.locked(func() { u.firm = true })
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.note("%s is not in sync", u.name)
}

// The sources.

// write writes a Secret, whether it exists or not.
func (p *push) write(source string) {
	v := p.value(source)
	p.note("%s has %s", source, v)
	p.sources[source] = v
	p.locked(func() { // A delayed operator may push it before it sees that the object is deleted.
		maps.DeleteFunc(p.pendingRemovals, func(remote, of string) bool {
			_, there := p.backends[0].Value(p.remote(remote))
			return of == source && there
		})
	})
	p.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		s := &corev1.Secret{ObjectMeta: p.Meta(p.name + "-" + source)}
		err := p.API.Get(p.Ctx, client.ObjectKeyFromObject(s), s)
		s.Data = map[string][]byte{"password": []byte(v)}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			return p.API.Create(p.Ctx, s)
		}
		return p.API.Update(p.Ctx, s)
	}))
}

func (p *push) deleteSource() {
	source := testenv.Pick(p.rt, "source", slices.Sorted(maps.Keys(p.sources))...)
	p.note("delete %s", source)
	delete(p.sources, source)
	p.must(p.API.Delete(p.Ctx, &corev1.Secret{ObjectMeta: p.Meta(p.name + "-" + source)}))
}

// The store.

func (p *push) deleteStore() {
	p.note("delete the store")
	p.stored = false
	p.must(p.API.Delete(p.Ctx, p.Store(p.name, "")))
}

func (p *push) restore() {
	p.note("create the store")
	p.stored = true
	p.must(p.API.Create(p.Ctx, p.Store(p.name, p.names[0])))
}

// waitUntilStable ends all disturbances, and waits until the remote secrets are as the specs say.
func (p *push) waitUntilStable() {
	p.note("no more disturbances from now on")
	p.repair()
	if !p.stored {
		p.restore()
	}
	for _, source := range []string{"s1", "s2"} {
		if p.sources[source] == "" {
			p.write(source)
		}
	}
	p.finally(func() string {
		for _, u := range p.pushers {
			severalSources := slices.ContainsFunc(slices.Collect(maps.Values(p.pushers)), func(o *pusher) bool { return o.remote == u.remote && o.source != u.source })
			v, _ := p.backends[0].Value(p.remote(u.remote))
			switch wrong := p.state(u); {
			case severalSources && string(v) != p.sources["s1"] && string(v) != p.sources["s2"]:
				return fmt.Sprintf("%s holds %q, which is from no source", u.remote, v)
			case severalSources:
			case wrong != "":
				return wrong
			case string(v) != p.sources[u.source]:
				return fmt.Sprintf("%s holds %q, want the value of %s", u.remote, v, u.source)
			}
		}
		for remote := range p.pendingRemovals {
			if v, there := p.backends[0].Value(p.remote(remote)); there {
				return fmt.Sprintf("%s holds %q, and no object pushes to it", remote, v)
			}
		}
		return ""
	})
}

// clear removes everything for the next sequence.
func (p *push) clear() {
	p.repair()
	if !p.stored {
		p.restore()
	}
	p.locked(func() {
		for _, u := range p.pushers {
			u.firm = false
		}
	})
	if err := p.API.DeleteAllOf(p.Ctx, &v1alpha1.PushSecret{}, client.InNamespace(p.NS)); err != nil {
		p.Error(err)
	}
	p.waitUntilEmpty(&v1alpha1.PushSecretList{})
	if err := p.API.Delete(p.Ctx, p.Store(p.name, "")); err != nil {
		p.Error(err)
	}
	if err := p.API.DeleteAllOf(p.Ctx, &corev1.Secret{}, client.InNamespace(p.NS)); err != nil {
		p.Error(err)
	}
}
