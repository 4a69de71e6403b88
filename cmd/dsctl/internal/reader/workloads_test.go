package reader

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TestTreeTargets reads which Secrets and ConfigMaps exist. ConfigMaps are listed only if an ExternalSecret writes one.
func TestTreeTargets(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "env"}
	cases := map[string]struct {
		reason  string
		kind    v1alpha1.TargetKind
		denied  string
		objects []client.Object
		want    map[v1alpha1.TargetKind]bool
		refused []string
	}{
		"Secret":           {reason: "nothing needs the permission to list ConfigMaps", denied: "ConfigMapList", objects: []client.Object{&corev1.Secret{ObjectMeta: meta}}, want: map[v1alpha1.TargetKind]bool{"Secret": true}},
		"ConfigMap":        {reason: "a ConfigMap of the name is no Secret", kind: "ConfigMap", objects: []client.Object{&corev1.ConfigMap{ObjectMeta: meta}}, want: map[v1alpha1.TargetKind]bool{"Secret": false, "ConfigMap": true}},
		"SecretOfTheName":  {reason: "a Secret of the name is no ConfigMap", kind: "ConfigMap", objects: []client.Object{&corev1.Secret{ObjectMeta: meta}}, want: map[v1alpha1.TargetKind]bool{"Secret": true, "ConfigMap": false}},
		"ConfigMapsDenied": {reason: "without the permission it is unknown", kind: "ConfigMap", denied: "ConfigMapList", want: map[v1alpha1.TargetKind]bool{"Secret": false}, refused: []string{"configmaps"}},
		"SecretsDenied":    {reason: "without the permission for Secrets, ConfigMaps are read", kind: "ConfigMap", denied: "SecretList", objects: []client.Object{&corev1.ConfigMap{ObjectMeta: meta}}, want: map[v1alpha1.TargetKind]bool{"ConfigMap": true}, refused: []string{"secrets"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(tc.objects...).Build(), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if m, ok := list.(*metav1.PartialObjectMetadataList); ok && m.Kind == tc.denied {
						return kerrors.NewForbidden(schema.GroupResource{}, "", nil)
					}
					return c.List(ctx, list, opts...)
				},
			})
			es := &v1alpha1.ExternalSecret{Spec: v1alpha1.ExternalSecretSpec{Target: v1alpha1.Target{Kind: tc.kind}}}
			s := &snapshot.Snapshot{Namespace: "shop", Objects: []snapshot.Object{{ExternalSecret: es}}}
			in, err := (&Reader{Client: c, Progress: func(string) {}}).Tree(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			got := map[v1alpha1.TargetKind]bool{}
			for kind, exists := range in.Exists {
				got[kind] = exists("shop", "env")
			}
			var refused []string
			for _, r := range s.Refused {
				refused = append(refused, r.Resource)
			}
			if diff := cmp.Diff(tc.want, got) + cmp.Diff(tc.refused, refused); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
