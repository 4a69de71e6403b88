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

// TestPush goes through sequences with PushSecrets.
func TestPush(t *testing.T) { run(t, pushes, (*worker).push) }

// A pusher is a PushSecret, as a person wrote it last.
type pusher struct {
	name, source, remote string
	deletes              bool
	// firm is true once it was in step as it is now: what it pushes must be there from then on; guarded by the worker's lock.
	firm bool
	// from is what it alone pushed to, in step, before it was given another remoteKey; guarded, too.
	from string
}

// A push is a sequence with PushSecrets that share sources and remote secrets.
type push struct {
	*sequence
	// pushers are those that are there, by name.
	pushers map[string]*pusher
	// sources are the values of the Secrets that are there.
	sources map[string]string
	stored  bool

	// What follows is guarded by the worker's lock. seen is the number of each remote value, sourcesOf are the sources that each
	// may have had, and users the objects.
	seen      map[string]int
	sourcesOf map[string]map[string]bool
	users     map[string]map[string]bool
	// owed are remote secrets that must go, since their only object, which made them, has gone.
	owed map[string]bool
}

func (p *push) remote(name string) string { return p.name + "/" + name }

func (w *worker) push(rt *rapid.T) {
	p := &push{
		sequence: w.begin(rt), pushers: map[string]*pusher{}, sources: map[string]string{}, stored: true,
		seen: map[string]int{}, sourcesOf: map[string]map[string]bool{}, users: map[string]map[string]bool{}, owed: map[string]bool{},
	}
	p.must(p.API.Create(p.Ctx, p.Store(p.name, p.names[0])))
	p.write("s1")
	p.write("s2")
	defer p.clear()
	ctx, cancel := context.WithCancel(p.Ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			p.locked(p.look)
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
	p.settle()
}

// look holds the remote secrets to what must always be so; the worker is locked.
func (p *push) look() {
	for _, u := range p.pushers {
		if _, there := p.backends[0].Value(p.remote(u.remote)); u.firm && !there {
			p.never("%s is gone, and %s pushes to it", u.remote, u.name)
		} else if _, before := p.backends[0].Value(p.remote(u.from)); u.from != "" && !there && !before {
			p.never("%s is gone, and %s, to which %s pushes now, is not there yet", u.from, u.remote, u.name)
		}
	}
	for remote, sources := range p.sourcesOf {
		v, there := p.backends[0].Value(p.remote(remote))
		n := number(string(v))
		if there && len(sources) == 1 && n < p.seen[remote] {
			p.never("%s goes back from %d to %d", remote, p.seen[remote], n)
		}
		p.seen[remote] = n
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
		{4, some, p.handOver},
		{2, some, p.retarget},
		{1, some, p.policy},
		{5, some, func() { p.await(p.any()) }},
		{6, true, func() { p.write(testenv.Pick(p.rt, "source", "s1", "s2")) }},
		{1, len(p.sources) > 0, p.deleteSource},
		{3, true, func() {
			key := p.remote(testenv.Pick(p.rt, "remote", "r1", "r2"))
			p.note("%s: %s", key, p.fault(p.backends[0], key))
		}},
		{4, len(p.heals) > 0, func() { p.note("heal"); p.heal() }},
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

// uses notes that an object may push from now on; the worker is locked.
func (p *push) uses(u *pusher) {
	for _, m := range []map[string]map[string]bool{p.sourcesOf, p.users} {
		if m[u.remote] == nil {
			m[u.remote] = map[string]bool{}
		}
	}
	p.sourcesOf[u.remote][u.source], p.users[u.remote][u.name] = true, true
	delete(p.owed, u.remote)
}

// create makes an object; what is not given is drawn.
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
	p.note("delete %s", u.name)
	p.locked(func() {
		delete(p.pushers, u.name)
		p.owed[u.remote] = u.firm && u.deletes && len(p.users[u.remote]) == 1
	})
	p.must(p.API.Delete(p.Ctx, p.object(u)))
}

// handOver replaces an object by another of the same spec, as a renamed manifest does.
func (p *push) handOver() {
	former := p.any()
	next := p.create(former.source, former.remote, strconv.FormatBool(former.deletes))
	if testenv.Pick(p.rt, "await", true, true, false) {
		p.await(next)
	}
	p.delete(former)
}

// change writes the spec of an object anew.
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
		p.users[u.remote]["changed"] = true // What it made stays or goes, as its policy says then.
		u.remote = other
	})
}

func (p *push) policy() {
	u := p.any()
	p.locked(func() { p.users[u.remote]["changed"] = true })
	p.change(u, func() { u.deletes = !u.deletes })
}

// state is what an object says of itself; empty if it is in step.
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
	return fmt.Sprintf("%s does not say that it pushes to %s", u.name, u.remote)
}

// await waits for a while until an object is in step.
func (p *push) await(u *pusher) {
	for range 100 {
		if p.state(u) == "" {
			p.note("%s is in step", u.name)
			p.locked(func() { u.firm = true })
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.note("%s is not in step", u.name)
}

// The sources.

// write writes a Secret, whether it is there or not.
func (p *push) write(source string) {
	v := p.value(source)
	p.note("%s has %s", source, v)
	p.sources[source] = v
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

// settle ends all that hinders, and waits until the remote secrets are as the specs say.
func (p *push) settle() {
	p.note("all is well from now on")
	p.heal()
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
			rivals := slices.ContainsFunc(slices.Collect(maps.Values(p.pushers)), func(o *pusher) bool { return o.remote == u.remote && o.source != u.source })
			v, _ := p.backends[0].Value(p.remote(u.remote))
			switch wrong := p.state(u); {
			case rivals && string(v) != p.sources["s1"] && string(v) != p.sources["s2"]:
				return fmt.Sprintf("%s holds %q, which is of no source", u.remote, v)
			case rivals:
			case wrong != "":
				return wrong
			case string(v) != p.sources[u.source]:
				return fmt.Sprintf("%s holds %q, want that of %s", u.remote, v, u.source)
			}
		}
		for remote, owed := range p.owed {
			if v, there := p.backends[0].Value(p.remote(remote)); owed && there {
				return fmt.Sprintf("%s holds %q, and nobody pushes to it", remote, v)
			}
		}
		return ""
	})
}

// clear leaves nothing for the next sequence.
func (p *push) clear() {
	p.heal()
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
	p.gone(&v1alpha1.PushSecretList{})
	if err := p.API.Delete(p.Ctx, p.Store(p.name, "")); err != nil {
		p.Error(err)
	}
	if err := p.API.DeleteAllOf(p.Ctx, &corev1.Secret{}, client.InNamespace(p.NS)); err != nil {
		p.Error(err)
	}
}
