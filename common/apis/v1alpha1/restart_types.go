package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RestartWindow is the default of Restart.Window.
const RestartWindow = 30 * time.Second

// Restart selects the workloads that restart when the data of the Secret changes.
//
// +kubebuilder:validation:XValidation:rule="(has(self.auto) && self.auto) != (has(self.workloads) && size(self.workloads) > 0)",message="set either auto: true or workloads"
type Restart struct {
	// True: restart the workloads of the namespace whose pod template uses the Secret as a volume or in environment variables.
	// +optional
	Auto bool `json:"auto,omitempty"`

	// Restart these workloads instead, also if their pod template does not use the Secret.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Workloads []WorkloadRef `json:"workloads,omitempty"`

	// Time from a change of the data to the restart. Changes within it, also of other Secrets, are one restart. Default 30s, at
	// most 1h.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(0|([0-9]*[.]?[0-9]+(ns|us|µs|ms|s|m|h))+)$') || duration(self) <= duration('1h')",message="window must be at most 1h"
	Window Duration `json:"window,omitempty"`
}

// WorkloadKind is a Kind of workloads that can be restarted.
// +kubebuilder:validation:Enum=Deployment;StatefulSet;DaemonSet;Rollout
type WorkloadKind string

// The Kinds of workloads. A Rollout is one of Argo Rollouts.
const (
	WorkloadDeployment  WorkloadKind = "Deployment"
	WorkloadStatefulSet WorkloadKind = "StatefulSet"
	WorkloadDaemonSet   WorkloadKind = "DaemonSet"
	WorkloadRollout     WorkloadKind = "Rollout"
)

// WorkloadRef names a workload in the namespace of the ExternalSecret.
type WorkloadRef struct {
	// Deployment, StatefulSet or DaemonSet, or Rollout of Argo Rollouts.
	Kind WorkloadKind `json:"kind"`
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
}

// RestartStatus is the state of the restarts of workloads. It holds no value.
type RestartStatus struct {
	// Hash of the data for which workloads were last restarted, keyed with a random salt on the Secret.
	// +optional
	Hash string `json:"hash,omitempty"`

	// Time at which the operator found other data. It is unset once the restarts have begun.
	// +optional
	ChangeTime *metav1.Time `json:"changeTime,omitempty"`

	// Workloads that wait for their restart.
	// +optional
	// +listType=atomic
	Pending []WorkloadRef `json:"pending,omitempty"`

	// Workloads that were restarted and are not available yet.
	// +optional
	// +listType=atomic
	Rolling []RollingWorkload `json:"rolling,omitempty"`
}

// RollingWorkload is a workload that was restarted.
type RollingWorkload struct {
	WorkloadRef `json:",inline"`
	// Time of the restart.
	Time metav1.Time `json:"time"`
}

// ConditionWorkloadsRestarted is True if all workloads have started with the data of the Secret.
const ConditionWorkloadsRestarted = "WorkloadsRestarted"

// Reasons of the condition WorkloadsRestarted.
const (
	ReasonUpToDate             = "UpToDate"
	ReasonRestartPending       = "RestartPending"
	ReasonRestarting           = "Restarting"
	ReasonWorkloadNotAvailable = "WorkloadNotAvailable"
	ReasonWorkloadNotFound     = "WorkloadNotFound"
	ReasonRestartFailed        = "RestartFailed"
)

// RestartFailure returns the condition WorkloadsRestarted if a user must do something before workloads restart, or before they
// have the data; nil otherwise.
func (s *ExternalSecretStatus) RestartFailure() *metav1.Condition {
	c := meta.FindStatusCondition(s.Conditions, ConditionWorkloadsRestarted)
	if c == nil || c.Status == metav1.ConditionTrue || c.Reason == ReasonRestartPending || c.Reason == ReasonRestarting {
		return nil
	}
	return c
}
