package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// MaxNote limits the message of an event, in bytes. The API server accepts 1,024 characters.
const MaxNote = 1000

// RecordEvent emits an event when an object starts to fail, fails in another way than before, or recovers. It emits none
// on a first success, and none for a suspended object.
func RecordEvent(recorder events.EventRecorder, o client.Object, action string, before, after []metav1.Condition) {
	was, is := meta.FindStatusCondition(before, v1alpha1.ConditionReady), meta.FindStatusCondition(after, v1alpha1.ConditionReady)
	switch {
	case fails(is) && (was == nil || was.Reason != is.Reason || was.Message != is.Message):
		recorder.Eventf(o, nil, corev1.EventTypeWarning, is.Reason, action, "%s", Cut(is.Message, MaxNote))
	case is != nil && is.Status == metav1.ConditionTrue && was != nil && was.Status != metav1.ConditionTrue && was.Reason != v1alpha1.ConditionReconciling:
		recorder.Eventf(o, nil, corev1.EventTypeNormal, is.Reason, action, "%s", Cut(is.Message, MaxNote))
	}
}

// fails reports whether a condition reports a failure. The condition of a store that has never answered is Unknown,
// and is a failure.
func fails(c *metav1.Condition) bool {
	switch {
	case c == nil, c.Reason == v1alpha1.ReasonSuspended:
		return false
	case c.Status == metav1.ConditionUnknown:
		return c.Reason == v1alpha1.ReasonStoreUnreachable
	}
	return c.Status == metav1.ConditionFalse
}
