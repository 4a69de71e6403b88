package charts

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestChartMetadata checks what Artifact Hub shows of each chart: its images and CRDs are those that the chart renders. See
// https://artifacthub.io/docs/topics/annotations/helm.
func TestChartMetadata(t *testing.T) {
	t.Parallel()
	type image struct{ Name, Image string }
	type crd struct{ Kind, Version, Name, DisplayName, Description string }
	for _, chart := range append(slices.Clone(modules), "crds", umbrella) {
		var meta struct {
			Icon        string
			Keywords    []string
			Maintainers []struct{ Name, URL string }
			Annotations map[string]string
		}
		must(t, yaml.Unmarshal([]byte(read(t, filepath.Join(chart, "Chart.yaml"))), &meta))
		if !strings.HasPrefix(meta.Icon, "https://") || len(meta.Keywords) == 0 || len(meta.Maintainers) == 0 || meta.Annotations["artifacthub.io/license"] != "Apache-2.0" {
			t.Errorf("%s: the icon, the keywords, the maintainers or the license are missing: %+v", chart, meta)
		}
		var wantImages, images []image
		var wantCRDs, crds []crd
		must(t, yaml.Unmarshal([]byte(meta.Annotations["artifacthub.io/images"]), &images))
		must(t, yaml.Unmarshal([]byte(meta.Annotations["artifacthub.io/crds"]), &crds))
		values := map[string]any(nil)
		if chart == umbrella {
			values = enable(modules)
		}
		for _, o := range render(t, chart, values) {
			switch o.GetKind() {
			case "Deployment":
				c := decode[appsv1.Deployment](t, o).Spec.Template.Spec.Containers[0]
				wantImages = append(wantImages, image{Name: c.Name, Image: c.Image})
			case "CustomResourceDefinition":
				spec := decode[apiextensionsv1.CustomResourceDefinition](t, o).Spec
				wantCRDs = append(wantCRDs, crd{Kind: spec.Names.Kind, Version: spec.Versions[0].Name, Name: o.GetName(), DisplayName: spec.Names.Kind})
			}
		}
		for i := range crds {
			if crds[i].Description == "" {
				t.Errorf("%s: %s has no description", chart, crds[i].Name)
			}
			crds[i].Description = ""
		}
		byName := func(a, b crd) int { return strings.Compare(a.Name, b.Name) }
		slices.SortFunc(crds, byName)
		slices.SortFunc(wantCRDs, byName)
		if diff := cmp.Diff(wantCRDs, crds); diff != "" {
			t.Errorf("%s: the annotation with CRDs: -want, +got:\n%s", chart, diff)
		}
		byImage := func(a, b image) int { return strings.Compare(a.Name, b.Name) }
		slices.SortFunc(images, byImage)
		slices.SortFunc(wantImages, byImage)
		if diff := cmp.Diff(wantImages, images); diff != "" {
			t.Errorf("%s: the annotation with images: -want, +got:\n%s", chart, diff)
		}
	}
}
