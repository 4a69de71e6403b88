{{- define "library.podDisruptionBudget" -}}
{{- $s := .settings -}}
{{- if and $s.podDisruptionBudget.enabled (gt (int $s.replicaCount) 1) -}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
{{ include "library.metadata" . }}
spec:
  {{- with $s.podDisruptionBudget.minAvailable }}
  minAvailable: {{ . }}
  {{- else }}
  maxUnavailable: {{ $s.podDisruptionBudget.maxUnavailable }}
  {{- end }}
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
  {{- if or $s.metrics.enabled $s.eventReceiver.enabled }}
  ingress:
    {{- if $s.metrics.enabled }}
    - ports: [{port: metrics, protocol: TCP}]
      {{- with $p.metricsFrom }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
    {{- if $s.eventReceiver.enabled }}
    - ports: [{port: events, protocol: TCP}]
      {{- with $s.eventReceiver.from }}
      from:
        # Standby replicas forward requests.
        - podSelector: {matchLabels: {{ include "library.selector" $.root | fromYaml | toJson }}}
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
  {{- else }}
  ingress: []
  {{- end }}
  {{- with $p.egress }}
  egress:
    - ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
    {{- if $s.eventReceiver.enabled }}
    - ports: [{port: 8082, protocol: TCP}]
      to: [{podSelector: {matchLabels: {{ include "library.selector" $.root | fromYaml | toJson }}}}]
    {{- end }}
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "library.events" -}}
{{- if .settings.eventReceiver.enabled -}}
---
apiVersion: v1
kind: Service
{{ include "library.metadata" (merge (dict "name" (printf "%s-events" .name)) .) }}
spec:
  selector:
    {{- include "library.selector" .root | nindent 4 }}
  ports:
    - {name: events, port: 8082, targetPort: events, protocol: TCP}
{{- end -}}
{{- end -}}

{{- define "library.metrics" -}}
{{- $m := .settings.metrics -}}
{{- $monitor := $m.serviceMonitor -}}
{{- if $m.enabled -}}
---
apiVersion: v1
kind: Service
{{ include "library.metadata" (merge (dict "name" (printf "%s-metrics" .name) "annotations" $m.service.annotations) .) }}
spec:
  {{- with $m.service.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
  {{- end }}
  {{- with $m.service.ipFamilies }}
  ipFamilies: {{ toJson . }}
  {{- end }}
  # Every replica has its own metrics.
  clusterIP: None
  selector:
    {{- include "library.selector" .root | nindent 4 }}
  ports:
    - {name: metrics, port: 8080, targetPort: metrics, protocol: TCP}
{{- if $monitor.enabled }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
{{ include "library.metadata" (merge (dict "labels" $monitor.labels "annotations" $monitor.annotations "namespace" ($monitor.namespace | default .namespace)) .) }}
spec:
  selector:
    matchLabels:
      {{- include "library.selector" .root | nindent 6 }}
  namespaceSelector:
    matchNames: [{{ .namespace }}]
  endpoints:
    - port: metrics
      {{- if $m.auth }}
      scheme: https
      tlsConfig:
        {{- if $monitor.tlsConfig }}
        {{- toYaml $monitor.tlsConfig | nindent 8 }}
        {{- else }}
        ca: {secret: {name: {{ $m.tls.secretName }}, key: ca.crt}}
        serverName: {{ .name }}-metrics.{{ .namespace }}.svc
        {{- end }}
      bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
      {{- end }}
      {{- with $monitor.interval }}
      interval: {{ . }}
      {{- end }}
      {{- with $monitor.scrapeTimeout }}
      scrapeTimeout: {{ . }}
      {{- end }}
      {{- if $monitor.honorLabels }}
      honorLabels: true
      {{- end }}
      {{- with $monitor.relabelings }}
      relabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $monitor.metricRelabelings }}
      metricRelabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
{{- else if $monitor.enabled -}}
{{- fail (printf "%s: metrics.serviceMonitor.enabled needs metrics.enabled; set both or none" .root.Chart.Name) -}}
{{- end -}}
{{- end -}}
