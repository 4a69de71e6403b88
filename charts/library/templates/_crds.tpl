{{/* The CRDs of the module, with the annotation that makes Helm keep them, and with them all objects of their Kinds. */}}
{{- define "library.crds" -}}
{{- if .settings.crds.enabled -}}
{{- $all := "\n  annotations:\n    helm.sh/resource-policy: keep\n" -}}
{{- with .settings.crds.annotations }}{{ $all = printf "%s%s\n" $all (toYaml . | indent 4) }}{{ end -}}
{{- range $path, $_ := .root.Files.Glob "files/crds/*.yaml" }}
{{ $.root.Files.Get $path | replace "\n  annotations:\n" $all }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Adds the namespaced Kinds to the default ClusterRoles for users; see
https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles. The Kinds are included even if the
chart does not install the CRDs. */}}
{{- define "library.aggregateRoles" -}}
{{- $s := .settings -}}
{{- if and $s.crds.aggregateRoles $s.rbac.create (not $s.scope.namespaces) -}}
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
{{- $labels := dict }}
{{- range append (list "edit" "admin") $role }}{{ $_ := set $labels (printf "rbac.authorization.k8s.io/aggregate-to-%s" .) "true" }}{{ end }}
{{ include "library.metadata" (merge (dict "name" (printf "%s-%s" $.name $role) "labels" $labels) (omit $ "namespace")) }}
rules:
  - apiGroups: [{{ $group }}]
    resources: {{ toJson $plurals }}
    verbs: {{ toJson $verbs }}
{{- end }}
{{- end -}}
{{- end -}}
