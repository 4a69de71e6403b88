//go:build long

package scenarios

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// TestKill kills the operator at random moments during the sync. After the restart all Secrets are right.
func TestKill(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "kill")
	const n = 200
	created := make(chan error, 1)
	go func() {
		for i := range n {
			key := fmt.Sprintf("kill/%d", i)
			shared.AWS.Put(key, fmt.Appendf(nil, "value-%d", i))
			if err := shared.Admin.Create(t.Context(), pair(ns, fmt.Sprintf("es-%d", i), key, key)); err != nil {
				created <- err
				return
			}
		}
		created <- nil
	}()
	for range 4 {
		p, err := installFor(t, ns, "").StartModule(t.Context(), stack.ProviderAWS)
		must(t, err)
		after := time.NewTimer(rand.N(700 * time.Millisecond))
		<-after.C // The delay is random; it does not wait for a condition.
		must(t, p.Kill())
	}
	must(t, <-created)
	start(t, ns)
	for i := range n {
		s := wantValue(t, ns, fmt.Sprintf("es-%d", i), "b", fmt.Sprintf("value-%d", i))
		if len(s.Data) != 2 || len(s.OwnerReferences) != 1 {
			t.Errorf("Secret %s: %d keys, owners %v", s.Name, len(s.Data), s.OwnerReferences)
		}
		wantReady(t, ns, s.Name, v1alpha1.ReasonSecretSynced)
	}
}
