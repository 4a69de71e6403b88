package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestRender(t *testing.T) {
	t.Parallel()
	remote := Remote{
		Secrets: func(store v1alpha1.StoreRef) map[string]provider.Value {
			if store.Name == "empty" {
				return nil
			}
			return map[string]provider.Value{
				"shop/db":    {Data: []byte(`{"user":"shop","password":"hunter2"}`)},
				"shop/token": {Data: []byte("t0ken"), Metadata: map[string]string{"team": "shop"}},
				"other":      {Data: []byte("x")},
			}
		},
		Generated: func(g v1alpha1.StoreRef) map[string][]byte {
			if g.Name == "pw" {
				return map[string][]byte{"password": []byte("made")}
			}
			return nil
		},
		Templates: func(kind, name string) map[string]string {
			return map[string]string{"url": kind + "/" + name + " {{ .user }}"}
		},
	}
	type want struct {
		Data   map[string]string
		Labels map[string]string
		Absent bool
		Err    string
	}
	cases := map[string]struct {
		reason string
		spec   string
		want   want
	}{
		"Data": {
			reason: "a property of JSON and a whole secret are rendered",
			spec: `
storeRef: {kind: VaultKV, name: kv}
data:
- {secretKey: password, remoteRef: {key: shop/db, property: password}}
- {secretKey: token, remoteRef: {key: shop/token}}`,
			want: want{Data: map[string]string{"password": "hunter2", "token": "t0ken"}},
		},
		"DataFrom": {
			reason: "all keys of a secret, the results of a search and the values of a generator are rendered",
			spec: `
storeRef: {kind: VaultKV, name: kv}
dataFrom:
- extract: {key: shop/db}
- {find: {path: shop/, tags: {team: shop}}, rewrite: [{regexp: {source: "shop/", target: ""}}]}
- {sourceRef: {generatorRef: {kind: Password, name: pw}}}`,
			want: want{Data: map[string]string{"user": "shop", "password": "made", "token": "t0ken"}},
		},
		"Template": {
			reason: "templates are rendered, including those of a ConfigMap",
			spec: `
storeRef: {kind: VaultKV, name: kv}
target:
  template:
    metadata: {labels: {team: "{{ .user }}"}}
    data: {dsn: "{{ .user }}:{{ .password }}"}
    templateFrom: [{configMap: {name: app, items: [{key: url}]}}]
dataFrom: [{extract: {key: shop/db}}]`,
			want: want{Data: map[string]string{"dsn": "shop:hunter2", "url": "ConfigMap/app shop"}, Labels: map[string]string{"team": "shop"}},
		},
		"Absent": {
			reason: "the error for a missing value names the key and the store",
			spec:   `{storeRef: {kind: VaultKV, name: empty}, data: [{secretKey: a, remoteRef: {key: shop/db}}]}`,
			want:   want{Absent: true, Err: `"shop/db" in VaultKV "empty": there is no value for this key`},
		},
		"Optional": {
			reason: "a missing optional value is not an error",
			spec:   `{storeRef: {kind: VaultKV, name: kv}, data: [{secretKey: a, optional: true, remoteRef: {key: absent}}, {secretKey: b, remoteRef: {key: other}}]}`,
			want:   want{Data: map[string]string{"b": "x"}},
		},
		"Deleted": {
			reason: "with deletionPolicy Delete there is no Secret without values",
			spec:   `{storeRef: {kind: VaultKV, name: empty}, target: {deletionPolicy: Delete}, data: [{secretKey: a, remoteRef: {key: shop/db}}]}`,
			want:   want{Absent: true},
		},
		"NoGenerator": {
			reason: "the error names a generator without values",
			spec:   `{dataFrom: [{sourceRef: {generatorRef: {kind: Password, name: other}}}]}`,
			want:   want{Absent: true, Err: `spec.dataFrom[0] in Password "other": there are no values for this generator`},
		},
		"ConfigMap": {
			reason: "a ConfigMap is rendered as a Secret",
			spec:   `{storeRef: {kind: VaultKV, name: kv}, target: {kind: ConfigMap}, data: [{secretKey: b, remoteRef: {key: other}}]}`,
			want:   want{Data: map[string]string{"b": "x"}},
		},
		"ConfigMapGenerated": {
			reason: "generated values are not written to a ConfigMap",
			spec:   `{target: {kind: ConfigMap}, dataFrom: [{sourceRef: {generatorRef: {kind: Password, name: pw}}}]}`,
			want:   want{Absent: true, Err: "spec.dataFrom[0].sourceRef.generatorRef: generated values are secret; write them to a Secret"},
		},
		"InvalidSpec": {
			reason: "an invalid spec is refused",
			spec:   `{storeRef: {kind: VaultKV, name: kv}}`,
			want:   want{Absent: true, Err: "spec: nothing to read; add an entry to data or dataFrom"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			es := &v1alpha1.ExternalSecret{}
			es.Name = "db"
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &es.Spec); err != nil {
				t.Fatal(err)
			}
			s, err := Render(es, remote)
			got := want{Absent: s == nil}
			if err != nil {
				got.Err = err.Error()
			}
			if s != nil {
				got.Labels = s.Labels
				got.Data = map[string]string{}
				for k, v := range s.Data {
					got.Data[k] = string(v)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
