package eventreceiver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

// TestQueuedBytes sends the largest signed requests to twelve receivers of one tenant, which are not received. Their keys count for the tenant
// until they are handled, or until the receivers are closed.
func TestQueuedBytes(t *testing.T) {
	h, _ := newHandler(t)
	h.within = 0
	now := time.Now()
	h.now = func() time.Time { return now }
	var q quota.Quotas
	var all []*Endpoint
	queuedBytes := 0
	for i := range 12 {
		path := fmt.Sprint("/events/team/", i)
		all = append(all, h.Open(path, key, q.Tenant("team")))
		for j, status := 0, http.StatusAccepted; status == http.StatusAccepted; j++ {
			now = now.Add(time.Second)
			var keys []string
			for k := range 30 {
				keys = append(keys, fmt.Sprintf(`"%d-%d-%s"`, j, k, strings.Repeat("k", maxKeyLength-10)))
			}
			if status = h.status(signed(path, `{"keys":[`+strings.Join(keys, ",")+`]}`, key, now)); status == http.StatusAccepted {
				queuedBytes += 30 * (maxKeyLength - 10)
			}
		}
	}
	if queuedBytes > quota.Own+maxBody {
		t.Errorf("the queues of one tenant hold %d MiB", queuedBytes>>20)
	}
	if status := h.status(signed(path, `{"keys":["a"]}`, key, now)); status != http.StatusAccepted {
		t.Errorf("another tenant: status %d", status)
	}
	before := q.Used()
	if all[0].Receive(t.Context(), 10); q.Used() != before {
		t.Errorf("%d bytes of received reports do not count while they are handled", before-q.Used())
	}
	if all[0].Receive(t.Context(), 10); q.Used() >= before {
		t.Error("the bytes of handled reports count")
	}
	for _, e := range all {
		_ = e.Close() // It returns no error.
	}
	if n := q.Used(); n != 0 {
		t.Errorf("%d bytes count after the end", n)
	}
}
