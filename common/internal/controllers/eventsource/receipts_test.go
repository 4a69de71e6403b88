package eventsource

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestReceipts has 40 event sources of a namespace, with messages about a secret whose read hangs.
func TestReceipts(t *testing.T) {
	q := &quota.Quotas{}
	r := &Reconciler{opts: setup.Options{Walks: kit.NewWalks(q, kit.InFlight)}}
	held := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := held()
	var all []*receiver
	for i := range 40 {
		o := &v1alpha1.EventReceiver{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint(i)}}
		rc := &receiver{Reconciler: r, source: o, arrived: make(chan struct{}, 1)}
		for range maxOpen / batch {
			messages := make([]provider.Message, batch)
			for j := range messages {
				messages[j].Receipt = strings.Repeat("a", maxReceipt)
			}
			rc.handle(t.Context(), messages)
		}
		all = append(all, rc)
	}
	if mib := (held() - before) >> 20; mib > 64 {
		t.Errorf("the receipts of %d event sources of a namespace take %d MiB, and %d bytes count for it, want at most 64 MiB", len(all), mib, q.Used())
	}
	runtime.KeepAlive(all)
}
