package externalsecret_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

var errBoom = errors.New("boom")

// TestCalls counts the calls for objects that are due together. The provider blocks logins until all objects have
// asked, so that their speed does not matter.
func TestCalls(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		why     string
		objects int
		change  func(i int, es *v1alpha1.ExternalSecret)
		// calls is the number of calls; a batch of up to twenty secrets is one call.
		calls int
	}{
		"Distinct": {
			why:     "a hundred secrets fill five batches",
			objects: 100,
			change:  func(int, *v1alpha1.ExternalSecret) {},
			calls:   5,
		},
		"Shared": {
			why:     "a hundred objects with the same secret cause one read",
			objects: 100,
			change:  func(_ int, es *v1alpha1.ExternalSecret) { es.Spec.Data[0].RemoteRef.Key = "s-0" },
			calls:   1,
		},
		"TenProperties": {
			why:     "ten properties of one secret cause one read",
			objects: 1,
			change: func(_ int, es *v1alpha1.ExternalSecret) {
				es.Spec.Data = nil
				for i := range 10 {
					es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{
						SecretKey: fmt.Sprintf("k%d", i),
						RemoteRef: v1alpha1.RemoteRef{Key: "s-0", Property: "value"},
					})
				}
			},
			calls: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newIdleEnv(t, func(f *operator.Flags) { f.ProviderTimeout = time.Minute })
			login := e.Backend.Inject(fake.Fault{Call: fake.CallConnect, Hang: true})
			for i := range tc.objects {
				name := fmt.Sprintf("s-%d", i)
				e.Backend.Put(name, []byte(`{"value":"x"}`))
				e.Create(e.ExternalSecret(name, func(es *v1alpha1.ExternalSecret) { tc.change(i, es) }))
			}
			e.Start()
			// An object on another store is created later, so it is behind the others in the queue.
			e.BackendOf("other").Put("last", []byte("x"))
			e.Create(e.Store("other", "other"))
			e.Create(e.ExternalSecret("last", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Name = "other" }))
			e.WantReady("last", v1alpha1.ReasonSecretSynced)
			login()
			for i := range tc.objects {
				e.WantReady(fmt.Sprintf("s-%d", i), v1alpha1.ReasonSecretSynced)
			}
			if got := e.Backend.Reads(); got != tc.calls {
				t.Errorf("%s: %d calls, want %d", tc.why, got, tc.calls)
			}
		})
	}
}

// TestRestartIsQuiet restarts an operator whose objects are in sync: it reads nothing and writes nothing.
func TestRestartIsQuiet(t *testing.T) {
	e := newOwnEnv(t)
	const n = 20
	for i := range n {
		name := fmt.Sprintf("s-%d", i)
		e.Backend.Put(name, []byte("x"))
		e.Create(e.ExternalSecret(name))
	}
	for i := range n {
		e.WantReady(fmt.Sprintf("s-%d", i), v1alpha1.ReasonSecretSynced)
	}
	e.WantStore("store", v1alpha1.ReasonStoreValid)
	e.Stop()
	e.Backend.Reset()
	since := time.Now()
	e.Start()
	// The operator listed the old objects first, so once the new object is in sync they were checked, or are behind
	// it in the queue. Its periodic refresh has their priority and comes after them, so wait for its second refresh.
	e.Backend.Put("last", []byte("x"))
	last := e.ExternalSecret("last", func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = "1s" })
	e.Create(last)
	e.WantReady("last", v1alpha1.ReasonSecretSynced)
	e.Eventually(func() string {
		if n := e.Backend.ReadsOf("last"); n < 3 {
			return fmt.Sprintf("the last object was read %d times", n)
		}
		return ""
	})
	for i := range n {
		if got := e.Backend.ReadsOf(fmt.Sprintf("s-%d", i)); got != 0 {
			t.Errorf("s-%d was read %d times", i, got)
		}
	}
	events, err := e.Cluster.ReadAuditLog(since)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		if ev.IsWrite() && ev.ObjectRef.Namespace == e.NS && strings.HasPrefix(ev.UserAgent, "direct-secrets/") && ev.ObjectRef.Name != "last" {
			t.Errorf("write after a restart: %s %s %s", ev.Verb, ev.ObjectRef.Resource, ev.ObjectRef.Name)
		}
	}
}

