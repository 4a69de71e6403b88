{{/* All objects of a module. The chart of a module includes only this. */}}
{{- define "library.module" -}}
{{- $settings := mergeOverwrite (deepCopy .Values.global) (omit .Values "global" "enabled" "library") -}}
{{- $m := dict "root" . "settings" $settings "name" (include "library.name" .) "namespace" (include "library.namespace" .) "serviceAccount" (include "library.serviceAccountName" .) -}}
{{- include "library.check" $m -}}
{{- range $part := list "crds" "aggregateRoles" "serviceAccount" "rights" "tokenPolicy" "deployment" "podDisruptionBudget" "networkPolicy" "metrics" "events" }}
{{ include (printf "library.%s" $part) $m }}
{{- end }}
{{- end -}}

{{/* The name of a module's objects. If it is too long, the release's name is cut, not the module's, which distinguishes modules. */}}
{{- define "library.name" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- .Values.fullnameOverride | default (printf "%s-%s" (.Release.Name | trunc (int (max 1 (sub 54 (len $name)))) | trimSuffix "-") $name) -}}
{{- end -}}

{{/* The name of a module's ServiceAccount. */}}
{{- define "library.serviceAccountName" -}}
{{- $own := mergeOverwrite (deepCopy .Values.global.serviceAccount) (deepCopy (.Values.serviceAccount | default dict)) -}}
{{- $own.name | default (ternary (include "library.name" .) "default" $own.create) -}}
{{- end -}}

{{- define "library.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* The chart's own labels take precedence over commonLabels, because selectors and the commands of the docs use them. */}}
{{- define "library.labels" -}}
{{- $own := include "library.ownLabels" . | fromYaml -}}
{{- toYaml (merge $own (.Values.commonLabels | default dict) (.Values.global.commonLabels | default dict)) -}}
{{- end -}}

{{- define "library.ownLabels" -}}
{{ include "library.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: direct-secrets
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{/* The namespace of a chart's objects. */}}
{{- define "library.namespace" -}}
{{- ternary .Values.namespaceOverride .Values.global.namespaceOverride (hasKey .Values "namespaceOverride") | default .Release.Namespace -}}
{{- end -}}

{{/*
The namespace of the presence Leases. It does not follow the namespace of one module: modules of a release that do not see each
other would report each other's objects.
*/}}
{{- define "library.presenceNamespace" -}}
{{- .settings.presenceNamespace | default .root.Values.global.namespaceOverride | default .root.Release.Namespace -}}
{{- end -}}

{{/*
The metadata of an object, with further labels and annotations if the dict has any. The namespace is empty for objects of
the cluster.
*/}}
{{- define "library.metadata" -}}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- toYaml (merge (include "library.labels" .root | fromYaml) (.labels | default dict)) | nindent 4 }}
  {{- with merge (dict) (.annotations | default dict) (.root.Values.commonAnnotations | default dict) (.root.Values.global.commonAnnotations | default dict) }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/*
Rejects unknown settings of global. Schemas accept them, because a parent chart can have its own; without a parent they
are typing errors. Helm passes the same global to every chart.
*/}}
{{- define "library.checkGlobal" -}}
{{- if .Chart.IsRoot -}}
{{- range $name, $like := include "library.unknownGlobal" . | fromYaml -}}
{{- fail (printf "global.%s is not a setting of direct-secrets; %s" $name (ternary "the README of the chart lists all settings" (printf "use %s" (join " or " $like)) (empty $like))) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The unknown settings of global, each with the known ones that could be meant. */}}
{{- define "library.unknownGlobal" -}}
{{- $known := include "library.settings" . | fromYaml -}}
{{- $unknown := dict -}}
{{- range $name := keys .Values.global -}}
{{- if not (has $name $known.names) -}}
{{- $like := list -}}
{{- with get $known.instead $name }}{{ $like = list (printf "global.%s" .) }}{{ end -}}
{{- range $known.names -}}
{{- if include "library.near" (list (lower $name) (lower .)) }}{{ $like = append $like (printf "global.%s" .) }}{{ end -}}
{{- end -}}
{{- $_ := set $unknown $name $like -}}
{{- end -}}
{{- end -}}
{{- toYaml $unknown -}}
{{- end -}}

{{/* Not empty if two words differ only in one letter, which is wrong, missing or added, or in two swapped letters. */}}
{{- define "library.near" -}}
{{- $a := index . 0 -}}
{{- $b := index . 1 -}}
{{- range until (int (min (len $a) (len $b))) -}}
{{- if eq (trunc 1 $a) (trunc 1 $b) }}{{ $a = substr 1 -1 $a }}{{ $b = substr 1 -1 $b }}{{ end -}}
{{- end -}}
{{- range until (int (min (len $a) (len $b))) -}}
{{- if eq (trunc -1 $a) (trunc -1 $b) }}{{ $a = trunc (int (sub (len $a) 1)) $a }}{{ $b = trunc (int (sub (len $b) 1)) $b }}{{ end -}}
{{- end -}}
{{- $swapped := printf "%s%s" (trunc -1 $b) (trunc 1 $b) -}}
{{- if or (le (max (len $a) (len $b)) 1) (and (eq (len $a) 2) (eq $a $swapped) (eq (len $b) 2)) }}near{{ end -}}
{{- end -}}

