package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/offline"
	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/reader"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// TestDiffConfigMap compares with the ConfigMap, and not with a Secret of the same name.
func TestDiffConfigMap(t *testing.T) {
	t.Parallel()
	live := func(binary map[string][]byte) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "env", Annotations: map[string]string{inspect.MarkKey("app"): `{"name":"app","uid":"1"}`},
				ManagedFields: []metav1.ManagedFieldsEntry{{
					Manager: inspect.FieldManager("app"), Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
					FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:old":{},"f:user":{}},"f:metadata":{"f:annotations":{"f:` + inspect.MarkKey("app") + `":{}},"f:labels":{"f:team":{}}}}`),
				}},
				Labels: map[string]string{"team": "shop"},
			},
			Data: map[string]string{"old": "x", "user": "before"}, BinaryData: binary,
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "env"}, Data: map[string][]byte{"user": []byte("shop")}}
	cases := map[string]struct {
		reason   string
		manifest string
		values   string
		objects  []client.Object
		want     []string
		err      string
	}{
		"Create": {
			reason: "a Secret of the name is no ConfigMap", values: values, objects: []client.Object{secret},
			want: []string{"ExternalSecret shop/app, ConfigMap shop/env: Create", "  + data user", "  + labels team"},
		},
		"Values": {
			reason: "values are compared", values: values, objects: []client.Object{live(nil), secret},
			want: []string{"ExternalSecret shop/app, ConfigMap shop/env: Update", "  ~ data user", "  - data old"},
		},
		"Names": {
			reason: "without values the metadata have the keys", objects: []client.Object{live(nil)},
			want: []string{"ExternalSecret shop/app, ConfigMap shop/env: Update", "  - data old", "  note: values are not compared: use --values"},
		},
		"NamesOfNone": {
			reason: "without values a ConfigMap can be absent",
			want:   []string{"ExternalSecret shop/app, ConfigMap shop/env: Create", "  + data user", "  + labels team"},
		},
		"BinaryData": {
			reason: "the operator writes no such ConfigMap", values: values, objects: []client.Object{live(map[string][]byte{"a": {255}})},
			err: `ConfigMap "env" has binaryData, which is not supported`,
		},
		"Type": {
			reason: "the API server refuses the type of a ConfigMap", manifest: strings.Replace(configMap, "template: {", "template: {type: Opaque, ", 1),
			err: "a ConfigMap has no type",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			es := &v1alpha1.ExternalSecret{}
			manifest := configMap
			if tc.manifest != "" {
				manifest = tc.manifest
			}
			if err := yaml.UnmarshalStrict([]byte(manifest), es); err != nil {
				t.Fatal(err)
			}
			var remote *inspect.Remote
			if tc.values != "" {
				r, err := offline.ParseValues([]byte(tc.values))
				if err != nil {
					t.Fatal(err)
				}
				remote = &r
			}
			s := &session{Reader: &reader.Reader{Client: fake.NewClientBuilder().WithReturnManagedFields().WithObjects(tc.objects...).Build()}}
			d, err := compare(t.Context(), s, es, remote)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, []string(format(d))); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