// TestRefreshWritesNothing checks that refreshes without changes write nothing.
func TestRefreshWritesNothing(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("x"))
	e.Create(e.ExternalSecret("db", func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = "1s" }))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.WantStore("store", v1alpha1.ReasonStoreValid)
	since := time.Now()
	if err := e.Backend.Wait(e.Ctx, e.Backend.Reads()+10, fake.CallGetBatch); err != nil {
		t.Fatal(err)
	}
	events, err := e.Cluster.ReadAuditLog(since)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		if ev.IsWrite() && ev.ObjectRef.Namespace == e.NS && strings.HasPrefix(ev.UserAgent, "direct-secrets/") {
			t.Errorf("a refresh that found nothing new wrote: %s %s %s", ev.Verb, ev.ObjectRef.Resource, ev.ObjectRef.Name)
		}
	}
}

// TestHangingStores has one store that hangs and one that throttles, each with more objects than there are workers.
// Objects of a healthy store must not wait for them.
func TestHangingStores(t *testing.T) {
	e := newOwnEnv(t, func(f *operator.Flags) { f.Concurrency = 4 })
	hanging, throttled := e.BackendOf("hanging"), e.BackendOf("throttled")
	e.Create(e.Store("hanging", "hanging"))
	e.Create(e.Store("throttled", "throttled"))
	hanging.Inject(fake.Fault{Call: fake.CallGetBatch, Hang: true})
	throttled.Inject(fake.Fault{Call: fake.CallGetBatch, Err: provider.NewError(provider.Throttled, "slow down")})
	for _, s := range []string{"hanging", "throttled"} {
		for i := range 40 {
			e.Create(e.ExternalSecret(fmt.Sprintf("%s-%d", s, i), func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Name = s }))
		}
	}
	if err := hanging.Wait(e.Ctx, 1, fake.CallGetBatch); err != nil {
		t.Fatal(err)
	}
	if err := throttled.Wait(e.Ctx, 1, fake.CallGetBatch); err != nil {
		t.Fatal(err)
	}
	e.Backend.Put("db", []byte("x"))
	e.Create(e.ExternalSecret("db"))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.WantReady("throttled-0", v1alpha1.ReasonSecretSyncedError)
	e.WantReady("hanging-0", v1alpha1.ReasonSecretSyncedError)
}

// TestRouting varies the reference to the store.
func TestRouting(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		why  string
		ref  v1alpha1.StoreRef
		ours bool
	}{
		"NoVersion":    {"the Kind alone is enough", v1alpha1.StoreRef{Kind: "FakeStore", Name: "store"}, true},
		"Version":      {"group and version", v1alpha1.StoreRef{APIVersion: fakev1.GroupVersion.String(), Kind: "FakeStore", Name: "store"}, true},
		"OtherVersion": {"a promotion to v1 breaks no reference", v1alpha1.StoreRef{APIVersion: fakev1.Group + "/v1", Kind: "FakeStore", Name: "store"}, true},
		"ForeignGroup": {"the same Kind of another group is not served", v1alpha1.StoreRef{APIVersion: "example.com/v1", Kind: "FakeStore", Name: "store"}, false},
		"ForeignKind":  {"another module serves it", v1alpha1.StoreRef{Kind: "VaultKV", Name: "store"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("x"))
			e.Backend.Put("marker", []byte("x"))
			e.Create(e.ExternalSecret("db", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef = &tc.ref }))
			// This object comes later in the queue, so once it is in sync the other was processed.
			e.Create(e.ExternalSecret("marker"))
			e.WantReady("marker", v1alpha1.ReasonSecretSynced)
			if tc.ours {
				e.WantReady("db", v1alpha1.ReasonSecretSynced)
				return
			}
			if es := e.Get("db"); len(es.Status.Conditions) != 0 || e.Secret("db") != nil {
				t.Errorf("%s: a foreign object was changed: %+v", tc.why, es.Status)
			}
		})
	}
}

// TestClass checks that an operator serves only the stores of its own class.
func TestClass(t *testing.T) {
	e := newOwnEnv(t, func(f *operator.Flags) { f.ControllerClass = "blue" })
	e.Backend.Put("db", []byte("x"))
	e.Backend.Put("other", []byte("x"))
	e.Create(e.Store("blue", "main", func(s *fakev1.FakeStore) { s.Spec.Controller = "blue" }))
	e.Create(e.ExternalSecret("other"))
	e.Create(e.ExternalSecret("suspended", func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true }))
	e.Create(e.ExternalSecret("db", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Name = "blue" }))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	for _, name := range []string{"other", "suspended"} {
		if es := e.Get(name); len(es.Status.Conditions) != 0 {
			t.Errorf("an object of another class was changed: %s: %+v", name, es.Status)
		}
	}
}

