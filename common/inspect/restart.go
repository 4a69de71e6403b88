package inspect

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/restart"
)

// Restarts reports whether a change of the target of an ExternalSecret restarts a workload with a pod template.
func Restarts(es *v1alpha1.ExternalSecret, workload v1alpha1.WorkloadRef, pod *corev1.PodSpec) bool {
	switch workload.Kind {
	case v1alpha1.WorkloadDeployment, v1alpha1.WorkloadStatefulSet, v1alpha1.WorkloadDaemonSet, v1alpha1.WorkloadRollout:
		return restart.Concerns(es, workload, restart.UsesOf(pod))
	}
	return false
}

// PodReads returns the names of the Secrets and ConfigMaps that pods read as volumes and in environment variables. A name can be
// there several times.
func PodReads(p *corev1.PodSpec) (secrets, configMaps []string) {
	u := restart.UsesOf(p)
	return u.Secrets, u.ConfigMaps
}
