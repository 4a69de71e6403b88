package status

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// condition holds the compared fields of a metav1.Condition.
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
		verdict Verdict
		want    []condition
	}{
		"Synced": {
			"An object in sync has no condition but Ready.",
			nil, Good("SecretSynced", "the Secret is in sync"),
			[]condition{{"Ready", "True", "SecretSynced", "the Secret is in sync", 7}},
		},
		"Failed": {
			"A failure that is retried is Reconciling.",
			nil, Failed("SecretSyncedError", "NotFound: no"),
			[]condition{{"Ready", "False", "SecretSyncedError", "NotFound: no", 7}, {"Reconciling", "True", "Retrying", "retrying with back-off", 7}},
		},
		"Stalled": {
			"A failure that only the user can fix is Stalled.",
			nil, Stalled("InvalidSpec", "fix it"),
			[]condition{{"Ready", "False", "InvalidSpec", "fix it", 7}, {"Stalled", "True", "InvalidSpec", "fix it", 7}},
		},
		"Recovered": {
			"The conditions of a failure are removed after a success.",
			[]metav1.Condition{ready("False", "x"), {Type: "Reconciling", Status: "True"}, {Type: "Stalled", Status: "True"}}, Good("SecretSynced", "the Secret is in sync"),
			[]condition{{"Ready", "True", "SecretSynced", "the Secret is in sync", 7}},
		},
		"FromStalled": {
			"Stalled and Reconciling are never set at the same time.",
			[]metav1.Condition{ready("False", "x"), {Type: "Stalled", Status: "True"}}, Failed("StoreNotFound", "no"),
			[]condition{{"Ready", "False", "StoreNotFound", "no", 7}, {"Reconciling", "True", "Retrying", "retrying with back-off", 7}},
		},
		"Suspended": {
			"A suspended object that was never in sync is neither Reconciling nor Stalled.",
			nil, Verdict{Status: "Unknown", Reason: "Suspended", Message: "s"},
			[]condition{{"Ready", "Unknown", "Suspended", "s", 7}},
		},
		"Kept": {
			"Without a status Ready keeps its status, and a suspended object is not Reconciling.",
			[]metav1.Condition{ready("False", "x"), {Type: "Reconciling", Status: "True"}}, Verdict{Reason: "Suspended", Message: "s"},
			[]condition{{"Ready", "False", "Suspended", "s", 7}},
		},
		"NeverKept": {
			"Without a status and without a condition, Ready is Unknown.",
			nil, Verdict{Reason: "Suspended", Message: "s"},
			[]condition{{"Ready", "Unknown", "Suspended", "s", 7}},
		},
		"Unknown": {
			"An object without a result yet is Reconciling, with the reason.",
			nil, Verdict{Status: "Unknown", Reason: "Unreachable", Message: "no answer"},
			[]condition{{"Ready", "Unknown", "Unreachable", "no answer", 7}, {"Reconciling", "True", "Progressing", "no answer", 7}},
		},
		"Class": {
			"The class precedes the message in every condition with that message.",
			nil, Verdict{Status: "False", Reason: "r", Class: provider.Invalid, Message: "m", Stalled: true},
			[]condition{{"Ready", "False", "r", "Invalid: m", 7}, {"Stalled", "True", "r", "Invalid: m", 7}},
		},
		"Foreign": {
			"Conditions of other types are kept.",
			[]metav1.Condition{{Type: "Other", Status: "True", Reason: "r"}}, Good("SecretSynced", "the Secret is in sync"),
			[]condition{{"Other", "True", "r", "", 0}, {"Ready", "True", "SecretSynced", "the Secret is in sync", 7}},
		},
		"Long": {
			"A message is cut at 1,024 bytes.",
			nil, Verdict{Status: "True", Reason: "r", Message: strings.Repeat("x", 2000)},
			[]condition{{"Ready", "True", "r", strings.Repeat("x", 1021) + "...", 7}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			Conclude(&tc.before, 7, tc.verdict)
			if diff := cmp.Diff(tc.want, conditions(tc.before)); diff != "" {
				t.Errorf("\n%s\nConclude(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestConcludeAgain concludes the same verdict a minute later: the conditions must stay the same, or each retry would
// write.
func TestConcludeAgain(t *testing.T) {
	cases := map[string]struct {
		reason  string
		verdict Verdict
	}{
		"Good":     {"An unchanged success is not written.", Good("SecretSynced", "ok")},
		"Failed":   {"An unchanged failure is not written.", Failed("SecretSyncedError", "NotFound: no")},
		"Stalled":  {"An unchanged stall is not written.", Stalled("InvalidSpec", "fix it")},
		"Progress": {"Unchanged progress is not written.", Verdict{Status: "Unknown", Reason: "Unreachable", Message: "no answer"}},
		"Kept":     {"A kept status is not written again.", Verdict{Reason: "Suspended", Message: "s"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var first []metav1.Condition
				Conclude(&first, 7, tc.verdict)
				again := append([]metav1.Condition(nil), first...)
				time.Sleep(time.Minute)
				Conclude(&again, 7, tc.verdict)
				if diff := cmp.Diff(first, again); diff != "" {
					t.Errorf("\n%s\nConclude() again: -first, +second:\n%s", tc.reason, diff)
				}
			})
		})
	}
}
