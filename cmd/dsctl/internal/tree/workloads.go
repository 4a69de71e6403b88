package tree

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
)

// WorkloadLists returns the lists of the Kinds that can read Secrets: those with pods, and Ingresses.
func WorkloadLists() []client.ObjectList {
	return []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}, &appsv1.ReplicaSetList{},
		&batchv1.CronJobList{}, &batchv1.JobList{}, &corev1.PodList{}, &networkingv1.IngressList{},
	}
}

// Workloads returns the workloads of a list that read Secrets. It omits those that another workload controls,
// because that one is listed.
func Workloads(l client.ObjectList) []Workload {
	var all []Workload
	add := func(kind string, o metav1.Object, secrets []string) {
		if len(secrets) > 0 && metav1.GetControllerOf(o) == nil {
			all = append(all, Workload{Ref: snapshot.Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}, Secrets: secrets})
		}
	}
	switch l := l.(type) {
	case *appsv1.DeploymentList:
		each(l.Items, func(o *appsv1.Deployment) { add("Deployment", o, secretsOf(&o.Spec.Template.Spec)) })
	case *appsv1.StatefulSetList:
		each(l.Items, func(o *appsv1.StatefulSet) { add("StatefulSet", o, secretsOf(&o.Spec.Template.Spec)) })
	case *appsv1.DaemonSetList:
		each(l.Items, func(o *appsv1.DaemonSet) { add("DaemonSet", o, secretsOf(&o.Spec.Template.Spec)) })
	case *appsv1.ReplicaSetList:
		each(l.Items, func(o *appsv1.ReplicaSet) { add("ReplicaSet", o, secretsOf(&o.Spec.Template.Spec)) })
	case *batchv1.CronJobList:
		each(l.Items, func(o *batchv1.CronJob) { add("CronJob", o, secretsOf(&o.Spec.JobTemplate.Spec.Template.Spec)) })
	case *batchv1.JobList:
		each(l.Items, func(o *batchv1.Job) { add("Job", o, secretsOf(&o.Spec.Template.Spec)) })
	case *corev1.PodList:
		each(l.Items, func(o *corev1.Pod) { add("Pod", o, secretsOf(&o.Spec)) })
	case *networkingv1.IngressList:
		each(l.Items, func(o *networkingv1.Ingress) {
			var names []string
			for _, t := range o.Spec.TLS {
				names = append(names, t.SecretName)
			}
			add("Ingress", o, distinct(names))
		})
	}
	return all
}

func each[T any](items []T, f func(*T)) {
	for i := range items {
		f(&items[i])
	}
}

// secretsOf returns the names of the Secrets that a pod reads, each once.
func secretsOf(p *corev1.PodSpec) []string {
	var names []string
	for _, s := range p.ImagePullSecrets {
		names = append(names, s.Name)
	}
	for i := range p.Volumes {
		names = append(names, secretsOfVolume(&p.Volumes[i].VolumeSource)...)
	}
	for _, c := range slices.Concat(p.InitContainers, p.Containers) {
		for _, e := range c.EnvFrom {
			if e.SecretRef != nil {
				names = append(names, e.SecretRef.Name)
			}
		}
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				names = append(names, e.ValueFrom.SecretKeyRef.Name)
			}
		}
	}
	return distinct(names)
}

func secretsOfVolume(v *corev1.VolumeSource) []string {
	var names []string
	if v.Secret != nil {
		names = append(names, v.Secret.SecretName)
	}
	if v.CSI != nil && v.CSI.NodePublishSecretRef != nil {
		names = append(names, v.CSI.NodePublishSecretRef.Name)
	}
	if v.Projected != nil {
		for _, s := range v.Projected.Sources {
			if s.Secret != nil {
				names = append(names, s.Secret.Name)
			}
		}
	}
	return names
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
}
