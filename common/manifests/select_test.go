package manifests_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// TestSelectByStore lists the ExternalSecrets of one store with a field selector of the API server.
func TestSelectByStore(t *testing.T) {
	for name, spec := range map[string]string{
		"select-this":  "{storeRef: {kind: FakeStore, name: selected}}",
		"select-kind":  "{storeRef: {kind: OtherFakeStore, name: selected}}",
		"select-name":  "{storeRef: {kind: FakeStore, name: another}}",
		"select-store": "{data: [{secretKey: a, remoteRef: {key: a}, sourceRef: {storeRef: {kind: FakeStore, name: selected}}}]}",
	} {
		o := refusal{kind: "ExternalSecret", spec: spec}.object(t, name)
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := api.Delete(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		})
	}
	// The API server needs a moment until it uses a changed CRD.
	controlplane.Eventually(t, func() string {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "direct-secrets.io", Version: "v1alpha1", Kind: "ExternalSecretList"})
		if err := api.List(t.Context(), list, client.MatchingFields{"spec.storeRef.kind": "FakeStore", "spec.storeRef.name": "selected"}); err != nil {
			return err.Error()
		}
		var got []string
		for _, o := range list.Items {
			got = append(got, o.GetName())
		}
		return cmp.Diff([]string{"select-this"}, got)
	})
}
