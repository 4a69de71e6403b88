// Package restart decides which workloads restart because the data of a Secret has changed. It makes no request.
package restart

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
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
	// Annotations are those of former restarts in the pod template; in the object, if the pod template is that of another one.
	Annotations map[string]string
	// Referring is true for a Rollout whose pod template is that of another workload. Argo Rollouts refuses it with one of its own
	// (https://argo-rollouts.readthedocs.io/en/stable/features/specification/), and restarts it by spec.restartAt.
	Referring bool
	// Progress is that of the last rollout.
	Progress Progress

	// uses are those of targets.
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
	raw, err := json.Marshal(p)
	if err != nil {
		return Uses{} // A pod without valid quantities does not start.
	}
	return usesIn(raw, strings.Clone)
}

// usesIn returns what pods with a spec use. keep returns a copy of a target, by its TargetName, that is to be kept; otherwise an empty text.
func usesIn(pod []byte, keep func(target string) string) Uses {
	var u Uses
	add := func(from gjson.Result, secret, configMap string) {
		// The text of a name is a part of the whole spec.
		if name := from.Get(secret).String(); name != "" {
			if kept := keep(name); kept != "" {
				u.Secrets = append(u.Secrets, kept)
			}
		}
		if name := from.Get(configMap).String(); name != "" {
			if kept := keep(v1alpha1.ConfigMapTarget + name); kept != "" {
				u.ConfigMaps = append(u.ConfigMaps, strings.TrimPrefix(kept, v1alpha1.ConfigMapTarget))
			}
		}
	}
	spec := gjson.ParseBytes(pod)
	each(spec, "volumes", func(v gjson.Result) {
		add(v, "secret.secretName", "configMap.name")
		each(v, "projected.sources", func(s gjson.Result) { add(s, "secret.name", "configMap.name") })
	})
	for _, containers := range []string{"initContainers", "containers"} {
		each(spec, containers, func(c gjson.Result) {
			each(c, "envFrom", func(e gjson.Result) { add(e, "secretRef.name", "configMapRef.name") })
			each(c, "env", func(e gjson.Result) { add(e, "valueFrom.secretKeyRef.name", "valueFrom.configMapKeyRef.name") })
		})
	}
	return u
}

// each calls f for each item of a list.
func each(o gjson.Result, path string, f func(gjson.Result)) {
	o.Get(path).ForEach(func(_, item gjson.Result) bool {
		f(item)
		return true
	})
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

// manifest is the part of a workload that restarts need. The fields of all Kinds are in it. No list and no map is decoded as a
// whole: what a tenant writes in few bytes would need many in memory.
type manifest struct {
	Metadata struct {
		Name              string      `json:"name"`
		UID               types.UID   `json:"uid"`
		Generation        int64       `json:"generation"`
		CreationTimestamp metav1.Time `json:"creationTimestamp"`
		Annotations       part        `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int64 `json:"replicas"`
		Paused   bool   `json:"paused"`
		Template struct {
			Metadata struct {
				Annotations part `json:"annotations"`
			} `json:"metadata"`
			Spec part `json:"spec"`
		} `json:"template"`
		WorkloadRef    *v1alpha1.WorkloadRef `json:"workloadRef"`
		RestartAt      *metav1.Time          `json:"restartAt"`
		UpdateStrategy struct {
			Type          string `json:"type"`
			RollingUpdate struct {
				Partition int64 `json:"partition"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
	} `json:"spec"`
	Status rollout `json:"status"`
}

// part is a part of the JSON text that is decoded. It is not copied.
type part []byte

// UnmarshalJSON implements json.Unmarshaler.
func (p *part) UnmarshalJSON(raw []byte) error {
	*p = raw
	return nil
}

// rollout is the status of a workload.
type rollout struct {
	// ObservedGeneration is a number, and a text in a Rollout.
	ObservedGeneration part         `json:"observedGeneration"`
	Phase              string       `json:"phase"`
	RestartedAt        *metav1.Time `json:"restartedAt"`
	Conditions         part         `json:"conditions"`
	counts
}

// exceeded reports whether the deadline of a Deployment has passed.
func (r *rollout) exceeded() (is bool) {
	gjson.ParseBytes(r.Conditions).ForEach(func(_, c gjson.Result) bool {
		is = c.Get("reason").String() == "ProgressDeadlineExceeded"
		return !is
	})
	return is
}

type counts struct {
	Replicas               int64 `json:"replicas"`
	UpdatedReplicas        int64 `json:"updatedReplicas"`
	AvailableReplicas      int64 `json:"availableReplicas"`
	DesiredNumberScheduled int64 `json:"desiredNumberScheduled"`
	UpdatedNumberScheduled int64 `json:"updatedNumberScheduled"`
	NumberAvailable        int64 `json:"numberAvailable"`
}

// Targets are the targets that restarts of a namespace are about, by TargetName, and their annotations.
type Targets struct {
	// Both have each text as key and value, so that all workloads share it.
	names, keys map[string]string
}

// TargetsOf returns the targets of objects.
func TargetsOf(objects []*Object) Targets {
	t := Targets{map[string]string{}, map[string]string{}}
	for _, o := range objects {
		t.add(o.TargetName())
	}
	return t
}

func (t Targets) add(target string) {
	key := Key(target)
	t.names[target], t.keys[key] = target, key
}

// Parse returns a workload from the JSON text of its object, with those of its annotations and uses that are about targets.
func Parse(kind v1alpha1.WorkloadKind, raw []byte, targets Targets) (Workload, error) {
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return Workload{}, fmt.Errorf("cannot decode a %s: %w", kind, err)
	}
	w := Workload{
		WorkloadRef: v1alpha1.WorkloadRef{Kind: kind, Name: m.Metadata.Name},
		UID:         m.Metadata.UID, Created: m.Metadata.CreationTimestamp.Time, Progress: m.progress(kind),
	}
	found := map[string]bool{}
	w.uses = usesIn(m.Spec.Template.Spec, func(target string) string {
		if found[target] {
			return ""
		}
		kept := targets.names[target]
		if kept != "" {
			found[kept] = true
		}
		return kept
	})
	annotations := m.Spec.Template.Metadata.Annotations
	if kind == v1alpha1.WorkloadRollout && m.Spec.WorkloadRef != nil {
		w.Referring, annotations = true, m.Metadata.Annotations
	}
	w.Annotations = targets.annotations(annotations)
	return w, nil
}

// maxHash is longer than a Hash. A longer annotation is that of another client.
const maxHash = 64

// annotations returns those of a workload that restarts for the targets have set.
func (t Targets) annotations(raw []byte) map[string]string {
	all := map[string]string{}
	gjson.ParseBytes(raw).ForEach(func(key, value gjson.Result) bool {
		if k := t.keys[key.String()]; k != "" && len(value.Raw) <= maxHash {
			all[k] = strings.Clone(value.String())
		}
		return true
	})
	return all
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
		failed = s.exceeded()
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
