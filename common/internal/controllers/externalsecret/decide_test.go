package externalsecret

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
)

// TestDueByStatus takes an object that an earlier process has refreshed, an hour after the start of this process.
func TestDueByStatus(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		next   time.Time
		want   policy.Why
	}{
		"Planned": {"The next refresh is not due yet.", now.Add(time.Minute), policy.NotDue},
		"Past":    {"The planned refresh was missed.", now.Add(-2 * time.Hour), policy.Elapsed},
		"Ahead":   {"A clock that was ahead planned it: it is further away than the interval.", now.Add(48 * time.Hour), policy.Elapsed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &decider{now: func() time.Time { return now }, random: func() float64 { return 0.5 }, started: now.Add(-time.Hour)}
			s := &subject{es: externalSecret(), obj: &object{}, plan: render.Plan{Interval: time.Hour}}
			s.es.Status = v1alpha1.ExternalSecretStatus{
				RefreshTime: &metav1.Time{Time: now}, NextRefreshTime: &metav1.Time{Time: tc.next}, ObservedGeneration: s.es.Generation,
				ObservedMetadataHash: s.metadata(),
			}
			s.seen = &s.es.Status
			if got := d.due(s); got != tc.want {
				t.Errorf("\n%s\ndue(): %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
