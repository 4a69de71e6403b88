//go:build long

package scenarios

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	vaultv1 "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// A home is a Kind between which objects move, with the module that serves it and the prefix of its values.
type home struct{ kind, module, prefix string }

var (
	atAWS   = home{"AWSSecretsManager", awsv1.Group, "from-aws-"}
	atVault = home{"VaultKV", vaultv1.Group, "from-vault-"}
)

// moveNamespace has two stores with one name.
const moveNamespace, movers = "movekind", 200

func moverName(i int) string { return fmt.Sprintf("es-%03d", i) }

// A mover is an object, with its homes by generation of its spec.
type mover struct {
	name  string
	uid   types.UID
	homes map[int64]home
}

// TestMoveKind moves 200 objects from one Kind to another, and some of them back, while both modules run. The
// first module sees all changes late. It has other values and gets a refresh request just before, so that it
// has every reason to write.
func TestMoveKind(t *testing.T) {
	t.Parallel()
	ns := namespace(t, moveNamespace)
	vault, token := startVault(t)
	vaultStore(t, ns, "store", vault, token)
	all := make([]*mover, movers)
	put := func(round int) {
		for i := range all {
			shared.AWS.Put(ns+"/"+moverName(i), fmt.Appendf(nil, "from-aws-%s-%d", moverName(i), round))
		}
	}
	put(0)
	for i := range all {
		all[i] = &mover{name: moverName(i), homes: map[int64]home{}}
		vault.Do(http.MethodPost, vaultMount+"/data/"+ns+"/"+moverName(i), vaulttest.M{"data": vaulttest.M{"value": "from-vault-" + moverName(i)}})
	}
	h := record(t, ns)
	startModule(t, stack.ProviderAWS, ns, "--presence-namespace="+ns, "--kubeconfig="+latePath(t, installFor(t, ns, ns), stack.ProviderAWS, rand.Uint64()))
	startModule(t, stack.ProviderVault, ns, "--presence-namespace="+ns)

	each(t, all, func(o *mover) error { return o.create(t) })
	each(t, all, func(o *mover) error { return h.until(t.Context(), o.name, "is made", o.isAt(atAWS)) })
	put(1)
	each(t, all, func(o *mover) error { return o.move(t, atVault) })
	put(2)
	each(t, all[:20], func(o *mover) error { // These move immediately, before a module has handled them.
		if err := o.move(t, atAWS); err != nil {
			return err
		}
		return o.move(t, atVault)
	})
	each(t, all, func(o *mover) error { return h.until(t.Context(), o.name, "has moved", o.isAt(atVault)) })
	back := all[10:60]
	each(t, back, func(o *mover) error { return o.move(t, atAWS) })
	put(3)
	each(t, back, func(o *mover) error { return h.until(t.Context(), o.name, "has moved back", o.isAt(atAWS)) })
	for _, o := range all {
		o.waitUntilInSync(t)
	}
	h.end(t, ns)
	for _, o := range all {
		o.checkVersions(t, h.of(o.name))
	}
}

