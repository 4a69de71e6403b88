package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Announce emits an event when an object starts to fail, fails otherwise than before, or recovers; none on a first success.
func Announce(recorder events.EventRecorder, o client.Object, action string, before, after []metav1.Condition) {
	was, is := meta.FindStatusCondition(before, v1alpha1.ConditionReady), meta.FindStatusCondition(after, v1alpha1.ConditionReady)
	switch {
	case is == nil, is.Status == metav1.ConditionUnknown:
	case is.Status == metav1.ConditionFalse && (was == nil || was.Reason != is.Reason || was.Message != is.Message):
		recorder.Eventf(o, nil, corev1.EventTypeWarning, is.Reason, action, "%s", is.Message)
	case is.Status == metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionFalse:
		recorder.Eventf(o, nil, corev1.EventTypeNormal, is.Reason, action, "%s", is.Message)
	}
}
