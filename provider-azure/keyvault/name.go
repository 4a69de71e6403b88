package keyvault

import (
	"context"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

var _ provider.Namer = &Client{}

// Name returns the collection and the name of an object. Key Vault ignores the case of names:
// https://learn.microsoft.com/azure/key-vault/general/about-keys-secrets-certificates#object-identifiers
func (c *Client) Name(_ context.Context, key string) (provider.Name, error) {
	of, name, err := objectOf(key)
	if err != nil {
		return provider.Name{}, err
	}
	return provider.Name{Key: string(of) + "/" + strings.ToLower(name)}, nil
}
