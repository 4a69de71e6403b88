package tree

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

func kind(group, name string, namespaced bool) snapshot.Kind {
	return snapshot.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: name}, Resource: strings.ToLower(name) + "s", Namespaced: namespaced}
}

var kinds = []snapshot.Kind{
	kind("direct-secrets.io", "ExternalSecret", true), kind("direct-secrets.io", "PushSecret", true),
	kind("aws.direct-secrets.io", "AWSSecretsManager", true), kind("vault.direct-secrets.io", "ClusterVaultKV", false),
	kind("generator.direct-secrets.io", "Password", true),
}

func read(t *testing.T, manifest string) *snapshot.Snapshot {
	t.Helper()
	s := &snapshot.Snapshot{Kinds: kinds}
	for _, doc := range strings.Split(manifest, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		k := kinds[slices.IndexFunc(kinds, func(k snapshot.Kind) bool { return k.Kind == u.GetKind() })]
		if k.Namespaced {
			u.SetNamespace("shop")
		}
		o, err := snapshot.NewObject(k, u)
		if err != nil {
			t.Fatal(err)
		}
		s.Objects = append(s.Objects, o)
	}
	return s
}

const manifest = `
kind: AWSSecretsManager
metadata: {name: prod, labels: {push: "yes"}}
status: {conditions: [{type: Ready, status: "True", reason: Valid}]}
---
kind: ClusterVaultKV
metadata: {name: kv}
---
kind: ExternalSecret
metadata: {name: db}
spec:
  storeRef: {kind: AWSSecretsManager, name: prod}
  dataFrom: [{extract: {key: x}, sourceRef: {storeRef: {kind: ClusterVaultKV, name: kv}}}]
status: {conditions: [{type: Ready, status: "True", reason: SecretSynced}]}
---
kind: ExternalSecret
metadata: {name: checked}
spec: {storeRef: {kind: ClusterVaultKV, name: kv}, target: {creationPolicy: None}}
---
kind: ExternalSecret
metadata: {name: lost}
spec: {storeRef: {kind: AWSSecretsManager, name: absent}, target: {name: other}}
---
kind: ExternalSecret
metadata: {name: misspelt}
spec: {dataFrom: [{sourceRef: {generatorRef: {kind: Pasword, name: pw}}}]}
---
kind: ExternalSecret
metadata: {name: app}
spec: {storeRef: {kind: ClusterVaultKV, name: vars}, target: {kind: ConfigMap}}
---
kind: ExternalSecret
metadata: {name: app2}
spec: {storeRef: {kind: ClusterVaultKV, name: vars}, target: {kind: ConfigMap, name: db}}
---
kind: ExternalSecret
metadata: {name: app3}
spec: {storeRef: {kind: ClusterVaultKV, name: vars}, target: {kind: ConfigMap, creationPolicy: None}}
---
kind: PushSecret
metadata: {name: up}
spec: {storeRefs: [{kind: AWSSecretsManager, labelSelector: {matchLabels: {push: "yes"}}}], selector: {secret: {name: db}}}`

