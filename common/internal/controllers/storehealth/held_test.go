package storehealth_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// TestGate holds objects while their store is not ready, without a call to the provider. Once it is ready, the
// objects resume at a rate of at most fifty a second.
func TestGate(t *testing.T) {
	const n = 40
	e := testenv.NewServed(t)
	gated := e.BackendOf("gated", fake.Without(provider.CapabilityBatch))
	gated.SetPassword("right")
	e.Credentials("password", "wrong")
	e.Create(e.Store("gated", "gated", testenv.WithAuth))
	e.WantStore("gated", v1alpha1.ReasonStoreAuthFailed)
	onGated := func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Name = "gated" }
	// Once the first object is held, the operator has seen the status of the store.
	gated.Put("s-0", []byte("x"))
	e.Create(e.ExternalSecret("s-0", onGated))
	e.WantReady("s-0", v1alpha1.ReasonStoreNotReady)
	gated.Reset()
	for i := 1; i < n; i++ {
		gated.Put(fmt.Sprintf("s-%d", i), []byte("x"))
		e.Create(e.ExternalSecret(fmt.Sprintf("s-%d", i), onGated))
	}
	for i := range n {
		e.WantReady(fmt.Sprintf("s-%d", i), v1alpha1.ReasonStoreNotReady)
	}
	if r := gated.Reads(); r != 0 {
		t.Errorf("%d reads while the store is not ready", r)
	}

	testenv.Update(e.Client, e.Secret("credentials"), func(s *corev1.Secret) { s.Data["password"] = []byte("right") })
	e.WantStore("gated", v1alpha1.ReasonStoreValid)
	for i := range n {
		e.WantReady(fmt.Sprintf("s-%d", i), v1alpha1.ReasonSecretSynced)
	}
	reads := gated.Calls(fake.CallGet)
	if len(reads) != n {
		t.Errorf("%d reads, want one for each of %d objects", len(reads), n)
		for _, r := range reads {
			t.Log(r.Time.Format(time.StampMilli), r.Refs[0].Key)
		}
	}
	// A slow machine only takes longer. The limit is half of the expected time, because the first reads may be late.
	if took, least := reads[len(reads)-1].Time.Sub(reads[0].Time), n*time.Second/50/2; took < least {
		t.Errorf("all objects resumed within %s, want at least %s", took, least)
	}
}
