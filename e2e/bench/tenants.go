package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	vaultv1 "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

const (
	// tenants is the number of tenants of one operator. The last ones are hostile.
	tenants = 200
	// perTenant is the number of objects that a tenant keeps in sync.
	perTenant = 5
	// newcomersOfTenants is the number of new objects, which are created one after another, each by another
	// tenant.
	newcomersOfTenants = 570
)

// Tenants measures how long new objects of ordinary tenants wait, and the operator's memory, first alone and
// then with tenants that disturb as much as they can. It uses provider-vault, because there each tenant
// chooses the server. Then it attacks three modules in all ways at once.
func Tenants(ctx context.Context, r *Report, attackLasts time.Duration) error {
	if err := attackAll(ctx, r, attackLasts); err != nil {
		return err
	}
	alone, err := onStack(ctx, func(s *stack.Stack) (shared, error) { return share(ctx, s, nil) })
	if err != nil {
		return err
	}
	h := startHostile()
	defer h.stop()
	underLoad, err := onStack(ctx, func(s *stack.Stack) (shared, error) { return share(ctx, s, h) })
	if err != nil {
		return err
	}
	note := fmt.Sprintf("bound: 1.5 times the figure alone; the hostile server was asked %d times", h.asked.Load())
	for _, f := range []struct {
		what   string
		unit   string
		of     func(shared) float64
		bounds bool
	}{
		{"a new object: p50", "s", func(s shared) float64 { return percentile(s.waits, 50) }, false},
		{fmt.Sprintf("a new object: p99 of %d", newcomersOfTenants), "s", func(s shared) float64 { return percentile(s.waits, 99) }, true},
		{"memory at most", "MB", func(s shared) float64 { return s.memory }, true},
	} {
		r.Add(Row{Scenario: "tenants", What: f.what + ", alone", Value: f.of(alone), Unit: f.unit})
		row := Row{Scenario: "tenants", What: fmt.Sprintf("%s, next to %d hostile tenants", f.what, len(h.tenants())), Value: f.of(underLoad), Unit: f.unit}
		if f.bounds {
			row.Bound, row.Note = atMost(1.5*f.of(alone)), note
		}
		r.Add(row)
	}
	return nil
}

// shared is the result of a run for ordinary tenants.
type shared struct {
	waits []time.Duration
	// memory is the operator's maximum memory, in MB.
	memory float64
}

// share runs an operator for ordinary tenants, and for hostile ones if there is a server for them.
func share(ctx context.Context, s *stack.Stack, h *hostile) (out shared, err error) {
	v, err := startVault()
	if err != nil {
		return out, err
	}
	defer v.stop()
	if err := v.post("sys/mounts/secret", `{"type":"kv","options":{"version":"2"}}`); err != nil {
		return out, err
	}
	p, err := s.StartModule(ctx, stack.ProviderVault)
	if err != nil {
		return out, err
	}
	defer func() { _ = p.Kill() }()
	ordinary := tenants
	if h != nil {
		ordinary -= len(h.tenants())
	}
	objects := workload("tenant", ordinary*perTenant, ordinary)
	if err := tenantStores(ctx, s, v, objects); err != nil {
		return out, err
	}
	if err := each(objects, clients, func(o Object) error { return s.Admin.Create(ctx, ofVault(o, steadily)) }); err != nil {
		return out, err
	}
	if err := allSynced(ctx, s, objects); err != nil {
		return out, err
	}
	if h != nil {
		for i, disturb := range h.tenants() {
			if err := disturb(ctx, s, v, fmt.Sprintf("hostile-%d", i)); err != nil {
				return out, err
			}
		}
		if err := noticed(ctx, s); err != nil {
			return out, err
		}
	}
	peak := watchMemory(p)
	waits, err := tenantNewcomers(ctx, s, v, objects)
	return shared{waits, peak()}, err
}

