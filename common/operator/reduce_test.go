package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestReduce checks what the cache keeps of objects.
func TestReduce(t *testing.T) {
	meta := metav1.ObjectMeta{
		Name: "a", Labels: map[string]string{"env": "prod"},
		Annotations: map[string]string{"note": "large"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}
	reduced, annotated := *meta.DeepCopy(), *meta.DeepCopy()
	reduced.ManagedFields, reduced.Annotations, annotated.ManagedFields = nil, nil, nil
	spec := fakev1.FakeStoreSpec{Backend: "main"}
	cases := map[string]struct {
		reason    string
		obj, want client.Object
	}{
		"Store":      {"No controller reads its annotations.", &fakev1.FakeStore{ObjectMeta: meta, Spec: spec}, &fakev1.FakeStore{ObjectMeta: reduced, Spec: spec}},
		"Generator":  {"No controller reads its annotations.", &fakev1.FakeGenerator{ObjectMeta: meta}, &fakev1.FakeGenerator{ObjectMeta: reduced}},
		"PushSecret": {"An annotation requests a refresh.", &v1alpha1.PushSecret{ObjectMeta: meta}, &v1alpha1.PushSecret{ObjectMeta: annotated}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := reduce(tc.obj.DeepCopyObject())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
