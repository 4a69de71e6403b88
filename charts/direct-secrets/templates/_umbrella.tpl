{{/* The name of an object of the release itself. The list has the root and a suffix for the object. */}}
{{- define "umbrella.name" -}}
{{- $root := index . 0 -}}
{{- printf "%s-%s" ($root.Values.fullnameOverride | default $root.Release.Name | trunc 40 | trimSuffix "-") (index . 1) -}}
{{- end -}}

{{/*
A ValidatingAdmissionPolicy with its binding; see
https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/.
The dict has root, name and spec.
*/}}
{{- define "umbrella.policy" -}}
{{- if .root.Values.global.scope.namespaces -}}
{{- fail "admissionPolicies are cluster-wide and cannot be used with global.scope.namespaces; ask the administrator of the cluster to install them" -}}
{{- end -}}
{{- $name := include "umbrella.name" (list .root .name) -}}
{{- range $kind := list "ValidatingAdmissionPolicy" "ValidatingAdmissionPolicyBinding" }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: {{ $kind }}
{{ include "library.metadata" (dict "root" $.root "name" $name) }}
spec:
  {{- if eq $kind "ValidatingAdmissionPolicy" }}
  failurePolicy: Fail
  {{- $.spec | trim | nindent 2 }}
  {{- else }}
  policyName: {{ $name }}
  validationActions: [Deny]
  {{- end }}
{{- end }}
{{- end -}}

{{/*
The user names of the operators of the release and of those that values list, as a JSON list. The list has the root and
the values.
*/}}
{{- define "umbrella.operators" -}}
{{- $root := index . 0 -}}
{{- $users := list -}}
{{- range (index . 1).serviceAccounts -}}
{{- $users = append $users (printf "system:serviceaccount:%s" .) -}}
{{- end -}}
{{- range $name, $chart := $root.Subcharts -}}
{{- if $chart.Values.image -}}
{{- $users = append $users (printf "system:serviceaccount:%s:%s" (include "library.namespace" $chart) (include "library.serviceAccountName" $chart)) -}}
{{- end -}}
{{- end -}}
{{- toJson ($users | sortAlpha) -}}
{{- end -}}

{{/* A label selector as a CEL expression over the variable labels. */}}
{{- define "umbrella.selects" -}}
{{- $terms := list -}}
{{- range $key, $value := .matchLabels -}}
{{- $terms = append $terms (printf "variables.labels[?%s] == optional.of(%s)" (toJson $key) (toJson $value)) -}}
{{- end -}}
{{- range .matchExpressions -}}
{{- $value := printf "variables.labels[?%s]" (toJson .key) -}}
{{- if eq .operator "In" -}}
{{- $terms = append $terms (printf "(%s.hasValue() && %s.value() in %s)" $value $value (toJson .values)) -}}
{{- else if eq .operator "NotIn" -}}
{{- $terms = append $terms (printf "!(%s.hasValue() && %s.value() in %s)" $value $value (toJson .values)) -}}
{{- else if eq .operator "Exists" -}}
{{- $terms = append $terms (printf "%s.hasValue()" $value) -}}
{{- else -}}
{{- $terms = append $terms (printf "!%s.hasValue()" $value) -}}
{{- end -}}
{{- end -}}
{{- join " && " $terms -}}
{{- end -}}

{{/*
A chart of a module in the folder charts can be another one than Chart.yaml and Chart.lock pin. Helm renders it, whatever its
version. Modules also share objects, so each must work with the version of common with which another one is built. The chart of a
module states its own in the annotation direct-secrets.io/common. It works with minor versions that differ by one, or with the
range in the annotation direct-secrets.io/works-with-common.
*/}}
{{- define "umbrella.checkCommon" -}}
{{- $pinned := dict -}}
{{- range .Chart.Dependencies }}{{ $_ := set $pinned .Name .Version }}{{ end -}}
{{- $common := dict -}}
{{- $ranges := dict -}}
{{- range $name, $chart := .Subcharts -}}
{{- if $chart.Values.image -}}
{{- $version := get $pinned $chart.Chart.Name -}}
{{- if and $version (not (semverCompare $version $chart.Chart.Version)) -}}
{{- fail (printf "the chart %s has the version %s, and this version of the chart direct-secrets works with %s: run `helm dependency update`, or use another version of the chart direct-secrets" $name $chart.Chart.Version $version) -}}
{{- end -}}
{{- $annotations := default dict $chart.Chart.Annotations -}}
{{- $is := index $annotations "direct-secrets.io/common" -}}
{{- if not $is -}}
{{- fail (printf "set the annotation direct-secrets.io/common in the Chart.yaml of %s to the version of common in its go.mod" $name) -}}
{{- end -}}
{{- $is = semver $is -}}
{{- $_ := set $common $name $is -}}
{{- $_ = set $ranges $name (index $annotations "direct-secrets.io/works-with-common" | default (printf ">=%d.%d.0-0 <%d.%d.0-0" $is.Major (max (sub $is.Minor 1) 0) $is.Major (add $is.Minor 2))) -}}
{{- end -}}
{{- end -}}
{{- range $a, $is := $common -}}
{{- range $b, $other := $common -}}
{{- if not (semverCompare (get $ranges $a) $other.Original) -}}
{{- fail (printf "%s is built with common v%s and %s with common v%s, which do not work together: use a newer chart of %s" $a $is.String $b $other.String (ternary $a $b ($is.LessThan $other))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Alerts need metrics of at least one module. Without them, the alert for missing metrics would never end. */}}
{{- define "umbrella.checkAlerts" -}}
{{- $silent := list -}}
{{- $heard := list -}}
{{- range $name, $chart := .Subcharts -}}
{{- if $chart.Values.image -}}
{{- $metrics := mergeOverwrite (deepCopy $.Values.global.metrics) (deepCopy ($chart.Values.metrics | default dict)) -}}
{{- if $metrics.enabled }}{{ $heard = append $heard $name }}{{ else }}{{ $silent = append $silent $name }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $for := "the alert DirectSecretsOperatorAbsent would always fire" -}}
{{- if not (concat $silent $heard) -}}
{{- fail (printf "prometheusRule.enabled is true, but no module is enabled: %s. Enable one, such as provider-aws.enabled=true, create the rule in the release that runs modules, or set prometheusRule.enabled=false" $for) -}}
{{- else if not $heard -}}
{{- fail (printf "prometheusRule.enabled is true, but metrics.enabled is false for %s: %s. Set global.metrics.enabled=true, or prometheusRule.enabled=false" (join ", " (sortAlpha $silent)) $for) -}}
{{- end -}}
{{- end -}}

{{/* Helm would merge two objects with one name. */}}
{{- define "umbrella.checkNames" -}}
{{- $seen := dict -}}
{{- range $module, $_ := .Files.Get "files/modules.yaml" | fromYaml -}}
{{- with index $.Subcharts $module -}}
{{- $name := include "library.name" . -}}
{{- with get $seen $name -}}
{{- fail (printf "%s and %s have the same name %q; set another fullnameOverride or nameOverride for one of them" . $module $name) -}}
{{- end -}}
{{- $_ := set $seen $name $module -}}
{{- end -}}
{{- end -}}
{{- end -}}
