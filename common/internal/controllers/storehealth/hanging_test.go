package storehealth

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1alpha1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// stores are the stores in an API server. The name of a store is also the name of its backend.
type stores struct {
	t      *testing.T
	server *fake.Server
	walks  *kit.Controller[reconcile.Request]

	mu  sync.Mutex
	all map[types.NamespacedName]*fakev1alpha1.FakeStore
}

// run starts the controller, which stops at the end of the test.
func run(t *testing.T) *stores {
	s := &stores{t: t, server: fake.NewServer(), all: map[types.NamespacedName]*fakev1alpha1.FakeStore{}}
	api := &test.MockClient{MockGet: s.get, MockStatusPatch: s.patch}
	pool := dispatch.NewPool(api, watch.New(nil), credentials.Rules{}, dispatch.Options{}, nil)
	r := &Reconciler{
		client: api, cache: api, pool: pool, kind: s.server.Kinds()[0], ledger: &metrics.Ledger{}, events: &events.FakeRecorder{},
		opts: setup.Options{Times: setup.Times{CallTimeout: 30 * time.Second}}, known: newMemory(pool), classes: &presence.MissingClasses{},
	}
	walks := kit.NewWalks(&quota.Quotas{}, kit.InFlight)
	s.walks = kit.NewController(walks, r.Reconcile)
	o := s.walks.Options(ratelimiter.NewController(), func(*reconcile.Request) logr.Logger { return logr.Discard() })
	o.SkipNameValidation, o.EnableWarmup = new(true), new(false)
	runs, err := controller.NewTypedUnmanaged("stores", o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- runs.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, walks.Start(ctx)); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return s
}

func (s *stores) get(_ context.Context, key client.ObjectKey, o client.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[key].DeepCopyInto(o.(*fakev1alpha1.FakeStore))
	return nil
}

func (s *stores) patch(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, s.all[client.ObjectKeyFromObject(o)])
}

// apply creates a store, or increases its generation, and enqueues it.
func (s *stores) apply(namespace, name string, priority int) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	s.mu.Lock()
	if s.all[key] == nil {
		s.all[key] = &fakev1alpha1.FakeStore{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(key.String())}}
		s.all[key].Spec.Backend = name
	}
	s.all[key].Generation++
	s.mu.Unlock()
	s.walks.Interrupt(reconcile.Request{NamespacedName: key})
	s.walks.Enqueue(reconcile.Request{NamespacedName: key}, priority)
}

// ready returns the Ready condition of a store; empty if it has none for its present generation.
func (s *stores) ready(namespace, name string) metav1.Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.all[types.NamespacedName{Namespace: namespace, Name: name}]
	for _, c := range o.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady && c.ObservedGeneration == o.Generation {
			return c
		}
	}
	return metav1.Condition{}
}

// hang creates n stores in a namespace whose provider never answers.
func (s *stores) hang(namespace string, n int) {
	for i := range n {
		name := fmt.Sprintf("%s-%d", namespace, i)
		s.server.Backend(name).Inject(fake.Fault{Call: fake.CallConnect, Hang: true})
		s.apply(namespace, name, queue.Low)
	}
}

// TestHangingStores has many stores whose provider never answers. Stores that answer must be validated meanwhile.
func TestHangingStores(t *testing.T) {
	cases := map[string]struct {
		reason  string
		hanging time.Duration // How long the stores have been hanging.
	}{
		"New":   {"New stores that hang do not block stores that answer.", 100 * time.Millisecond},
		"Known": {"Stores that are known to hang do not block stores that answer, however often they are retried.", 10 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := run(t)
				s.hang("hostile", 100)
				repair := s.server.Backend("repaired").Inject(fake.Fault{Call: fake.CallConnect, Hang: true})
				s.server.Backend("one")
				s.apply("hostile", "repaired", queue.Low)
				time.Sleep(tc.hanging)
				s.apply("healthy", "one", queue.High)
				repair()
				s.apply("hostile", "repaired", queue.High)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if c := s.ready("healthy", "one"); c.Status != metav1.ConditionTrue {
					t.Errorf("%s\nThe store of another namespace after 5s: %q %q", tc.reason, c.Status, c.Reason)
				}
				if c := s.ready("hostile", "repaired"); c.Status != metav1.ConditionTrue {
					t.Errorf("%s\nThe repaired store after 5s: %q %q", tc.reason, c.Status, c.Reason)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if c := s.ready("hostile", "hostile-99"); c.Reason != v1alpha1.ReasonStoreUnreachable {
					t.Errorf("%s\nThe last hanging store: %q %q", tc.reason, c.Status, c.Reason)
				}
			})
		})
	}
}
