// Package restart decides which workloads restart because the data of a Secret has changed. It makes no request.
package restart

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A Workload is what restarts need of a Deployment, StatefulSet, DaemonSet or Rollout.
type Workload struct {
	v1alpha1.WorkloadRef
	UID     types.UID
	Created time.Time
	// Annotations are those of the pod template; of the object, if the pod template is that of another one.
	Annotations map[string]string
	// Referring is true for a Rollout whose pod template is that of another workload. Argo Rollouts refuses it with one of its own
	// (https://argo-rollouts.readthedocs.io/en/stable/features/specification/), and restarts it by spec.restartAt.
	Referring bool
	// Progress is that of the last rollout.
	Progress Progress

	uses Uses
}

// Progress is how far a rollout is.
type Progress string

// These are the stages of a rollout.
const (
	// Available means that all pods have the current pod template and are available, or that the workload replaces no pods
	// by itself.
	Available Progress = "Available"
	Rolling   Progress = "Rolling"
	// Failed means that the controller of the workload has given up the rollout.
	Failed Progress = "Failed"
)

// Uses are the names of the Secrets and ConfigMaps that pods of a workload read when they start.
type Uses struct{ Secrets, ConfigMaps []string }

// UsesOf returns what pods use as volumes and in environment variables. Secrets for image pulls are no part of a running pod.
func UsesOf(p *corev1.PodSpec) Uses {
	var u Uses
	for i := range p.Volumes {
		u.addVolume(&p.Volumes[i].VolumeSource)
	}
	for _, c := range slices.Concat(p.InitContainers, p.Containers) {
		u.addEnv(&c)
	}
	return u
}

func (u *Uses) addVolume(v *corev1.VolumeSource) {
	if v.Secret != nil {
		u.Secrets = append(u.Secrets, v.Secret.SecretName)
	}
	if v.ConfigMap != nil {
		u.ConfigMaps = append(u.ConfigMaps, v.ConfigMap.Name)
	}
	if v.Projected == nil {
		return
	}
	for _, s := range v.Projected.Sources {
		if s.Secret != nil {
			u.Secrets = append(u.Secrets, s.Secret.Name)
		}
		if s.ConfigMap != nil {
			u.ConfigMaps = append(u.ConfigMaps, s.ConfigMap.Name)
		}
	}
}

