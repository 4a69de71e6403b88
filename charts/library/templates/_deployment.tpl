{{- define "library.deployment" -}}
{{- $s := .settings -}}
---
apiVersion: apps/v1
kind: Deployment
{{ include "library.metadata" (merge (dict "annotations" $s.deploymentAnnotations) .) }}
spec:
  replicas: {{ int $s.replicaCount }}
  revisionHistoryLimit: {{ int $s.revisionHistoryLimit }}
  selector:
    matchLabels:
      {{- include "library.selector" .root | nindent 6 }}
  strategy:
    {{- if $s.strategy }}
    {{- toYaml $s.strategy | nindent 4 }}
    {{- else if $s.leaderElection.enabled }}
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
    {{- else }}
    # Without leader election two would work at the same time.
    type: Recreate
    {{- end }}
  template:
    metadata:
      # No versions: a chart that changes nothing in the pods does not restart them.
      labels:
        {{- $own := merge (include "library.selector" .root | fromYaml) (dict "app.kubernetes.io/part-of" "direct-secrets") }}
        {{- toYaml (merge $own $s.podLabels $s.commonLabels) | nindent 8 }}
      annotations:
        kubectl.kubernetes.io/default-container: {{ .root.Chart.Name }}
        {{- with $s.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ .serviceAccount }}
      automountServiceAccountToken: {{ $s.serviceAccount.automount }}
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ int $s.terminationGracePeriodSeconds }}
      {{- with $s.podSecurityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if $s.hostNetwork }}
      hostNetwork: true
      {{- end }}
      {{- if not $s.hostUsers }}
      hostUsers: false
      {{- end }}
      {{- with $s.dnsPolicy | default (ternary "ClusterFirstWithHostNet" "" $s.hostNetwork) }}
      dnsPolicy: {{ . }}
      {{- end }}
      {{- with $s.dnsConfig }}
      dnsConfig:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $s.hostAliases }}
      hostAliases:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $s.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $s.priorityClassName }}
      priorityClassName: {{ . | quote }}
      {{- end }}
      {{- with $s.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $s.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $s.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $s.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- range . }}
        - {{ toYaml (merge (dict) . (dict "labelSelector" (dict "matchLabels" (include "library.selector" $.root | fromYaml)))) | nindent 10 | trim }}
        {{- end }}
      {{- end }}
      containers:
        - name: {{ .root.Chart.Name }}
          image: {{ include "library.image" . }}
          imagePullPolicy: {{ $s.image.pullPolicy }}
          args:
            {{- include "library.args" . | trim | nindent 12 }}
          {{- with include "library.env" . | trim }}
          env:
            {{- . | nindent 12 }}
          {{- end }}
          ports:
            {{- if $s.metrics.enabled }}
            - {name: metrics, containerPort: 8080}
            {{- end }}
            - {name: probes, containerPort: 8081}
            {{- if $s.eventReceiver.enabled }}
            - {name: events, containerPort: 8082}
            {{- end }}
          livenessProbe:
            httpGet: {path: /healthz, port: probes}
            periodSeconds: 20
            timeoutSeconds: 5
          readinessProbe:
            httpGet: {path: /readyz, port: probes}
            periodSeconds: 5
            timeoutSeconds: 5
          resources:
            {{- include "library.resources" . | trim | nindent 12 }}
          {{- with $s.securityContext }}
          securityContext:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with include "library.volumeMounts" . | trim }}
          volumeMounts:
            {{- . | nindent 12 }}
          {{- end }}
      {{- with include "library.volumes" . | trim }}
      volumes:
        {{- . | nindent 8 }}
      {{- end }}
      {{- with $s.podSpecExtra }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
{{- end -}}

{{- define "library.image" -}}
{{- $i := .settings.image -}}
{{- $name := printf "%s/%s" $i.registry $i.repository -}}
{{- if $i.digest -}}
{{- printf "%s@%s" $name $i.digest | quote -}}
{{- else -}}
{{- printf "%s:%s" $name ($i.tag | default (printf "%s%s" .root.Chart.AppVersion (and $i.fips "-fips" | default ""))) | quote -}}
{{- end -}}
{{- end -}}

{{/* Every flag is set, so that the Deployment shows all settings. */}}
{{- define "library.args" -}}
{{- $s := .settings -}}
{{- range $flag := list
      (printf "leader-elect=%t" $s.leaderElection.enabled)
      (printf "leader-election-namespace=%s" .namespace)
      (printf "leader-election-id=%s.%s.direct-secrets.io" .root.Release.Name .root.Chart.Name)
      (printf "leader-election-lease-duration=%s" $s.leaderElection.leaseDuration)
      (printf "leader-election-renew-deadline=%s" $s.leaderElection.renewDeadline)
      (printf "leader-election-retry-period=%s" $s.leaderElection.retryPeriod)
      (printf "presence-namespace=%s" (include "library.presenceNamespace" .))
      (printf "namespaces=%s" (join "," $s.scope.namespaces))
      (printf "controller-class=%s" $s.controllerClass)
      (printf "concurrency=%d" (int $s.concurrency))
      (printf "provider-timeout=%s" $s.providerTimeout)
      (printf "default-secret-cleanup-policy=%s" $s.defaultSecretCleanupPolicy)
      (printf "ambient-credentials=%s" $s.ambientCredentials)
      (printf "allow-plain-http=%t" $s.allowPlainHTTP)
      (printf "no-remote-changes=%t" (eq (toString $s.remoteChanges) "false"))
      (printf "configmap-targets=%t" $s.configMapTargets.enabled)
      (printf "workload-restarts=%t" $s.workloadRestarts.enabled)
      (printf "log-level=%s" $s.logLevel)
      (printf "log-format=%s" $s.logFormat)
      (printf "audit-log=%t" $s.auditLog)
      (printf "metrics-bind-address=%s" (ternary ":8080" "0" $s.metrics.enabled))
      (printf "metrics-per-object=%t" $s.metrics.perObject)
      (printf "metrics-auth=%t" $s.metrics.auth)
      (printf "metrics-cert-dir=%s" (ternary "/etc/direct-secrets/metrics" "" (ne $s.metrics.tls.secretName "")))
      "health-probe-bind-address=:8081"
      "pprof-bind-address=0"
      (printf "event-receiver-bind-address=%s" (ternary ":8082" "0" $s.eventReceiver.enabled))
      (printf "event-receiver-cert-dir=%s" (ternary "/etc/direct-secrets/events" "" (include "library.eventsTLS" . | eq "true"))) }}
- {{ printf "--%s" $flag | quote }}
{{- end }}
{{- range $module, $kinds := $s.moduleKinds }}
- {{ printf "--module=%s=%s" $module (join "," $kinds) | quote }}
{{- end }}
{{- range $s.extraArgs }}
- {{ quote . }}
{{- end }}
{{- end -}}

{{/* Whether events are received over HTTPS: true or false. */}}
{{- define "library.eventsTLS" -}}
{{- with .settings.eventReceiver }}{{ and .enabled (ne .tls.secretName "") }}{{ end -}}
{{- end -}}

{{- define "library.env" -}}
{{- $s := .settings -}}
{{- with include "library.memoryLimit" . }}
- {name: GOMEMLIMIT, value: {{ . }}}
{{- end }}
{{- if or $s.proxy.http $s.proxy.https }}
{{- with $s.proxy.http }}
- {name: HTTP_PROXY, value: {{ quote . }}}
{{- end }}
{{- with $s.proxy.https }}
- {name: HTTPS_PROXY, value: {{ quote . }}}
{{- end }}
{{- /* The kubelet replaces the variable by the address of the API server. */}}
- {name: NO_PROXY, value: {{ join "," (concat (list "$(KUBERNETES_SERVICE_HOST)" ".svc" ".cluster.local") $s.proxy.noProxy) | quote }}}
{{- end }}
{{- if $s.eventReceiver.enabled }}
{{- /* A standby replica forwards requests to the leader at this address. */}}
- {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
{{- end }}
{{- if or $s.extraCA.configMap $s.extraCA.secret }}
- {name: SSL_CERT_DIR, value: "/etc/ssl/certs:/etc/direct-secrets/ca"}
{{- end }}
{{- with $s.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Omits empty values: null cannot remove a default, because each chart sets it again. */}}
{{- define "library.resources" -}}
{{- $out := dict -}}
{{- range $part, $of := .settings.resources -}}
{{- if kindIs "map" $of -}}
{{- $kept := dict -}}
{{- range $name, $quantity := $of }}{{ if $quantity }}{{ $_ := set $kept $name $quantity }}{{ end }}{{ end -}}
{{- $of = $kept -}}
{{- end -}}
{{- if $of }}{{ $_ := set $out $part $of }}{{ end -}}
{{- end -}}
{{- toYaml $out -}}
{{- end -}}

{{/* Nine tenths of limits.memory in MiB, if that is in Mi or Gi. */}}
{{- define "library.memoryLimit" -}}
{{- $limit := toString (dig "limits" "memory" "" .settings.resources) -}}
{{- if regexMatch "^[0-9]+(Mi|Gi)$" $limit -}}
{{- $mi := int (regexFind "^[0-9]+" $limit) -}}
{{- if hasSuffix "Gi" $limit }}{{ $mi = mul $mi 1024 }}{{ end -}}
{{- printf "%dMiB" (div (mul $mi 9) 10) -}}
{{- end -}}
{{- end -}}

{{- define "library.volumeMounts" -}}
{{- $s := .settings -}}
{{- if or $s.extraCA.configMap $s.extraCA.secret }}
- {name: direct-secrets-ca, mountPath: /etc/direct-secrets/ca, readOnly: true}
{{- end }}
{{- if $s.metrics.tls.secretName }}
- {name: direct-secrets-metrics, mountPath: /etc/direct-secrets/metrics, readOnly: true}
{{- end }}
{{- if include "library.eventsTLS" . | eq "true" }}
- {name: direct-secrets-events, mountPath: /etc/direct-secrets/events, readOnly: true}
{{- end }}
{{- with $s.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "library.volumes" -}}
{{- $ca := .settings.extraCA -}}
{{- if or $ca.configMap $ca.secret }}
- name: direct-secrets-ca
  {{ ternary "configMap" "secret" (ne $ca.configMap "") }}:
    {{ ternary "name" "secretName" (ne $ca.configMap "") }}: {{ $ca.configMap | default $ca.secret }}
    {{- with $ca.key }}
    items: [{key: {{ quote . }}, path: ca.crt}]
    {{- end }}
{{- end }}
{{- with .settings.metrics.tls.secretName }}
- name: direct-secrets-metrics
  secret:
    secretName: {{ . }}
    items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
{{- end }}
{{- if include "library.eventsTLS" . | eq "true" }}
- name: direct-secrets-events
  secret:
    secretName: {{ .settings.eventReceiver.tls.secretName }}
    items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
{{- end }}
{{- with .settings.volumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
