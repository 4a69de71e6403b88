{{/* The name of an object of the release itself: the list is the root and a word for the object. */}}
{{- define "umbrella.name" -}}
{{- $root := index . 0 -}}
{{- printf "%s-%s" ($root.Release.Name | trunc 40 | trimSuffix "-") (index . 1) -}}
{{- end -}}

{{/*
A ValidatingAdmissionPolicy with its binding; see
https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/.
The dict has root, name and spec.
*/}}
{{- define "umbrella.policy" -}}
{{- if .root.Values.global.scope.namespaces -}}
{{- fail "admissionPolicies are cluster-wide and do not go with global.scope.namespaces; have them installed by a release of the cluster's administrator" -}}
{{- end -}}
{{- $name := include "umbrella.name" (list .root .name) -}}
{{- range $kind := list "ValidatingAdmissionPolicy" "ValidatingAdmissionPolicyBinding" }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  labels:
    {{- include "library.labels" $.root | nindent 4 }}
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

{{/* A label selector in CEL, of the variable labels. */}}
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

{{/* Alerts need metrics of at least one module: where there are none, the alert for that would never end. */}}
{{- define "umbrella.checkAlerts" -}}
{{- $silent := list -}}
{{- $heard := list -}}
{{- range $name, $chart := .Subcharts -}}
{{- if $chart.Values.image -}}
{{- $metrics := mergeOverwrite (deepCopy $.Values.global.metrics) (deepCopy ($chart.Values.metrics | default dict)) -}}
{{- if $metrics.enabled }}{{ $heard = append $heard $name }}{{ else }}{{ $silent = append $silent $name }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $for := "the alert DirectSecretsOperatorAbsent would fire for ever" -}}
{{- if not (concat $silent $heard) -}}
{{- fail (printf "prometheusRule.enabled is true, but no module is enabled: %s. Enable one, as provider-aws.enabled=true, have the release that runs modules make the rule, or set prometheusRule.enabled=false" $for) -}}
{{- else if not $heard -}}
{{- fail (printf "prometheusRule.enabled is true, but metrics.enabled is false for %s: %s. Set global.metrics.enabled=true, or prometheusRule.enabled=false" (join ", " (sortAlpha $silent)) $for) -}}
{{- end -}}
{{- end -}}
