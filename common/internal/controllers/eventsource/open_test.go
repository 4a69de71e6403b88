package eventsource

import (
	"testing"

	"k8s.io/client-go/util/workqueue"

	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

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
