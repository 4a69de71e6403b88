// Pins External Secrets Operator. Its CRDs are in its module; nothing of it is built.
module github.com/direct-secrets/direct-secrets/e2e/servers/external-secrets

go 1.26.0

require github.com/external-secrets/external-secrets v1.3.2
