{{/* All objects of a module. The chart of a module includes this and nothing else. */}}
{{- define "library.module" -}}
{{- $settings := mergeOverwrite (deepCopy .Values.global) (omit .Values "global" "enabled" "library") -}}
{{- $m := dict "root" . "settings" $settings "name" (include "library.name" .) "serviceAccount" (include "library.serviceAccountName" .) -}}
{{- include "library.check" $m -}}
{{- range $part := list "crds" "aggregateRoles" "serviceAccount" "rights" "tokenPolicy" "deployment" "podDisruptionBudget" "networkPolicy" "metrics" }}
{{ include (printf "library.%s" $part) $m }}
{{- end }}
{{- end -}}

{{/* The name of a module's objects. The release's name is cut rather than the module's, which tells modules apart. */}}
{{- define "library.name" -}}
{{- printf "%s-%s" (.Release.Name | trunc (int (sub 54 (len .Chart.Name))) | trimSuffix "-") .Chart.Name -}}
{{- end -}}

{{/* The name of a module's ServiceAccount. */}}
{{- define "library.serviceAccountName" -}}
{{- $own := mergeOverwrite (deepCopy .Values.global.serviceAccount) (deepCopy (.Values.serviceAccount | default dict)) -}}
{{- $own.name | default (ternary (include "library.name" .) "default" $own.create) -}}
{{- end -}}

{{- define "library.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "library.labels" -}}
{{ include "library.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: direct-secrets
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{/* metadata of an object in the namespace of the release. */}}
{{- define "library.metadata" -}}
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "library.labels" .root | nindent 4 }}
{{- end -}}

{{/* What a schema cannot say. */}}
{{- define "library.check" -}}
{{- $s := .settings -}}
{{- if and (gt (int $s.replicas) 1) (not $s.leaderElection.enabled) -}}
{{- fail (printf "%s: replicas is %d, which needs leaderElection.enabled: two that work at the same time would disturb each other" .root.Chart.Name (int $s.replicas)) -}}
{{- end -}}
{{- if and $s.extraCA.configMap $s.extraCA.secret -}}
{{- fail (printf "%s: extraCA.configMap and extraCA.secret are both set; choose one" .root.Chart.Name) -}}
{{- end -}}
{{- if $s.scope.namespaces -}}
{{- range $s.serviceAccountTokens.namespaces -}}
{{- if not (has . $s.scope.namespaces) -}}
{{- fail (printf "%s: serviceAccountTokens.namespaces has %q, which scope.namespaces does not have" $.root.Chart.Name .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