// each calls do for all objects, some of them concurrently.
func each(t *testing.T, all []*mover, do func(*mover) error) {
	t.Helper()
	work := make(chan *mover)
	var workers sync.WaitGroup
	for range 10 {
		workers.Go(func() {
			for o := range work {
				if err := do(o); err != nil {
					t.Errorf("%s: %v", o.name, err)
				}
			}
		})
	}
	for _, o := range all {
		work <- o
	}
	close(work)
	workers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func (o *mover) create(t *testing.T) error {
	es := pair(moveNamespace, o.name, moveNamespace+"/"+o.name, moveNamespace+"/"+o.name)
	err := shared.Admin.Create(t.Context(), es)
	o.uid, o.homes[es.Generation] = es.UID, atAWS
	return err
}

// move changes the Kind, and the property of the remote secret, which is an object in Vault.
func (o *mover) move(t *testing.T, to home) error {
	es := pair(moveNamespace, o.name, moveNamespace+"/"+o.name, moveNamespace+"/"+o.name)
	es.Spec.StoreRef.Kind = to.kind
	if to == atVault {
		es.Spec.Data[0].RemoteRef.Property, es.Spec.Data[1].RemoteRef.Property = "value", "value"
	}
	spec := map[string]any{"storeRef": es.Spec.StoreRef, "data": es.Spec.Data}
	request := map[string]any{"annotations": map[string]string{v1alpha1.RefreshRequestAnnotation: fmt.Sprint(len(o.homes))}}
	for _, change := range []map[string]any{{"metadata": request}, {"spec": spec}} {
		patch, err := json.Marshal(change)
		if err != nil {
			return err
		}
		if err := shared.Admin.Patch(t.Context(), es, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
	}
	o.homes[es.Generation] = to
	return nil
}

// isAt returns a function that reports whether a version has the data of a home.
func (o *mover) isAt(at home) func(version) bool {
	return func(v version) bool { return !v.Deleted && o.holds(v, at) == "" }
}

// holds returns how a version differs from the data of a home.
func (o *mover) holds(v version, at home) string {
	a, b := v.Data["a"], v.Data["b"]
	if !strings.HasPrefix(a, at.prefix+o.name) || a != b || len(v.Data) != 2 {
		return fmt.Sprintf("want values of %s, got %v", at.kind, v.Data)
	}
	return ""
}

// waitUntilInSync waits until the status describes the last generation. No data of the previous module is then left.
func (o *mover) waitUntilInSync(t *testing.T) {
	t.Helper()
	es := &v1alpha1.ExternalSecret{}
	eventually(t, func() string {
		must(t, shared.Admin.Get(t.Context(), types.NamespacedName{Namespace: moveNamespace, Name: o.name}, es))
		return ready(es)
	})
	at, labels := o.homes[es.Generation], getSecret(t, moveNamespace, o.name).Labels
	for _, module := range []string{awsv1.Group, vaultv1.Group} {
		if has := labels[inspect.ManagedLabel(module)] != ""; has != (module == at.module) {
			t.Errorf("%s, at %s: it has the label of %s: %t", o.name, at.kind, module, has)
		}
	}
}

// checkVersions checks all versions that a Secret has had. It always existed. Each version was written by the module of
// the generation in its mark, with its values, and none after a later one.
func (o *mover) checkVersions(t *testing.T, history []version) {
	t.Helper()
	var last inspect.Mark
	for i, v := range history {
		var mark inspect.Mark
		if err := json.Unmarshal([]byte(v.Mark), &mark); err != nil && !v.Deleted {
			t.Errorf("%s, version %d: the mark %q: %v", o.name, i, v.Mark, err)
		}
		at, known := o.homes[mark.Generation]
		switch {
		case v.Deleted || v.UID != history[0].UID:
			t.Errorf("%s, version %d: the Secret was missing", o.name, i)
		case mark.UID != o.uid || !known || mark.Module != at.module:
			t.Errorf("%s, version %d: %s wrote for generation %d, which is of %q", o.name, i, mark.Module, mark.Generation, at.module)
		case mark.Generation < last.Generation:
			t.Errorf("%s, version %d: %s wrote for generation %d after %s for %d", o.name, i, mark.Module, mark.Generation, last.Module, last.Generation)
		case o.holds(v, at) != "":
			t.Errorf("%s, version %d, generation %d: %s", o.name, i, mark.Generation, o.holds(v, at))
		}
		last = mark
	}
	if last.Generation != int64(len(o.homes)) {
		t.Errorf("%s: the last of %d generations that wrote is %d", o.name, len(o.homes), last.Generation)
	}
}

// latePath returns the path of a kubeconfig that connects a module to the API server through delayed watches,
// each with its own, changing delay.
func latePath(t *testing.T, i *stack.Installation, module string, seed uint64) string {
	t.Helper()
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	proxy, err := shared.StartProxy(func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return 50*time.Millisecond + time.Duration(random.Int64N(int64(950*time.Millisecond)))
	})
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Stop()) })
	path, err := i.Kubeconfig(t.Context(), module, proxy)
	must(t, err)
	return path
}
