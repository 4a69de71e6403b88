package externalsecret

import (
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

var errBoom = errors.New("boom")

func TestRefreshed(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 5e8, time.UTC)
	whole := metav1.NewTime(now.Truncate(time.Second))
	next := now.Add(time.Hour)
	nextWhole := metav1.NewTime(next.Truncate(time.Second))
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: whole.Add(-d)} }
	was := ago(time.Hour)

	type times struct{ Refresh, Next *metav1.Time }
	cases := map[string]struct {
		reason  string
		last    *metav1.Time
		changed bool
		held    bool
		next    time.Time
		want    times
	}{
		"First":       {"The first success is recorded.", nil, false, false, next, times{&whole, &nextWhole}},
		"NothingNew":  {"A refresh that finds nothing new writes nothing.", ago(9*time.Minute + 59*time.Second), false, false, next, times{ago(9*time.Minute + 59*time.Second), was}},
		"Heartbeat":   {"After ten minutes a refresh writes a heartbeat.", ago(10 * time.Minute), false, false, next, times{&whole, &nextWhole}},
		"Ahead":       {"A time in the future is corrected.", ago(-time.Hour), false, false, next, times{&whole, &nextWhole}},
		"WithChange":  {"A status that changes anyway gets the new times.", ago(time.Minute), true, false, next, times{&whole, &nextWhole}},
		"Held":        {"A refresh that has waited for a sync window writes the times.", ago(time.Minute), false, true, next, times{&whole, &nextWhole}},
		"NotPeriodic": {"Without an interval there is no next refresh time.", ago(time.Hour), false, false, time.Time{}, times{&whole, nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := &v1alpha1.ExternalSecretStatus{RefreshTime: tc.last, NextRefreshTime: was, ObservedGeneration: 1}
			if tc.held {
				before.NextWindowTime = was
			}
			st := before.DeepCopy()
			if tc.changed {
				st.ObservedGeneration = 2
			}
			refreshed(st, before, now, tc.next)
			if diff := cmp.Diff(tc.want, times{st.RefreshTime, st.NextRefreshTime}); diff != "" {
				t.Errorf("\n%s\nrefreshed(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
