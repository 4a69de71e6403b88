{{/* Made by `make generate` from hack/charts/settings.yaml. */}}
{{- define "library.settings" -}}
names:
  - scope
  - crds
  - image
  - imagePullSecrets
  - commonLabels
  - replicaCount
  - refuseTokenSecrets
  - podDisruptionBudget
  - topologySpreadConstraints
  - nodeSelector
  - tolerations
  - affinity
  - priorityClassName
  - hostAliases
  - podSecurityContext
  - securityContext
  - podAnnotations
  - podLabels
  - resources
  - terminationGracePeriodSeconds
  - serviceAccount
  - serviceAccountTokens
  - proxy
  - extraCA
  - networkPolicy
  - defaultSecretCleanupPolicy
  - ambientCredentials
  - allowPlainHTTP
  - controllerClass
  - concurrency
  - providerTimeout
  - logLevel
  - logFormat
  - auditLog
  - leaderElection
  - moduleKinds
  - presenceNamespace
  - metrics
  - extraEnv
  - extraArgs
  - volumes
  - volumeMounts
instead:
  args: extraArgs
  concurrent: concurrency
  containerSecurityContext: securityContext
  env: extraEnv
  extraVolumeMounts: volumeMounts
  extraVolumes: volumes
  installCRDs: crds.enabled
  leaderElect: leaderElection.enabled
  replicas: replicaCount
  scopedNamespace: scope.namespaces
  serviceMonitor: metrics.serviceMonitor
{{- end -}}
