package stack

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Deployment returns a Deployment with the name of a Secret, whose pods use it.
func Deployment(namespace, secret string) *appsv1.Deployment {
	labels := map[string]string{"app": secret}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app", EnvFrom: []corev1.EnvFromSource{
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}},
	}}}
	return d
}

// RollOut completes the rollout of a Deployment, as its controller would. It does nothing if another client has changed the Deployment
// since it was read.
func (s *Stack) RollOut(ctx context.Context, d *appsv1.Deployment) error {
	if d.Status.ObservedGeneration == d.Generation {
		return nil
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	if err := s.Admin.Status().Update(ctx, d); !kerrors.IsConflict(err) {
		return err
	}
	return nil
}
