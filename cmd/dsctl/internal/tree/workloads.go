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
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// WorkloadLists returns the lists of the Kinds that can read Secrets or ConfigMaps: those with pods, and Ingresses.
func WorkloadLists() []client.ObjectList {
	return []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}, &appsv1.ReplicaSetList{},
		&batchv1.CronJobList{}, &batchv1.JobList{}, &corev1.PodList{}, &networkingv1.IngressList{},
	}
}

// Workloads returns the workloads of a list that read Secrets or ConfigMaps, or that an ExternalSecret can restart. It omits those
// that another workload controls, because that one is listed.
func Workloads(l client.ObjectList) []Workload {
	var all []Workload
	add := func(kind string, o metav1.Object, r reads) {
		w := Workload{Ref: snapshot.Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}, Secrets: distinct(r.secrets), ConfigMaps: distinct(r.configMaps), pod: r.pod}
		if (len(w.Secrets)+len(w.ConfigMaps) > 0 || w.pod != nil) && metav1.GetControllerOf(o) == nil {
			all = append(all, w)
		}
	}
	switch l := l.(type) {
	case *appsv1.DeploymentList:
		each(l.Items, func(o *appsv1.Deployment) { add("Deployment", o, restartable(&o.Spec.Template.Spec)) })
	case *appsv1.StatefulSetList:
		each(l.Items, func(o *appsv1.StatefulSet) { add("StatefulSet", o, restartable(&o.Spec.Template.Spec)) })
	case *appsv1.DaemonSetList:
		each(l.Items, func(o *appsv1.DaemonSet) { add("DaemonSet", o, restartable(&o.Spec.Template.Spec)) })
	case *appsv1.ReplicaSetList:
		each(l.Items, func(o *appsv1.ReplicaSet) { add("ReplicaSet", o, readsOf(&o.Spec.Template.Spec)) })
	case *batchv1.CronJobList:
		each(l.Items, func(o *batchv1.CronJob) { add("CronJob", o, readsOf(&o.Spec.JobTemplate.Spec.Template.Spec)) })
	case *batchv1.JobList:
		each(l.Items, func(o *batchv1.Job) { add("Job", o, readsOf(&o.Spec.Template.Spec)) })
	case *corev1.PodList:
		each(l.Items, func(o *corev1.Pod) { add("Pod", o, readsOf(&o.Spec)) })
	case *networkingv1.IngressList:
		each(l.Items, func(o *networkingv1.Ingress) {
			var names []string
			for _, t := range o.Spec.TLS {
				names = append(names, t.SecretName)
			}
			add("Ingress", o, reads{secrets: names})
		})
	}
	return all
}

func each[T any](items []T, f func(*T)) {
	for i := range items {
		f(&items[i])
	}
}

// reads are the names of the Secrets and ConfigMaps that a workload reads.
type reads struct {
	secrets, configMaps []string
	// pod is nil if restarts do not apply to the Kind.
	pod *corev1.PodSpec
}

// restartable returns what a pod of a workload reads that an ExternalSecret can restart.
func restartable(p *corev1.PodSpec) reads {
	r := readsOf(p)
	r.pod = p
	return r
}

// readsOf returns what a pod reads, also for pulls of images and the drivers of its volumes.
func readsOf(p *corev1.PodSpec) (r reads) {
	r.secrets, r.configMaps = inspect.PodReads(p)
	for _, s := range p.ImagePullSecrets {
		r.secrets = append(r.secrets, s.Name)
	}
	for i := range p.Volumes {
		if csi := p.Volumes[i].CSI; csi != nil && csi.NodePublishSecretRef != nil {
			r.secrets = append(r.secrets, csi.NodePublishSecretRef.Name)
		}
	}
	return r
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
}
