package migrate

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
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
	r, err := Convert([]Source{{Name: "a.yaml", Content: []byte(template), Template: true}}, Options{Namespace: "default"})
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
