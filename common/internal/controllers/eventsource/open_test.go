package eventsource

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestHandleWaits receives a message while its tenant works: its expressions are compared one batch at a time. If the source ends before,
// the message is not kept, and comes again.
func TestHandleWaits(t *testing.T) {
	walks := kit.NewWalks(&quota.Quotas{}, kit.InFlight)
	rc := &receiver{
		Reconciler: &Reconciler{kind: fake.NewServer().EventSourceKinds()[0], opts: setup.Options{Walks: walks}, matcher: matcher{resolver: &resolve.Resolver{}}},
		source:     &fakev1.FakeEventSource{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}, arrived: make(chan struct{}, 1),
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	kept := map[string]int{}
	for _, busy := range []string{"shop", "other"} {
		end, err := walks.OwnWork(t.Context(), busy)
		if err != nil {
			t.Fatal(err)
		}
		rc.handle(ended, []provider.Message{{Receipt: "a"}})
		kept[busy] = len(rc.open)
		end()
	}
	if diff := cmp.Diff(map[string]int{"shop": 0, "other": 1}, kept); diff != "" {
		t.Errorf("messages kept, by the namespace that works: -want, +got:\n%s", diff)
	}
}

// TestOpen receives more messages than may be open while an object has no answer, from a server that gives all the same receipt.
func TestOpen(t *testing.T) {
	walks := kit.NewWalks(&quota.Quotas{}, kit.InFlight)
	c := kit.NewController[string](walks, nil)
	c.NewQueue("test", workqueue.DefaultTypedControllerRateLimiter[string]())
	rc := &receiver{
		Reconciler: &Reconciler{kind: fake.NewServer().EventSourceKinds()[0], opts: setup.Options{Walks: walks}, matcher: matcher{resolver: &resolve.Resolver{}}},
		source:     &fakev1.FakeEventSource{}, arrived: make(chan struct{}, 1),
	}
	c.Notify("object", rc, 0)
	for range maxOpen {
		rc.handle(t.Context(), []provider.Message{{Receipt: "same"}, {Receipt: "same", Malformed: "no"}, {Receipt: string(make([]byte, maxReceipt+1))}})
	}
	if n := len(rc.open); n != maxOpen {
		t.Errorf("%d messages are open, want %d", n, maxOpen)
	}
}
