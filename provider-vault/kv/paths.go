package kv

import (
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

func (c *Client) checkKey(key string) error {
	if why := c.unfit(key); why != "" {
		return provider.NewError(provider.Invalid, "key %q %s; write it as folder/secret, without the mount", session.Shortened(key), why)
	}
	return nil
}

// unfit returns why the secrets engine cannot have a key or folder, or "" if it can. KV v1 stores names as they are,
// and Vault's storage allows no two dots in a row. It answers such a request with an internal error.
func (c *Client) unfit(key string) string {
	if why := session.Unfit(key); why != "" {
		return why
	}
	if strings.Contains(key, "..") && c.engine.version() == (kv1{}).version() {
		return "has \"..\" in it, which KV v1 does not allow"
	}
	return ""
}
