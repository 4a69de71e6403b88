// Package status writes the status of every Kind: conditions as data, and two protocols for writes.
package status

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// MaxMessage limits the message of a condition or a status entry, in bytes. The API server accepts 32 KiB.
const MaxMessage = 1024

// A Verdict is the outcome of a reconcile.
type Verdict struct {
	// Status is the status of the Ready condition. Empty keeps the current status, or sets Unknown if there is none.
	Status metav1.ConditionStatus
	Reason string
	// Class is that of the error that Message describes; empty if there is none. The text of a condition starts with
	// it.
	Class   provider.Class
	Message string
	// Stalled is true if only the user can fix the problem.
	Stalled bool
}

// Good returns the Verdict on an object that is in sync with its spec.
func Good(reason, message string) Verdict {
	return Verdict{Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// Failed returns the Verdict on a failure that is retried.
func Failed(reason, message string) Verdict {
	return Verdict{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Stalled returns the Verdict on a failure that only the user can fix.
func Stalled(reason, message string) Verdict {
	return Verdict{Status: metav1.ConditionFalse, Reason: reason, Message: message, Stalled: true}
}

// Text returns the message as conditions show it: starting with the class, and at most MaxMessage bytes.
func (v Verdict) Text() string {
	if v.Class == "" {
		return Cut(v.Message, MaxMessage)
	}
	return Cut(string(v.Class)+": "+v.Message, MaxMessage)
}

// HasClass reports whether the text of a condition starts with a class.
func HasClass(c metav1.Condition, class provider.Class) bool {
	return strings.HasPrefix(c.Message, string(class)+": ")
}

// Conclude sets the conditions Ready, Reconciling and Stalled. They follow kstatus: Reconciling while the operator
// retries or is not finished, Stalled if only the user can fix the problem. Neither is set if the object is in sync,
// held back.
// https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
func Conclude(conditions *[]metav1.Condition, generation int64, v Verdict) {
	Set(conditions, v1alpha1.ConditionReady, generation, v)
	reconciling := Verdict{Status: metav1.ConditionTrue, Reason: "Retrying", Message: "retrying with back-off"}
	if v.Status == metav1.ConditionUnknown {
		reconciling.Reason, reconciling.Message = "Progressing", v.Text()
	}
	stalled := v
	stalled.Status = metav1.ConditionTrue
	bad := v.Status != "" && v.Status != metav1.ConditionTrue && !HeldBack(v.Reason)
	for _, c := range []struct {
		kind  string
		holds bool
		v     Verdict
	}{
		{v1alpha1.ConditionReconciling, bad && !v.Stalled, reconciling},
		{v1alpha1.ConditionStalled, v.Stalled, stalled},
	} {
		if c.holds {
			Set(conditions, c.kind, generation, c.v)
		} else {
			meta.RemoveStatusCondition(conditions, c.kind)
		}
	}
}

// HeldBack reports whether a reason says that a user holds an object back: by suspend, dryRun or --no-remote-changes. The
// operator then neither fails nor retries.
func HeldBack(reason string) bool {
	switch reason {
	case v1alpha1.ReasonSuspended, v1alpha1.ReasonDryRun, v1alpha1.ReasonNoRemoteChanges:
		return true
	}
	return false
}

// Set sets one condition. Its times are whole seconds, as the API server stores them.
func Set(conditions *[]metav1.Condition, kind string, generation int64, v Verdict) {
	if v.Status == "" {
		v.Status = metav1.ConditionUnknown
		if c := meta.FindStatusCondition(*conditions, kind); c != nil {
			v.Status = c.Status
		}
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: v.Status, Reason: v.Reason, Message: v.Text(), ObservedGeneration: generation,
		LastTransitionTime: metav1.Now().Rfc3339Copy(),
	})
}

// Cut shortens a text to at most a number of bytes, which must be three or more. A shortened text ends with "...".
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}

// NotSynced returns the Verdict on values of an ExternalSecret that could not be read, rendered or written.
func NotSynced(err error) Verdict {
	safe := provider.Safe(err)
	v := Failed(v1alpha1.ReasonSecretSyncedError, WithFix(safe.Class, safe.Message))
	if safe.Class == provider.NotFound && v.Message != safe.Message {
		v.Message += ", or set optional: true if it can be absent"
	}
	v.Class = safe.Class
	return v
}
