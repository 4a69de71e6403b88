{{/* The CRDs have the annotation helm.sh/resource-policy: keep. */}}
{{- define "library.crds" -}}
{{- if .settings.crds.enabled -}}
{{- range $path, $_ := .root.Files.Glob "files/crds/*.yaml" }}
{{ $.root.Files.Get $path }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Adds the namespaced Kinds to the default ClusterRoles for users; see
https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles. The Kinds are included even if the
chart does not install the CRDs. */}}
{{- define "library.aggregateRoles" -}}
{{- $s := .settings -}}
{{- if and $s.crds.aggregateRoles (not $s.scope.namespaces) -}}
{{- $group := "" -}}
{{- $plurals := list -}}
{{- range $path, $_ := .root.Files.Glob "files/crds/*.yaml" -}}
{{- $crd := $.root.Files.Get $path | fromYaml -}}
{{- $group = $crd.spec.group -}}
{{- if eq $crd.spec.scope "Namespaced" }}{{ $plurals = append $plurals $crd.spec.names.plural }}{{ end -}}
{{- end -}}
{{- range $role, $verbs := dict "view" (list "get" "list" "watch") "edit" (list "create" "update" "patch" "delete" "deletecollection") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $.name }}-{{ $role }}
  labels:
    {{- include "library.labels" $.root | nindent 4 }}
    {{- if eq $role "view" }}
    rbac.authorization.k8s.io/aggregate-to-view: "true"
    {{- end }}
    rbac.authorization.k8s.io/aggregate-to-edit: "true"
    rbac.authorization.k8s.io/aggregate-to-admin: "true"
rules:
  - apiGroups: [{{ $group }}]
    resources: {{ toJson $plurals }}
    verbs: {{ toJson $verbs }}
{{- end }}
{{- end -}}
{{- end -}}
