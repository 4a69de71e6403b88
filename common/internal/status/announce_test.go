package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

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
			Announce(recorder, &v1alpha1.ExternalSecret{}, "Sync", tc.before, tc.after)
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nAnnounce(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