{{/*
Rejects a second release in the namespace that would serve the same objects: each has its own Lease, so both would be
leaders. Helm finds the first one only if it is connected to a cluster.
*/}}
{{- define "library.checkAlone" -}}
{{- $m := . -}}
{{- range (lookup "apps/v1" "Deployment" .namespace "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $release := get $labels "app.kubernetes.io/instance" -}}
{{- if and (eq $m.root.Chart.Name (get $labels "app.kubernetes.io/name")) (ne $m.root.Release.Name $release) (gt (int .spec.replicas) 0) -}}
{{- $args := (index .spec.template.spec.containers 0).args | default list -}}
{{- $overlap := has "--namespaces=" $args | or (not $m.settings.scope.namespaces) -}}
{{- range $args -}}
{{- if hasPrefix "--namespaces=" . -}}
{{- range splitList "," (trimPrefix "--namespaces=" .) }}{{ if has . $m.settings.scope.namespaces }}{{ $overlap = true }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if and $overlap (has (printf "--controller-class=%s" $m.settings.controllerClass) $args) -}}
{{- fail (printf "%s: release %s in namespace %s runs it for the same namespaces and controllerClass, so both would reconcile the same objects; set another controllerClass or scope.namespaces, or uninstall %s"
      $m.root.Chart.Name $release $m.namespace $release) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The checks that a schema cannot express. */}}
{{- define "library.check" -}}
{{- include "library.checkGlobal" .root -}}
{{- include "library.checkAlone" . -}}
{{- $s := .settings -}}
{{- if and (gt (int $s.replicaCount) 1) (not $s.leaderElection.enabled) -}}
{{- fail (printf "%s: replicaCount is %d, which needs leaderElection.enabled: without it, all replicas would reconcile the same objects at the same time" .root.Chart.Name (int $s.replicaCount)) -}}
{{- end -}}
{{- if and $s.strategy (ne (get $s.strategy "type") "Recreate") (not $s.leaderElection.enabled) -}}
{{- fail (printf "%s: strategy.type must be Recreate without leaderElection.enabled: otherwise an old and a new pod would reconcile the same objects at the same time" .root.Chart.Name) -}}
{{- end -}}
{{- if and $s.hostNetwork $s.networkPolicy.enabled -}}
{{- fail (printf "%s: networkPolicy.enabled has no effect with hostNetwork; set one of them to false" .root.Chart.Name) -}}
{{- end -}}
{{- include "library.checkBudget" . -}}
{{- if and $s.extraCA.configMap $s.extraCA.secret -}}
{{- fail (printf "%s: extraCA.configMap and extraCA.secret are both set; choose one" .root.Chart.Name) -}}
{{- end -}}
{{- include "library.checkMetrics" . -}}
{{- if $s.scope.namespaces -}}
{{- range $s.serviceAccountTokens.namespaces -}}
{{- if not (has . $s.scope.namespaces) -}}
{{- fail (printf "%s: serviceAccountTokens.namespaces has %q, which is not in scope.namespaces; add it there or remove it here" $.root.Chart.Name .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Rejects a budget that would block the drain of a node. Kubernetes rounds a percentage up. */}}
{{- define "library.checkBudget" -}}
{{- $b := .settings.podDisruptionBudget -}}
{{- $replicas := int .settings.replicaCount -}}
{{- $min := int (trimSuffix "%" (toString $b.minAvailable)) -}}
{{- if hasSuffix "%" (toString $b.minAvailable) }}{{ $min = div (add (mul $min $replicas) 99) 100 }}{{ end -}}
{{- if and $b.enabled (gt $replicas 1) (ge (int $min) $replicas) -}}
{{- fail (printf "%s: podDisruptionBudget.minAvailable is %v with a replicaCount of %d, so no node could be drained; set a smaller minAvailable or more replicas" .root.Chart.Name $b.minAvailable $replicas) -}}
{{- end -}}
{{- end -}}

{{/* Rejects a ServiceMonitor with which Prometheus would send its token to a server that it does not verify. */}}
{{- define "library.checkMetrics" -}}
{{- $m := .settings.metrics -}}
{{- if and $m.tls.secretName (not $m.auth) -}}
{{- fail (printf "%s: metrics.tls.secretName is set, but metrics are served without TLS; set metrics.auth too" .root.Chart.Name) -}}
{{- end -}}
{{- if and $m.enabled $m.auth $m.serviceMonitor.enabled (not $m.tls.secretName) (not $m.serviceMonitor.tlsConfig) -}}
{{- fail (printf "%s: with metrics.auth, Prometheus would send its token to a server that it cannot verify; set metrics.tls.secretName to a Secret with tls.crt, tls.key and ca.crt for %s-metrics.%s.svc, or set metrics.serviceMonitor.tlsConfig" .root.Chart.Name .name .namespace) -}}
{{- end -}}
{{- end -}}
