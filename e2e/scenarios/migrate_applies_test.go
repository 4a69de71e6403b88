package scenarios

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// TestMigratedApplies creates each object in the corpus of migrate that was converted, without storing it. The API server
// must accept it, and know every field.
func TestMigratedApplies(t *testing.T) {
	t.Parallel()
	admin := client.NewDryRunClient(client.WithFieldValidation(shared.Admin, metav1.FieldValidationStrict))
	created := 0
	create := func(path string, o *unstructured.Unstructured) {
		if group := o.GroupVersionKind().Group; group != v1alpha1.Group && !strings.HasSuffix(group, "."+v1alpha1.Group) {
			return
		}
		namespaced, err := shared.Admin.IsObjectNamespaced(o)
		must(t, err)
		if namespaced {
			o.SetNamespace("default")
		}
		if err := admin.Create(t.Context(), o); err != nil {
			t.Errorf("%s: %s %s: %v", path, o.GetKind(), o.GetName(), err)
		}
		created++
	}
	must(t, filepath.WalkDir("../../migrate/testdata/corpus", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || (!strings.HasSuffix(path, ".out.yaml") && !strings.HasSuffix(path, ".out.json")) {
			return err
		}
		raw, err := os.ReadFile(path)
		must(t, err)
		for _, doc := range stack.Documents(raw) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(doc, &o.Object); err != nil || o.Object == nil {
				continue // The corpus has texts that are not YAML; they stay as they are.
			}
			if o.IsList() {
				must(t, o.EachListItem(func(item runtime.Object) error {
					create(path, item.(*unstructured.Unstructured))
					return nil
				}))
				continue
			}
			create(path, o)
		}
		return nil
	}))
	t.Logf("%d objects were accepted", created)
	if created < 150 {
		t.Errorf("only %d objects were converted", created)
	}
}
