package fake

import (
	"context"
	"fmt"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Credentials holds the values of the Secrets and ConfigMaps of a test, by key. The objects' names are ignored.
// The token of a ServiceAccount has the key "token of NAME for [AUDIENCES]", and that of the operator "own token for AUDIENCE".
type Credentials map[string]string

// SecretValue implements provider.Credentials.
func (c Credentials) SecretValue(_ context.Context, sel common.SecretKeySelector) ([]byte, error) {
	return c.value("Secret", sel)
}

// ConfigMapValue implements provider.Credentials.
func (c Credentials) ConfigMapValue(_ context.Context, sel common.ConfigMapKeySelector) ([]byte, error) {
	return c.value("ConfigMap", common.SecretKeySelector(sel))
}

func (c Credentials) value(what string, sel common.SecretKeySelector) ([]byte, error) {
	v, ok := c[sel.Key]
	if !ok {
		return nil, provider.NewError(provider.Invalid, "auth: %s shop/%s has no value under key %q; add it or correct the reference", what, sel.Name, sel.Key)
	}
	return []byte(v), nil
}

// ServiceAccountToken implements provider.Credentials.
func (c Credentials) ServiceAccountToken(_ context.Context, sel common.ServiceAccountSelector, audiences ...string) (string, error) {
	if v, ok := c[fmt.Sprint("token of ", sel.Name, " for ", audiences)]; ok {
		return v, nil
	}
	return "", provider.NewError(provider.Invalid, "auth: ServiceAccount shop/%s does not exist; create it or correct the reference", sel.Name)
}

// OwnToken implements provider.OwnAccount.
func (c Credentials) OwnToken(_ context.Context, audience string) (string, error) {
	if v, ok := c["own token for "+audience]; ok {
		return v, nil
	}
	return "", provider.NewError(provider.Invalid, "auth: the API server accepts tokens for audience %q", audience)
}

// Ambient implements provider.Credentials. The operator's own identity is allowed.
func (Credentials) Ambient() error { return nil }
