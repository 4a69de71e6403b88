{{- define "library.serviceAccount" -}}
{{- if .settings.serviceAccount.create -}}
---
apiVersion: v1
kind: ServiceAccount
{{- $account := .settings.serviceAccount }}
{{ include "library.metadata" (merge (dict "name" .serviceAccount "labels" $account.labels "annotations" $account.annotations) .) }}
automountServiceAccountToken: false
{{- end -}}
{{- end -}}

{{/*
The permissions in `files/rights.yaml`, which `make generate` writes from the markers in the code. Its parts are: `rights`,
in every served namespace; cluster, for cluster-scoped resources; leases, in the namespaces of Leases; records, in
its own namespace; tokens; configMaps; workloads; receivers; and clusterReceivers.
*/}}
{{- define "library.rights" -}}
{{- $s := .settings -}}
{{- if $s.rbac.create -}}
{{- $rights := .root.Files.Get "files/rights.yaml" | fromYaml -}}
{{- $own := .namespace -}}
{{- include "library.role" (merge (dict "name" .name "rules" $rights.rights "namespaces" $s.scope.namespaces) .) }}
{{- if not $s.scope.namespaces }}
{{ include "library.role" (merge (dict "name" (printf "%s-cluster" .name) "rules" $rights.cluster "namespaces" list) .) }}
{{- end }}
{{ include "library.role" (merge (dict "name" (printf "%s-leases" .name) "rules" $rights.leases
     "namespaces" (list $own (include "library.presenceNamespace" .) | uniq)) .) }}
{{ include "library.role" (merge (dict "name" (printf "%s-records" .name) "rules" $rights.records "namespaces" (list $own)) .) }}
{{- if $s.configMapTargets.enabled }}
{{ include "library.role" (merge (dict "name" (printf "%s-configmaps" .name) "rules" $rights.configMaps "namespaces" $s.scope.namespaces) .) }}
{{- end }}
{{- if $s.workloadRestarts.enabled }}
{{ include "library.role" (merge (dict "name" (printf "%s-workloads" .name) "rules" $rights.workloads "namespaces" $s.scope.namespaces) .) }}
{{- end }}
{{- if $s.eventReceiver.enabled }}
{{ include "library.role" (merge (dict "name" (printf "%s-receivers" .name) "rules" $rights.receivers "namespaces" $s.scope.namespaces) .) }}
{{- if not $s.scope.namespaces }}
{{ include "library.role" (merge (dict "name" (printf "%s-receivers-cluster" .name) "rules" $rights.clusterReceivers "namespaces" list) .) }}
{{- end }}
{{- end }}
{{- if and $s.metrics.enabled $s.metrics.auth }}
{{ include "library.role" (merge (dict "name" (printf "%s-metrics-auth" .name) "namespaces" list "rules" (list
     (dict "apiGroups" (list "authentication.k8s.io") "resources" (list "tokenreviews") "verbs" (list "create"))
     (dict "apiGroups" (list "authorization.k8s.io") "resources" (list "subjectaccessreviews") "verbs" (list "create")))) .) }}
{{- end }}
{{- if and $s.serviceAccountTokens.enabled $rights.tokens }}
{{- $rules := $rights.tokens -}}
{{- with $s.serviceAccountTokens.names }}
{{- $rules = list -}}
{{- range $rights.tokens }}{{ $rules = append $rules (merge (dict "resourceNames" $s.serviceAccountTokens.names) .) }}{{ end -}}
{{- end }}
{{ include "library.role" (merge (dict "name" (printf "%s-tokens" .name) "rules" $rules
     "namespaces" ($s.serviceAccountTokens.namespaces | default $s.scope.namespaces)) .) }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Grants the rules to the module's ServiceAccount in the namespaces, or everywhere if there are none. */}}
{{- define "library.role" -}}
{{- $cluster := not .namespaces -}}
{{- if .rules -}}
{{- range $namespace := .namespaces | default (list "") }}
{{- range $kind := list "Role" "RoleBinding" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "Cluster" "" $cluster }}{{ $kind }}
{{ include "library.metadata" (merge (dict "namespace" $namespace) (omit $ "namespace")) }}
{{- if eq $kind "Role" }}
rules:
  {{- toYaml $.rules | nindent 2 }}
{{- else }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ ternary "ClusterRole" "Role" $cluster }}
  name: {{ $.name }}
subjects:
  - {kind: ServiceAccount, name: {{ $.serviceAccount }}, namespace: {{ $.namespace }}}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
{{- end -}}

{{/*
Prevents a compromised module from obtaining ServiceAccount tokens through Secrets. RBAC cannot, because it ignores their types.
See docs/reference/threat-model.md.
*/}}
{{- define "library.tokenPolicy" -}}
{{- if and .settings.refuseTokenSecrets (not .settings.scope.namespaces) -}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
{{ include "library.metadata" (omit . "namespace") }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        resources: [secrets]
        operations: [CREATE, UPDATE]
  matchConditions:
    - name: by-the-module
      expression: request.userInfo.username == 'system:serviceaccount:{{ .namespace }}:{{ .serviceAccount }}'
  validations:
    - expression: "!(object.?type.orValue('') in ['kubernetes.io/service-account-token', 'bootstrap.kubernetes.io/token'])"
      reason: Forbidden
      message: modules of direct-secrets write no Secrets of the types from which Kubernetes takes tokens
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
{{ include "library.metadata" (omit . "namespace") }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
{{- end -}}
{{- end -}}
