package status

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

func TestRecordEvent(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, Message: message}}
	}
	cases := map[string]struct {
		reason        string
		before, after []metav1.Condition
		want          []string
	}{
		"FirstSync":    {"A first sync emits no event.", nil, ready("True", "SecretSynced", "ok"), nil},
		"StillGood":    {"Without a change there is no event.", ready("True", "SecretSynced", "ok"), ready("True", "SecretSynced", "ok"), nil},
		"TurnedBad":    {"A new failure emits an event.", ready("True", "SecretSynced", "ok"), ready("False", "SecretSyncedError", "100% no"), []string{"Warning SecretSyncedError 100% no"}},
		"BadAtFirst":   {"A first failure emits an event.", nil, ready("False", "InvalidSpec", "no"), []string{"Warning InvalidSpec no"}},
		"StillBad":     {"The same failure emits no further event.", ready("False", "InvalidSpec", "no"), ready("False", "InvalidSpec", "no"), nil},
		"OtherFailure": {"Another failure emits an event.", ready("False", "InvalidSpec", "no"), ready("False", "InvalidSpec", "still no"), []string{"Warning InvalidSpec still no"}},
		"Recovered":    {"A recovery emits an event.", ready("False", "InvalidSpec", "no"), ready("True", "SecretSynced", "ok"), []string{"Normal SecretSynced ok"}},
		"Suspended":    {"A suspended object emits no event.", ready("False", "InvalidSpec", "no"), ready("False", "Suspended", "s"), nil},
		"Resumed":      {"A failure after a suspension emits an event.", ready("False", "Suspended", "s"), ready("False", "InvalidSpec", "no"), []string{"Warning InvalidSpec no"}},
		"Unreachable":  {"A store that has never answered emits an event, although its condition is Unknown.", nil, ready("Unknown", "Unreachable", "no"), []string{"Warning Unreachable no"}},
		"Reached":      {"The first answer of a store that failed is a recovery.", ready("Unknown", "Unreachable", "no"), ready("True", "Valid", "ok"), []string{"Normal Valid ok"}},
		"Compared":     {"The end of a comparison is not a recovery.", ready("Unknown", "Reconciling", "soon"), ready("True", "Pushed", "ok"), nil},
		"Long":         {"A long message is cut: the API server accepts 1,024 characters.", nil, ready("False", "InvalidSpec", strings.Repeat("a", 1024)), []string{"Warning InvalidSpec " + strings.Repeat("a", 997) + "..."}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			RecordEvent(recorder, &v1alpha1.ExternalSecret{}, "Sync", tc.before, tc.after)
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nRecordEvent(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
