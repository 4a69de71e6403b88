package awsconfig

import (
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// parseEndpoint returns nil for an unset endpoint. Every request is signed with credentials, so plain http is
// allowed for the operator's own host only, unless a flag of the operator allows more.
func parseEndpoint(raw string, creds provider.Credentials) (*string, error) {
	if raw == "" {
		return nil, nil
	}
	if _, err := provider.ParseURL(creds, "spec.endpoint", raw); err != nil {
		return nil, err
	}
	return &raw, nil
}
