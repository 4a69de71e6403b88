package operator_test

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

// TestOlderCRD removes spec.dryRun from the served schema of PushSecret, as a CRD of a former version has it. The Lease
// must name the field until the CRD has it again, and objects must be served meanwhile.
func TestOlderCRD(t *testing.T) {
	t.Parallel()
	e := testenv.On(t, testenv.StartPlane(t), "older")
	e.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.NS}})
	e.Create(e.Store("store", "main"))
	e.Source("source", map[string]string{"password": "p"})
	c := &testenv.Crowd{Env: e}
	c.Stores()
	c.WaitForLeaseText("provider-fake", `"FakeStore"`)
	wantMissing := func(want string) {
		t.Helper()
		c.Eventually(func() string {
			if got := c.Member("provider-fake").Annotations[presence.MissingFieldsAnnotation]; got != want {
				return fmt.Sprintf("the Lease names the missing fields %q, want %q", got, want)
			}
			return ""
		})
	}
	crds, err := dynamic.NewForConfig(e.Config)
	if err != nil {
		t.Fatal(err)
	}
	crd := crds.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	const path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/dryRun"
	patch := func(op string) {
		t.Helper()
		p := []map[string]any{{"op": op, "path": path, "value": apiextensionsv1.JSONSchemaProps{Type: "boolean"}}}
		raw, err := json.Marshal(p)
		if err == nil {
			_, err = crd.Patch(t.Context(), "pushsecrets.direct-secrets.io", types.JSONPatchType, raw, metav1.PatchOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	patch("remove")
	wantMissing("PushSecret spec.dryRun")
	e.Create(e.PushSecret("db"))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	patch("add")
	wantMissing("")
}
