package externalsecret

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

var errBoom = errors.New("boom")

// resource is how the API server names ExternalSecrets in its errors.
var resource = schema.GroupResource{Group: v1alpha1.Group, Resource: "externalsecrets"}

// condition is what matters of a metav1.Condition.
type condition struct {
	Type, Status, Reason, Message string
	Generation                    int64
}

func conditions(in []metav1.Condition) (out []condition) {
	for _, c := range in {
		out = append(out, condition{c.Type, string(c.Status), c.Reason, c.Message, c.ObservedGeneration})
	}
	return out
}

func TestConclude(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: "Ready", Status: status, Reason: reason}
	}
	cases := map[string]struct {
		reason  string
		before  []metav1.Condition
		verdict verdict
		want    []condition
	}{
		"Synced": {
			"While all is well there is nothing beside Ready.",
			nil, synced(""),
			[]condition{{"Ready", "True", "SecretSynced", "the Secret is in step", 7}},
		},
		"Failed": {
			"What is tried again is Reconciling.",
			nil, failed("SecretSyncedError", "NotFound: no"),
			[]condition{{"Ready", "False", "SecretSyncedError", "NotFound: no", 7}, {"Reconciling", "True", "Retrying", "it is tried again with back-off", 7}},
		},
		"Stalled": {
			"Where only a person can help it is Stalled.",
			nil, stalled("InvalidSpec", "fix it"),
			[]condition{{"Ready", "False", "InvalidSpec", "fix it", 7}, {"Stalled", "True", "InvalidSpec", "fix it", 7}},
		},
		"Recovered": {
			"What was wrong goes with its conditions.",
			[]metav1.Condition{ready("False", "x"), {Type: "Reconciling", Status: "True"}, {Type: "Stalled", Status: "True"}}, synced(""),
			[]condition{{"Ready", "True", "SecretSynced", "the Secret is in step", 7}},
		},
		"FromStalled": {
			"Stalled and Reconciling are never there together.",
			[]metav1.Condition{ready("False", "x"), {Type: "Stalled", Status: "True"}}, failed("StoreNotFound", "no"),
			[]condition{{"Ready", "False", "StoreNotFound", "no", 7}, {"Reconciling", "True", "Retrying", "it is tried again with back-off", 7}},
		},
		"Suspended": {
			"A suspended object that never was in step is neither tried again nor stalled.",
			nil, verdict{status: "Unknown", reason: "Suspended", message: "s"},
			[]condition{{"Ready", "Unknown", "Suspended", "s", 7}},
		},
		"Foreign": {
			"Conditions of others stay.",
			[]metav1.Condition{{Type: "Other", Status: "True", Reason: "r"}}, synced(""),
			[]condition{{"Other", "True", "r", "", 0}, {"Ready", "True", "SecretSynced", "the Secret is in step", 7}},
		},
		"Long": {
			"A message is cut at 1024 bytes.",
			nil, verdict{status: "True", reason: "r", message: strings.Repeat("x", 2000)},
			[]condition{{"Ready", "True", "r", strings.Repeat("x", 1021) + "...", 7}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			st := &v1alpha1.ExternalSecretStatus{Conditions: tc.before}
			conclude(st, 7, tc.verdict)
			if diff := cmp.Diff(tc.want, conditions(st.Conditions)); diff != "" {
				t.Errorf("\n%s\nconclude(): -want, +got:\n%s", tc.reason, diff)
			}
			if st.ObservedGeneration != 7 {
				t.Errorf("\n%s\nconclude(): observedGeneration %d, want 7", tc.reason, st.ObservedGeneration)
			}
		})
	}
}

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