// TestSuspend checks that a suspended object is left unchanged, and synced once it resumes.
func TestSuspend(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("one"))
	es := e.ExternalSecret("db")
	e.Create(es)
	e.WantSecret("db", "value", "one")
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	before := e.Secret("db")

	testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true })
	if c := e.WantReady("db", v1alpha1.ReasonSuspended); c.Status != metav1.ConditionTrue {
		t.Errorf("Ready is %s, want it to keep its value", c.Status)
	}
	e.Backend.Put("db", []byte("two"))
	testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) {
		es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
	})
	e.Backend.Put("marker", []byte("x"))
	e.Create(e.ExternalSecret("marker"))
	e.WantReady("marker", v1alpha1.ReasonSecretSynced)
	e.wantUnchanged(before)

	testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = false })
	e.WantSecret("db", "value", "two")
}

// TestForeignOwner checks that a Secret with another controller is left unchanged.
func TestForeignOwner(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("x"))
	yes := true
	foreign := e.Credentials("value", "theirs", func(s *corev1.Secret) {
		s.Name = "db"
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: e.configMap("owner"), Controller: &yes}}
	})
	e.Create(e.ExternalSecret("db"))
	c := e.WantReady("db", v1alpha1.ReasonConflict)
	if !strings.Contains(c.Message, `ConfigMap "owner"`) {
		t.Errorf("message is %q", c.Message)
	}
	e.wantUnchanged(foreign)
}

// TestAdoption takes over a Secret without owner, and keeps its other keys.
func TestAdoption(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("new"))
	e.Credentials("foreign", "keep", func(s *corev1.Secret) {
		s.Name = "db"
		s.Data["value"] = []byte("old")
	})
	e.Create(e.ExternalSecret("db"))
	s := e.WantSecret("db", "value", "new")
	if string(s.Data["foreign"]) != "keep" || len(s.OwnerReferences) != 1 {
		t.Errorf("after adoption: %v, owners %v", s.Data, s.OwnerReferences)
	}
}

// TestOtherWriters has two objects with one target: the first one keeps it.
func TestOtherWriters(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("first", []byte("1"))
	e.Backend.Put("second", []byte("2"))
	e.Create(e.ExternalSecret("first", func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "shared" }))
	before := e.WantSecret("shared", "value", "1")
	e.Create(e.ExternalSecret("second", func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Name = "shared" }))
	c := e.WantReady("second", v1alpha1.ReasonConflict)
	if !strings.Contains(c.Message, "first") {
		t.Errorf("message is %q", c.Message)
	}
	e.wantUnchanged(before)
}

// TestCleanupPolicy checks that a change of cleanupPolicy changes the ownerReference and nothing else.
func TestCleanupPolicy(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("x"))
	es := e.ExternalSecret("db")
	e.Create(es)
	before := e.WantSecret("db", "value", "x")
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	for _, step := range []struct {
		policy v1alpha1.CleanupPolicy
		owners int
	}{{v1alpha1.CleanupNever, 0}, {v1alpha1.CleanupOnDelete, 1}} {
		testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CleanupPolicy = step.policy })
		e.Eventually(func() string {
			s := e.Secret("db")
			if len(s.OwnerReferences) != step.owners || s.UID != before.UID || string(s.Data["value"]) != "x" {
				return fmt.Sprintf("%s: owners %v, data %d", step.policy, s.OwnerReferences, len(s.Data))
			}
			return ""
		})
	}
}

// TestNewObjectSharesNoOlderRead creates an object while the same secret is being read for another one. That answer may be older than
// the new object, and a user writes a value before the object that reads it.
func TestNewObjectSharesNoOlderRead(t *testing.T) {
	e := newOwnEnv(t, func(f *operator.Flags) { f.ProviderTimeout = time.Hour }) // A timeout would end the first read.
	e.Backend.Put("shared", []byte("x"))
	end := e.Backend.Inject(fake.Fault{Call: fake.CallGetBatch, Hang: true})
	defer end()
	for n, name := range []string{"first", "second"} {
		e.Create(e.ExternalSecret(name, func(es *v1alpha1.ExternalSecret) { es.Spec.Data[0].RemoteRef.Key = "shared" }))
		e.Eventually(func() string { return cmp.Diff(n+1, e.Backend.ReadsOf("shared")) })
	}
	end()
	for _, name := range []string{"first", "second"} {
		e.WantReady(name, v1alpha1.ReasonSecretSynced)
	}
}
