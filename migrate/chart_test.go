package migrate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// template is one of a chart: a store and two objects that read it.
const template = `{{- if .Values.secrets.enabled }}
apiVersion: external-secrets.io/v1beta1
kind: SecretStore
metadata:
  name: {{ include "shop.fullname" . }}
  namespace: {{ .Release.Namespace }}
  labels:
    {{- include "shop.labels" . | nindent 4 }}
spec:
  provider:
    vault:
      server: {{ .Values.vault.server | quote }}
      path: secret
      auth:
        kubernetes:
          mountPath: {{ .Values.vault.mount }}
          role: shop
          serviceAccountRef:
            name: {{ include "shop.serviceAccountName" . }}
---
apiVersion: external-secrets.io/v1beta1
kind: ExternalSecret
metadata:
  name: {{ include "shop.fullname" . }}-db
  namespace: {{ .Release.Namespace }}
spec:
  refreshInterval: {{ .Values.refreshInterval }}
  secretStoreRef:
    name: {{ include "shop.fullname" . }}
    kind: SecretStore
  target:
    name: db
    template:
      data:
        url: "postgres://{{ "{{ .user }}" }}@{{ .Values.host }}"
      {{- with .Values.labels }}
      metadata:
        labels:
          {{- toYaml . | nindent 10 }}
      {{- end }}
  data:
    {{- range .Values.keys }}
    - secretKey: {{ .name }}
      remoteRef:
        key: {{ .key }}
        {{- if .property }}
        property: {{ .property }}
        {{- end }}
        conversionStrategy: Default # as ever
    {{- end }}
{{- end }}
`

func TestTemplates(t *testing.T) {
	t.Parallel()
	r, err := Convert([]Source{{Name: "a.yaml", Content: []byte(template), Chart: "shop"}}, Options{Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"apiVersion: external-secrets.io/v1beta1\nkind: SecretStore", "apiVersion: vault.direct-secrets.io/v1alpha1\nkind: VaultKV",
		"external-secrets.io/v1beta1", "direct-secrets.io/v1alpha1", "secretStoreRef", "storeRef", "    kind: SecretStore", "    kind: VaultKV",
		"        conversionStrategy: Default # as ever\n", "        # as ever\n",
		"  provider:\n    vault:\n", "", "      server: {{ .Values.vault.server | quote }}\n      path: secret\n      auth:\n        kubernetes:\n          mountPath: {{ .Values.vault.mount }}\n          role: shop\n          serviceAccountRef:\n            name:",
		"  server: {{ .Values.vault.server | quote }}\n  path: secret\n  auth:\n    kubernetes:\n      mountPath: {{ .Values.vault.mount }}\n      role: shop\n      serviceAccountRef:\n        name:",
	).Replace(template)
	if diff := gocmp.Diff(want, string(r.Files[0].Content)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if v := r.Report.Verdict(); v != Exact {
		t.Errorf("the verdict is %s:\n%s", v, strings.Join(r.Report.Text(), "\n"))
	}
}

const chartValues = `secrets: {enabled: true}
vault: {server: "https://vault:8200", mount: kubernetes}
refreshInterval: 1h
host: db.example.com
labels: {team: shop}
keys:
- {name: user, key: shop/db, property: user}
- {name: password, key: shop/password}
`

const helpers = `{{- define "shop.fullname" }}{{ .Release.Name }}-shop{{ end }}
{{- define "shop.serviceAccountName" }}reader{{ end }}
{{- define "shop.labels" -}}
app: shop
chart: {{ .Chart.Name }}
{{- end }}
`

// render returns what a chart with a template renders.
func render(t *testing.T, template, values string) []byte {
	t.Helper()
	var files []*archive.BufferedFile
	for name, content := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n", "values.yaml": values, "templates/_helpers.tpl": helpers, "templates/secrets.yaml": template,
	} {
		files = append(files, &archive.BufferedFile{Name: name, Data: []byte(content)})
	}
	c, err := chart.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(c, nil, common.ReleaseOptions{Name: "a", Namespace: "shop"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, name := range slices.Sorted(maps.Keys(out)) {
		documents = append(documents, out[name])
	}
	return []byte(strings.Join(documents, "\n---\n"))
}

// TestRendered holds that a converted chart renders what a conversion of the rendered chart has, with several values.
func TestRendered(t *testing.T) {
	t.Parallel()
	r, err := Convert([]Source{{Name: "a.yaml", Content: []byte(template), Chart: "shop"}}, Options{Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range map[string]string{
		"All": chartValues, "Disabled": strings.Replace(chartValues, "enabled: true", "enabled: false", 1), "NoLabels": strings.Replace(chartValues, "labels: {team: shop}", "labels: {}", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := render(t, template, values), render(t, string(r.Files[0].Content), values)
			differences, err := Compare(before, after, Options{Namespace: "shop"})
			if err != nil || len(differences) > 0 {
				t.Errorf("error %v\n%s\n%s", err, strings.Join(differences, "\n"), after)
			}
			if objects, err := objectsOf(after); err != nil || (len(objects) == 2) == (name == "Disabled") {
				t.Errorf("%d objects, error %v", len(objects), err)
			}
		})
	}
}
