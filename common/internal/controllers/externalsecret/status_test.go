package externalsecret

import (
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
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
		next    time.Time
		want    times
	}{
		"First":       {"The first success is noted.", nil, false, next, times{&whole, &nextWhole}},
		"NothingNew":  {"A refresh that finds nothing new writes nothing.", ago(9*time.Minute + 59*time.Second), false, next, times{ago(9*time.Minute + 59*time.Second), was}},
		"Heartbeat":   {"After ten minutes it leaves a heartbeat.", ago(10 * time.Minute), false, next, times{&whole, &nextWhole}},
		"WithChange":  {"What is written anyway carries the times along.", ago(time.Minute), true, next, times{&whole, &nextWhole}},
		"NotPeriodic": {"Without an interval there is no next time.", ago(time.Hour), false, time.Time{}, times{&whole, nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := &v1alpha1.ExternalSecretStatus{RefreshTime: tc.last, NextRefreshTime: was, ObservedGeneration: 1}
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

func TestMetadataHash(t *testing.T) {
	base := metav1.ObjectMeta{Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}}
	cases := map[string]struct {
		reason string
		change func(*metav1.ObjectMeta)
		same   bool
	}{
		"Same":          {"The hash is stable.", func(*metav1.ObjectMeta) {}, true},
		"Request":       {"A refresh request is followed by itself.", func(m *metav1.ObjectMeta) { m.Annotations[v1alpha1.RefreshRequestAnnotation] = "now" }, true},
		"LastApplied":   {"kubectl's copy of the manifest tells nothing.", func(m *metav1.ObjectMeta) { m.Annotations[corev1.LastAppliedConfigAnnotation] = "{}" }, true},
		"Version":       {"What the API server writes tells nothing.", func(m *metav1.ObjectMeta) { m.ResourceVersion, m.Generation = "9", 9 }, true},
		"Label":         {"A label counts.", func(m *metav1.ObjectMeta) { m.Labels["l"] = "2" }, false},
		"NewLabel":      {"A label counts.", func(m *metav1.ObjectMeta) { m.Labels["m"] = "" }, false},
		"NoLabel":       {"A label counts.", func(m *metav1.ObjectMeta) { m.Labels = nil }, false},
		"Annotation":    {"An annotation counts.", func(m *metav1.ObjectMeta) { m.Annotations["a"] = "2" }, false},
		"NewAnnotation": {"An annotation counts.", func(m *metav1.ObjectMeta) { m.Annotations["b"] = "" }, false},
		"Swapped":       {"A label is no annotation.", func(m *metav1.ObjectMeta) { m.Labels, m.Annotations = m.Annotations, m.Labels; m.Labels["x"] = "" }, false},
		"Shifted":       {"What ends a key does not begin a value.", func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"l1": ""} }, false},
	}
	want := metadataHash(&v1alpha1.ExternalSecret{ObjectMeta: base})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			es := &v1alpha1.ExternalSecret{ObjectMeta: *base.DeepCopy()}
			tc.change(&es.ObjectMeta)
			if got := metadataHash(es); (got == want) != tc.same {
				t.Errorf("\n%s\nmetadataHash(): %s before and %s after, want the same: %t", tc.reason, want, got, tc.same)
			}
		})
	}
}