func input(t *testing.T) Input {
	return Input{
		Snapshot: read(t, manifest),
		Workloads: []Workload{
			{Ref: snapshot.Ref{Kind: "Deployment", Namespace: "shop", Name: "web"}, Secrets: []string{"db"}},
			{Ref: snapshot.Ref{Kind: "CronJob", Namespace: "shop", Name: "report"}, Secrets: []string{"db", "x"}},
			{Ref: snapshot.Ref{Kind: "Pod", Namespace: "else", Name: "web"}, Secrets: []string{"db"}},
			{Ref: snapshot.Ref{Kind: "Job", Namespace: "shop", Name: "import"}, Secrets: []string{"app"}, ConfigMaps: []string{"other"}},
			{Ref: snapshot.Ref{Kind: "Pod", Namespace: "shop", Name: "api"}, ConfigMaps: []string{"app"}},
		},
		Exists: map[v1alpha1.TargetKind]func(namespace, name string) bool{
			v1alpha1.TargetSecret:    func(_, name string) bool { return name == "db" },
			v1alpha1.TargetConfigMap: func(_, name string) bool { return name == "app" },
		},
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		match  func(snapshot.Ref) bool
		want   string
	}{
		"All": {
			reason: "each store has a tree, even one that does not exist, and workloads of other namespaces are not in it",
			match:  func(snapshot.Ref) bool { return true },
			want: `
AWSSecretsManager shop/absent  (does not exist)
└── ExternalSecret shop/lost  Ready=Unknown
    └── Secret shop/other  (does not exist)
AWSSecretsManager shop/prod  Ready=True Valid
├── ExternalSecret shop/db  Ready=True SecretSynced
│   └── Secret shop/db
│       ├── Deployment shop/web
│       └── CronJob shop/report
└── PushSecret shop/up  Ready=Unknown  (pushes Secret db)
ClusterVaultKV kv  Ready=Unknown
├── ExternalSecret shop/db  Ready=True SecretSynced
│   └── Secret shop/db
│       ├── Deployment shop/web
│       └── CronJob shop/report
└── ExternalSecret shop/checked  Ready=Unknown  (writes no Secret)
ClusterVaultKV vars  (does not exist)
├── ExternalSecret shop/app  Ready=Unknown
│   └── ConfigMap shop/app
│       └── Pod shop/api
├── ExternalSecret shop/app2  Ready=Unknown
│   └── ConfigMap shop/db  (does not exist)
└── ExternalSecret shop/app3  Ready=Unknown  (writes no ConfigMap)
Pasword shop/pw  (the cluster has no such Kind)
└── ExternalSecret shop/misspelt  Ready=Unknown
    └── Secret shop/misspelt  (does not exist)
`,
		},
		"OneObject": {
			reason: "an object is shown below each of its stores, without its siblings",
			match:  func(r snapshot.Ref) bool { return r.Kind == "ExternalSecret" && r.Name == "checked" },
			want: `
ClusterVaultKV kv  Ready=Unknown
└── ExternalSecret shop/checked  Ready=Unknown  (writes no Secret)
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, "\n"+strings.Join(Text(Of(Build(input(t)), tc.match)), "\n")+"\n"); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWorkloads(t *testing.T) {
	t.Parallel()
	selector := func(name string) *corev1.SecretKeySelector {
		return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
	}
	spec := corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "volume"}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "projected"}}},
			}}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "map-volume"}}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "map-projected"}}},
			}}}},
		},
		InitContainers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "from"}}},
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "map-from"}}},
		}}},
		Containers: []corev1.Container{{Env: []corev1.EnvVar{
			{Name: "literal"}, {ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "map-key"}}}},
			{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: selector("key")}}, {ValueFrom: &corev1.EnvVarSource{SecretKeyRef: selector("volume")}}}}},
	}
	controlled := metav1.ObjectMeta{Name: "web-1", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: new(bool)}}}
	*controlled.OwnerReferences[0].Controller = true
	cases := map[string]struct {
		reason string
		list   client.ObjectList
		want   []Workload
	}{
		"Deployment": {
			reason: "all ways to read a Secret or ConfigMap are found, and each is listed once",
			list:   &appsv1.DeploymentList{Items: []appsv1.Deployment{{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}}},
			want:   []Workload{{Ref: snapshot.Ref{Kind: "Deployment", Name: "web"}, Secrets: []string{"from", "key", "projected", "pull", "volume"}, ConfigMaps: []string{"map-from", "map-key", "map-projected", "map-volume"}}},
		},
		"Pod": {
			reason: "a Pod of a Deployment is omitted, and a Pod without a controller is listed",
			list:   &corev1.PodList{Items: []corev1.Pod{{ObjectMeta: controlled, Spec: spec}, {ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: corev1.PodSpec{ImagePullSecrets: spec.ImagePullSecrets}}}},
			want:   []Workload{{Ref: snapshot.Ref{Kind: "Pod", Name: "own"}, Secrets: []string{"pull"}}},
		},
		"Ingress": {
			reason: "an Ingress reads certificates",
			list:   &networkingv1.IngressList{Items: []networkingv1.Ingress{{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: networkingv1.IngressSpec{TLS: []networkingv1.IngressTLS{{SecretName: "tls"}, {}}}}}},
			want:   []Workload{{Ref: snapshot.Ref{Kind: "Ingress", Name: "web"}, Secrets: []string{"tls"}}},
		},
		"NoSecret": {
			reason: "a workload without Secrets is omitted",
			list:   &corev1.PodList{Items: []corev1.Pod{{}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Workloads(tc.list), cmpopts.IgnoreUnexported(Workload{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRestarts(t *testing.T) {
	t.Parallel()
	in := Input{Snapshot: read(t, `
kind: ExternalSecret
metadata: {name: db}
spec: {storeRef: {kind: ClusterVaultKV, name: kv}, target: {restart: {auto: true}}}
---
kind: ExternalSecret
metadata: {name: listed}
spec: {storeRef: {kind: ClusterVaultKV, name: kv}, target: {restart: {workloads: [{kind: Deployment, name: other}]}}}`)}
	pod := corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}}}}
	deployment := func(name string, p corev1.PodSpec) appsv1.Deployment {
		return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: p}}}
	}
	in.Workloads = Workloads(&appsv1.DeploymentList{Items: []appsv1.Deployment{
		deployment("web", pod), deployment("pull", corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "db"}}}), deployment("other", corev1.PodSpec{}),
	}})
	want := `
ClusterVaultKV kv  (does not exist)
├── ExternalSecret shop/db  Ready=Unknown
│   └── Secret shop/db
│       ├── Deployment shop/web  (restarts when the Secret changes)
│       └── Deployment shop/pull
└── ExternalSecret shop/listed  Ready=Unknown
    └── Secret shop/listed
        └── Deployment shop/other  (restarts when the Secret changes)
`
	if diff := cmp.Diff(want, "\n"+strings.Join(Text(Build(in)), "\n")+"\n"); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
