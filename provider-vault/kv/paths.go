package kv

import (
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

func checkKey(key string) error {
	if why := session.Unfit(key); why != "" {
		return provider.NewError(provider.Invalid, "key %q %s; write it as folder/secret, without the mount", session.Shortened(key), why)
	}
	return nil
}
