package kv

import (
	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

func checkKey(key string) error {
	if why := session.Unfit(key); why != "" {
		return store.NewError(store.Invalid, "key %q %s; write it as folder/secret, without the mount", session.Shortened(key), why)
	}
	return nil
}