func TestStatusPatch(t *testing.T) {
	type status = v1alpha1.ExternalSecretStatus
	base := status{ObservedGeneration: 1, ObservedRefreshRequest: "r", Binding: &v1alpha1.Binding{Name: "db"}, Parts: []v1alpha1.PartStatus{{Module: "gcp"}}}
	cases := map[string]struct {
		reason string
		change func(*status)
		want   string
	}{
		"Nothing":  {"What is equal is not sent.", func(*status) {}, `{}`},
		"Changed":  {"Only what differs is sent: fields that this version does not know survive, and so does what others own.", func(s *status) { s.ObservedGeneration = 2 }, `{"observedGeneration":2}`},
		"Added":    {"A new field is sent.", func(s *status) { s.Sources = []v1alpha1.SourceStatus{{Key: "a"}} }, `{"sources":[{"key":"a"}]}`},
		"Removed":  {"A field that goes is sent as null.", func(s *status) { s.ObservedRefreshRequest, s.Binding = "", nil }, `{"binding":null,"observedRefreshRequest":null}`},
		"NotParts": {"Entries of other modules are not sent along.", func(s *status) { s.Binding.Name = "x" }, `{"binding":{"name":"x"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next := base.DeepCopy()
			tc.change(next)
			body, err := statusPatch(&base, next, "42")
			if err != nil {
				t.Fatal(err)
			}
			want := `{"metadata":{"resourceVersion":"42"},"status":` + tc.want + `}`
			if diff := cmp.Diff(want, string(body)); diff != "" {
				t.Errorf("\n%s\nstatusPatch(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPatchStatus writes a status to an API server that answers each patch with the next error.
func TestPatchStatus(t *testing.T) {
	conflict := kerrors.NewConflict(resource, "db", errBoom)
	gone := kerrors.NewNotFound(resource, "db")
	type args struct {
		// next is the status to write; nil leaves it as it is.
		next    *v1alpha1.ExternalSecretStatus
		answers []error
		live    *v1alpha1.ExternalSecret
		getErr  error
	}
	type want struct {
		// Patches are the bodies that were sent.
		Patches []string
		Events  []string
		Err     error
	}
	next := &v1alpha1.ExternalSecretStatus{ObservedGeneration: 2, Conditions: []metav1.Condition{{Type: "Ready", Status: "False", Reason: "InvalidSpec", Message: "m"}}}
	body := func(version, status string) string {
		return `{"metadata":{"resourceVersion":"` + version + `"},"status":` + status + `}`
	}
	const full = `{"conditions":[{"lastTransitionTime":null,"message":"m","reason":"InvalidSpec","status":"False","type":"Ready"}],"observedGeneration":2}`
	live := func(uid string) *v1alpha1.ExternalSecret {
		es := &v1alpha1.ExternalSecret{}
		es.UID, es.ResourceVersion, es.Status.ObservedGeneration = "uid", "9", 2
		if uid != "" {
			es.UID = "other"
		}
		return es
	}
	changed := live("")
	changed.Generation = 3
	event := []string{"Warning InvalidSpec m"}

	cases := map[string]struct {
		reason string
		args   args
		want   want
	}{
		"Same":           {"A status that did not change is not written.", args{}, want{}},
		"Written":        {"One patch, guarded by the version that was seen, and an event when it turned bad.", args{next: next, answers: []error{nil}}, want{Patches: []string{body("5", full)}, Events: event}},
		"Conflict":       {"If somebody else wrote, the object is read live, and only the status is tried again: what differs from there.", args{next: next, answers: []error{conflict, nil}, live: live("")}, want{Patches: []string{body("5", full), body("9", `{"conditions":[{"lastTransitionTime":null,"message":"m","reason":"InvalidSpec","status":"False","type":"Ready"}]}`)}, Events: event}},
		"ConflictTwice":  {"And again.", args{next: next, answers: []error{conflict, conflict, nil}, live: live("")}, want{Patches: []string{body("5", full), body("9", `{"conditions":[{"lastTransitionTime":null,"message":"m","reason":"InvalidSpec","status":"False","type":"Ready"}]}`), body("9", `{"conditions":[{"lastTransitionTime":null,"message":"m","reason":"InvalidSpec","status":"False","type":"Ready"}]}`)}, Events: event}},
		"ConflictOther":  {"The status of another incarnation is not ours to write.", args{next: next, answers: []error{conflict}, live: live("other")}, want{Patches: []string{body("5", full)}}},
		"ConflictSpec":   {"What was found for a spec that has changed does not cover what was found for the new one.", args{next: next, answers: []error{conflict}, live: changed}, want{Patches: []string{body("5", full)}}},
		"ConflictGone":   {"An object that is gone needs no status.", args{next: next, answers: []error{conflict}, getErr: gone}, want{Patches: []string{body("5", full)}}},
		"ConflictUnread": {"If it cannot be read, that is an error.", args{next: next, answers: []error{conflict}, getErr: errBoom}, want{Patches: []string{body("5", full)}, Err: errBoom}},
		"Gone":           {"An object that is gone needs no status.", args{next: next, answers: []error{gone}}, want{Patches: []string{body("5", full)}}},
		"Refused":        {"Any other answer is an error.", args{next: next, answers: []error{errBoom}}, want{Patches: []string{body("5", full)}, Err: errBoom}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			answers := tc.args.answers
			recorder := events.NewFakeRecorder(10)
			r := &Reconciler{events: recorder, client: &test.MockClient{
				MockStatusPatch: func(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
					data, err := patch.Data(obj)
					if err != nil {
						return err
					}
					got.Patches = append(got.Patches, string(data))
					err, answers = answers[0], answers[1:]
					obj.SetResourceVersion("10")
					return err
				},
				MockGet: func(_ context.Context, _ client.ObjectKey, obj client.Object) error {
					if tc.args.live != nil {
						tc.args.live.DeepCopyInto(obj.(*v1alpha1.ExternalSecret))
					}
					return tc.args.getErr
				},
			}}
			es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid", ResourceVersion: "5"}}
			st := tc.args.next
			if st == nil {
				st = &v1alpha1.ExternalSecretStatus{}
			}
			obj := &object{uid: "uid"}
			got.Err = r.patchStatus(t.Context(), es, obj, st)
			close(recorder.Events)
			for e := range recorder.Events {
				got.Events = append(got.Events, e)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\npatchStatus(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAnnounce(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, Message: message}}
	}
	cases := map[string]struct {
		reason        string
		before, after []metav1.Condition
		want          []string
	}{
		"FirstSync":    {"A first sync is no event.", nil, ready("True", "SecretSynced", "ok"), nil},
		"StillGood":    {"Nothing happened.", ready("True", "SecretSynced", "ok"), ready("True", "SecretSynced", "ok"), nil},
		"TurnedBad":    {"A failure is one.", ready("True", "SecretSynced", "ok"), ready("False", "SecretSyncedError", "100% no"), []string{"Warning SecretSyncedError 100% no"}},
		"BadAtFirst":   {"A failure is one, also the first.", nil, ready("False", "InvalidSpec", "no"), []string{"Warning InvalidSpec no"}},
		"StillBad":     {"The same failure again is not.", ready("False", "InvalidSpec", "no"), ready("False", "InvalidSpec", "no"), nil},
		"OtherFailure": {"Another failure is.", ready("False", "InvalidSpec", "no"), ready("False", "InvalidSpec", "still no"), []string{"Warning InvalidSpec still no"}},
		"Recovered":    {"So is a recovery.", ready("False", "InvalidSpec", "no"), ready("True", "SecretSynced", "ok"), []string{"Normal SecretSynced ok"}},
		"Suspended":    {"What is suspended is quiet.", ready("False", "InvalidSpec", "no"), ready("Unknown", "Suspended", "s"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			r := &Reconciler{events: recorder}
			r.announce(&v1alpha1.ExternalSecret{}, &v1alpha1.ExternalSecretStatus{Conditions: tc.before}, &v1alpha1.ExternalSecretStatus{Conditions: tc.after})
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nannounce(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnknownFieldsSurvive merges a patch into a status with a field of a later version.
func TestUnknownFieldsSurvive(t *testing.T) {
	var seen v1alpha1.ExternalSecretStatus
	if err := json.Unmarshal([]byte(`{"observedGeneration":1,"ofTheFuture":{"a":1}}`), &seen); err != nil {
		t.Fatal(err)
	}
	next := seen.DeepCopy()
	next.ObservedGeneration = 2
	body, err := statusPatch(&seen, next, "1")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(body), "ofTheFuture") {
		t.Errorf("statusPatch(): %s touches a field that this version does not know", body)
	}
}