func (u *Uses) addEnv(c *corev1.Container) {
	for _, e := range c.EnvFrom {
		if e.SecretRef != nil {
			u.Secrets = append(u.Secrets, e.SecretRef.Name)
		}
		if e.ConfigMapRef != nil {
			u.ConfigMaps = append(u.ConfigMaps, e.ConfigMapRef.Name)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if k := e.ValueFrom.SecretKeyRef; k != nil {
			u.Secrets = append(u.Secrets, k.Name)
		}
		if k := e.ValueFrom.ConfigMapKeyRef; k != nil {
			u.ConfigMaps = append(u.ConfigMaps, k.Name)
		}
	}
}

// Concerns reports whether a change of the target of an ExternalSecret restarts a workload of a Kind and name.
func Concerns(es *v1alpha1.ExternalSecret, ref v1alpha1.WorkloadRef, u Uses) bool {
	r := es.Spec.Target.Restart
	name, isConfigMap := strings.CutPrefix(es.TargetName(), v1alpha1.ConfigMapTarget)
	switch {
	case r == nil:
		return false
	case !r.Auto:
		return slices.Contains(r.Workloads, ref)
	case isConfigMap:
		return slices.Contains(u.ConfigMaps, name)
	}
	return slices.Contains(u.Secrets, name)
}

// manifest is the part of a workload that restarts need. The fields of all Kinds are in it.
type manifest struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Replicas       *int64                 `json:"replicas"`
		Paused         bool                   `json:"paused"`
		Template       corev1.PodTemplateSpec `json:"template"`
		WorkloadRef    *v1alpha1.WorkloadRef  `json:"workloadRef"`
		RestartAt      *metav1.Time           `json:"restartAt"`
		UpdateStrategy struct {
			Type          string `json:"type"`
			RollingUpdate struct {
				Partition int64 `json:"partition"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
	} `json:"spec"`
	Status rollout `json:"status"`
}

// rollout is the status of a workload.
type rollout struct {
	// ObservedGeneration is a number, and a text in a Rollout.
	ObservedGeneration json.RawMessage `json:"observedGeneration"`
	Phase              string          `json:"phase"`
	RestartedAt        *metav1.Time    `json:"restartedAt"`
	Conditions         []condition     `json:"conditions"`
	counts
}

type condition struct {
	Reason string `json:"reason"`
}

type counts struct {
	Replicas               int64 `json:"replicas"`
	UpdatedReplicas        int64 `json:"updatedReplicas"`
	AvailableReplicas      int64 `json:"availableReplicas"`
	DesiredNumberScheduled int64 `json:"desiredNumberScheduled"`
	UpdatedNumberScheduled int64 `json:"updatedNumberScheduled"`
	NumberAvailable        int64 `json:"numberAvailable"`
}

// Parse returns a workload from the content of its object.
func Parse(kind v1alpha1.WorkloadKind, object map[string]any) (Workload, error) {
	var m manifest
	raw, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		return Workload{}, fmt.Errorf("cannot decode a %s: %w", kind, err)
	}
	w := Workload{
		WorkloadRef: v1alpha1.WorkloadRef{Kind: kind, Name: m.Metadata.Name},
		UID:         m.Metadata.UID, Created: m.Metadata.CreationTimestamp.Time,
		Annotations: m.Spec.Template.Annotations, Progress: m.progress(kind), uses: UsesOf(&m.Spec.Template.Spec),
	}
	if kind == v1alpha1.WorkloadRollout && m.Spec.WorkloadRef != nil {
		w.Referring, w.Annotations = true, m.Metadata.Annotations
	}
	return w, nil
}

// evicts reports whether a Rollout with workloadRef restarts its pods. It is Healthy meanwhile.
func (m *manifest) evicts() bool {
	return m.Spec.WorkloadRef != nil && !m.Spec.RestartAt.Equal(m.Status.RestartedAt)
}

// progress returns the progress of a rollout, by the rules of kubectl rollout status.
func (m *manifest) progress(kind v1alpha1.WorkloadKind) Progress {
	s := &m.Status
	switch {
	case m.Spec.Paused, m.Spec.UpdateStrategy.Type == "OnDelete":
		return Available
	case strings.Trim(string(s.ObservedGeneration), `"`) != strconv.FormatInt(m.Metadata.Generation, 10):
		return Rolling
	}
	replicas := int64(1)
	if m.Spec.Replicas != nil {
		replicas = *m.Spec.Replicas
	}
	available, failed := false, false
	switch kind {
	case v1alpha1.WorkloadRollout:
		available, failed = s.Phase == "Healthy" && !m.evicts(), s.Phase == "Degraded"
	case v1alpha1.WorkloadDaemonSet:
		available = s.UpdatedNumberScheduled == s.DesiredNumberScheduled && s.NumberAvailable == s.DesiredNumberScheduled
	case v1alpha1.WorkloadStatefulSet:
		partition := min(m.Spec.UpdateStrategy.RollingUpdate.Partition, replicas)
		available = s.UpdatedReplicas >= replicas-partition && s.AvailableReplicas >= replicas
	case v1alpha1.WorkloadDeployment:
		failed = slices.ContainsFunc(s.Conditions, func(c condition) bool { return c.Reason == "ProgressDeadlineExceeded" })
		available = s.UpdatedReplicas >= replicas && s.Replicas == s.UpdatedReplicas && s.AvailableReplicas >= s.UpdatedReplicas
	}
	switch {
	case available:
		return Available
	case failed:
		return Failed
	}
	return Rolling
}
