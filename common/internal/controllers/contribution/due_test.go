package contribution

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/fetch"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestDue has an ExternalSecret whose only foreign source was read an hour ago, and is planned to be read in ten
// minutes.
func TestDue(t *testing.T) {
	now := time.Date(2030, time.January, 2, 3, 4, 5, 0, time.UTC)
	src := render.Source{Store: v1alpha1.StoreRef{Kind: "FakeStore", Name: "s"}, Read: provider.Read{Ref: provider.Ref{Key: "db"}}}
	self := handoff.Contributor{Group: "fake.direct-secrets.io", Purpose: v1alpha1.PartRead}
	id := handoff.SourceID(src.Store, src.Read)
	closed := func(s *subject) {
		s.stores.Plan.Windows, _ = windows.Parse(&v1alpha1.SyncWindows{Kind: v1alpha1.SyncDeny, Windows: []v1alpha1.SyncWindow{{Schedule: "0 3 * * *", Duration: "1h"}}})
	}
	cases := map[string]struct {
		reason string
		change func(s *subject)
		want   policy.Why
	}{
		"Fresh":       {"Values are not read before the planned time.", func(*subject) {}, policy.NotDue},
		"NoPart":      {"Without a part everything is read.", func(s *subject) { s.part, s.record = nil, handoff.Record{} }, policy.First},
		"Elapsed":     {"Values are read at the planned time.", func(s *subject) { s.record.Reads.Next = now.Add(-time.Second); s.obj.next = s.record.Reads.Next }, policy.Elapsed},
		"Ahead":       {"A time that was planned by a clock that was ahead does not count.", func(s *subject) { s.record.Reads.Next = now.Add(48 * time.Hour) }, policy.Elapsed},
		"Source":      {"A source that the part does not hold is read.", func(s *subject) { s.record.Reads.Entries = map[string]string{"x": handoff.Found} }, policy.First},
		"Another":     {"A part of another incarnation of the object does not count.", func(s *subject) { s.record.UID = "other" }, policy.First},
		"Forged":      {"A part that the status does not record does not count.", func(s *subject) { s.es.Status.Parts = nil }, policy.First},
		"Edited":      {"A part that another client has changed does not count.", func(s *subject) { s.obj.version = "4" }, policy.First},
		"Terminating": {"A part that is being deleted does not count.", func(s *subject) { s.part.DeletionTimestamp = &metav1.Time{Time: now} }, policy.First},
		"Request":     {"A refresh request is served.", func(s *subject) { s.es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"} }, policy.Requested},
		"Spec":        {"A change of the spec causes a read of all sources.", func(s *subject) { s.es.Spec.Target.Name = "new" }, policy.Changed},
		"Failing":     {"A failed read is retried.", func(s *subject) { s.obj.failing = true }, policy.Retry},
		"Lacking":     {"A missing secret that the object needs is read again.", func(s *subject) { s.record.Reads.Entries[id] = handoff.NotFound }, policy.Retry},
		"LackingDropped": {
			"Under deletionPolicy Delete the object does not need a missing secret.",
			func(s *subject) {
				s.es.Spec.Target.DeletionPolicy = v1alpha1.DeletionDelete
				s.record.Reads.Entries[id], s.record.Reads.Metadata = handoff.NotFound, s.metadata()
			}, policy.NotDue,
		},
		"FailedBefore": {"A failure of an earlier process, according to the status, is retried.", func(s *subject) { s.es.Status.Parts[0].Message = "denied" }, policy.Retry},
		"Immutable": {
			"The values of an immutable Secret are read once.",
			func(s *subject) { s.es.Spec.Target.Immutable, s.obj.failing = true, true }, policy.NotDue,
		},
		"Closed": {
			"While the sync windows are closed, a periodic read waits.",
			func(s *subject) { closed(s); s.obj.next = now.Add(-time.Second) }, policy.NotDue,
		},
		"ClosedEvent": {
			"So does one because of an event.",
			func(s *subject) { closed(s); s.obj.attempts.Notify(now, "") }, policy.NotDue,
		},
		"ClosedFailing": {
			"A retry does not wait.",
			func(s *subject) { closed(s); s.obj.failing = true; s.obj.attempts.Notify(now, "") }, policy.Retry,
		},
		"Held": {
			"A read that a former process held back is made in the next window.",
			func(s *subject) { s.es.Status.Parts[0].NextWindowTime = &metav1.Time{Time: now.Add(-time.Second)} }, policy.Elapsed,
		},
		"OnChange": {
			"Without an interval the planned time does not count.",
			func(s *subject) {
				s.es.Spec.RefreshPolicy = v1alpha1.RefreshOnChange
				s.record.Reads.Next, s.record.Reads.Metadata = now.Add(-time.Second), s.metadata()
			}, policy.NotDue,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &subject{
				opts: &Options{Now: func() time.Time { return now }, Random: func() float64 { return 0.5 }}, self: self,
				es: &v1alpha1.ExternalSecret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "u", Generation: 1},
					Spec:       v1alpha1.ExternalSecretSpec{StoreRef: &src.Store, Data: []v1alpha1.DataEntry{{SecretKey: "k", RemoteRef: v1alpha1.RemoteRef{Key: "db"}}}},
					Status:     v1alpha1.ExternalSecretStatus{Parts: []v1alpha1.PartStatus{{Module: self.Key(), Name: "p", UID: "part"}}},
				},
				obj:    &object{},
				stores: fetch.Stores{Plan: render.Plan{Sources: []render.Source{src}, Interval: time.Hour}},
				part:   &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "part", ResourceVersion: "5"}},
			}
			s.record = handoff.Record{UID: "u", Reads: &handoff.Reads{
				Version: "1", Entries: map[string]string{id: handoff.Found}, Metadata: s.metadata(), At: now.Add(-time.Hour), Next: now.Add(10 * time.Minute),
			}}
			tc.change(s)
			if got := s.due(now.Add(-time.Hour)); got != tc.want {
				t.Errorf("\n%s\ndue(): %s, want %s", tc.reason, got, tc.want)
			}
			if held := s.stores.Plan.Windows != nil && tc.want == policy.NotDue; s.hold.Holds() != held {
				t.Errorf("\n%s\ndue(): hold is %+v, want a time: %t", tc.reason, s.hold, held)
			}
		})
	}
}
