package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TestTemplateOfTarget checks which templates an object can read that has the name of the target.
func TestTemplateOfTarget(t *testing.T) {
	t.Parallel()
	source := &v1alpha1.TemplateSource{Name: "own", Items: []v1alpha1.TemplateSourceItem{{Key: "k"}}}
	secret, configMap := v1alpha1.TemplateFrom{Secret: source}, v1alpha1.TemplateFrom{ConfigMap: source}
	cases := map[string]struct {
		reason string
		kind   v1alpha1.TargetKind
		from   v1alpha1.TemplateFrom
		want   string
	}{
		"SecretOfSecret":       {"each write would cause another one", v1alpha1.TargetSecret, secret, `spec.target.template.templateFrom[0]: secret.name: "own" is the Secret that this ExternalSecret writes; keep the templates in another`},
		"ConfigMapOfSecret":    {"they are two objects", v1alpha1.TargetSecret, configMap, ""},
		"SecretOfConfigMap":    {"they are two objects", v1alpha1.TargetConfigMap, secret, ""},
		"ConfigMapOfConfigMap": {"each write would cause another one", v1alpha1.TargetConfigMap, configMap, `spec.target.template.templateFrom[0]: configMap.name: "own" is the ConfigMap that this ExternalSecret writes; keep the templates in another`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := NewPlan(external(func(s *v1alpha1.ExternalSecretSpec) {
				s.Target = v1alpha1.Target{Kind: tc.kind, Name: "own", Template: &v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{tc.from}}}
			}))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