// noticed waits until the operator has checked all objects.
func noticed(ctx context.Context, s *stack.Stack) error {
	return until(ctx, func() (bool, error) {
		var list v1alpha1.ExternalSecretList
		err := s.Admin.List(ctx, &list)
		for _, es := range list.Items {
			if len(es.Status.Conditions) == 0 {
				return false, err
			}
		}
		return true, err
	})
}

// tenantStores creates the namespaces of objects, a store in each, and their remote secrets, and waits for the
// stores.
func tenantStores(ctx context.Context, s *stack.Stack, v *vault, objects []Object) error {
	seen := map[string]bool{}
	for _, o := range objects {
		if err := v.put(o); err != nil {
			return err
		}
		if seen[o.Namespace] {
			continue
		}
		seen[o.Namespace] = true
		if err := errors.Join(s.CreateNamespace(ctx, o.Namespace), s.VaultStore(ctx, o.Namespace, "store", v.Address, "secret", v.RootToken)); err != nil {
			return err
		}
	}
	return until(ctx, func() (bool, error) {
		var list vaultv1.VaultKVList
		err := s.Admin.List(ctx, &list)
		ready := 0
		for _, st := range list.Items {
			if meta.IsStatusConditionTrue(st.Status.Conditions, v1alpha1.ConditionReady) {
				ready++
			}
		}
		return ready >= len(seen), err
	})
}

// put stores the remote secret of an object.
func (v *vault) put(o Object) error {
	return v.post("secret/data/"+o.Key, fmt.Sprintf(`{"data":%s}`, value(o)))
}

// ofVault returns an object that reads Vault.
func ofVault(o Object, change ...func(*v1alpha1.ExternalSecret)) *v1alpha1.ExternalSecret {
	es := externalSecret(o, change...)
	es.Spec.StoreRef.Kind = "VaultKV"
	return es
}

// tenantNewcomers creates objects one after another, each in the namespace of another tenant, and measures how
// long each waits for its Secret.
func tenantNewcomers(ctx context.Context, s *stack.Stack, v *vault, tenants []Object) ([]time.Duration, error) {
	seen, err := watchSecretsWith(ctx, s, vaultv1.Group+"/managed")
	if err != nil {
		return nil, err
	}
	defer seen.stop()
	var waits []time.Duration
	for i := range newcomersOfTenants {
		o := Object{NamespacedName: types.NamespacedName{Namespace: tenants[i*perTenant%len(tenants)].Namespace, Name: fmt.Sprintf("newcomer-%d", i)}, Key: fmt.Sprintf("new/%d", i)}
		if err := v.put(o); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := s.Admin.Create(ctx, ofVault(o, steadily)); err != nil {
			return nil, err
		}
		at, err := seen.wait(ctx, []Object{o})
		if err != nil {
			return nil, err
		}
		waits = append(waits, at.Sub(start))
	}
	return waits, nil
}

// watchMemory returns a function that stops the watch and returns the maximum memory of a process during it.
func watchMemory(p *stack.Process) (peak func() float64) {
	var most float64
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	wg.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if mb, err := p.ResidentMB(); err == nil {
				most = max(most, mb)
			}
			<-tick.C
		}
	})
	return func() float64 {
		cancel()
		wg.Wait()
		return most
	}
}

// ownStore creates the store of a tenant with its own server, which passes validation.
func ownStore(ctx context.Context, s *stack.Stack, ns, name, server string, change ...func(*vaultv1.VaultKV)) error {
	return s.VaultStore(ctx, ns, name, server, "secret", "token", append(change, func(st *vaultv1.VaultKV) { st.Spec.GatingPolicy = v1alpha1.GatingDisabled })...)
}

// pushing returns an object that pushes a Secret to a store.
func pushing(ns, name, store, key string) *v1alpha1.PushSecret {
	return &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: v1alpha1.PushSecretSpec{
		StoreRefs: []v1alpha1.PushStoreRef{{Kind: "VaultKV", Name: store}},
		Selector:  v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: "source"}},
		Data:      []v1alpha1.PushData{{Match: v1alpha1.PushMatch{SecretKey: "a", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: key, Property: "a"}}}},
	}}
}
