{{- define "library.podDisruptionBudget" -}}
{{- $s := .settings -}}
{{- if and $s.podDisruptionBudget.enabled (gt (int $s.replicaCount) 1) -}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
{{ include "library.metadata" . }}
spec:
  maxUnavailable: {{ $s.podDisruptionBudget.maxUnavailable }}
  # A pod that is not ready does not block the drain of a node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "library.selector" .root | nindent 6 }}
{{- end -}}
{{- end -}}

{{- define "library.networkPolicy" -}}
{{- $s := .settings -}}
{{- $p := $s.networkPolicy -}}
{{- if $p.enabled -}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
{{ include "library.metadata" . }}
spec:
  podSelector:
    matchLabels:
      {{- include "library.selector" .root | nindent 6 }}
  policyTypes: [Ingress{{ if $p.egress }}, Egress{{ end }}]
  {{- if $s.metrics.enabled }}
  ingress:
    - ports: [{port: metrics, protocol: TCP}]
      {{- with $p.metricsFrom }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
  {{- else }}
  ingress: []
  {{- end }}
  {{- with $p.egress }}
  egress:
    - ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "library.metrics" -}}
{{- $m := .settings.metrics -}}
{{- if $m.enabled -}}
---
apiVersion: v1
kind: Service
{{ include "library.metadata" (merge (dict "name" (printf "%s-metrics" .name)) .) }}
spec:
  # Every replica has its own metrics.
  clusterIP: None
  selector:
    {{- include "library.selector" .root | nindent 4 }}
  ports:
    - {name: metrics, port: 8080, targetPort: metrics, protocol: TCP}
{{- if $m.serviceMonitor.enabled }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
{{ include "library.metadata" (merge (dict "labels" $m.serviceMonitor.labels) .) }}
spec:
  selector:
    matchLabels:
      {{- include "library.selector" .root | nindent 6 }}
  namespaceSelector:
    matchNames: [{{ .root.Release.Namespace }}]
  endpoints:
    - port: metrics
      {{- if $m.auth }}
      scheme: https
      tlsConfig:
        {{- if $m.serviceMonitor.tlsConfig }}
        {{- toYaml $m.serviceMonitor.tlsConfig | nindent 8 }}
        {{- else }}
        ca: {secret: {name: {{ $m.tls.secretName }}, key: ca.crt}}
        serverName: {{ .name }}-metrics.{{ .root.Release.Namespace }}.svc
        {{- end }}
      bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
      {{- end }}
      {{- with $m.serviceMonitor.interval }}
      interval: {{ . }}
      {{- end }}
      {{- with $m.serviceMonitor.relabelings }}
      relabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $m.serviceMonitor.metricRelabelings }}
      metricRelabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
{{- else if $m.serviceMonitor.enabled -}}
{{- fail (printf "%s: metrics.serviceMonitor.enabled needs metrics.enabled; set both or none" .root.Chart.Name) -}}
{{- end -}}
{{- end -}}
