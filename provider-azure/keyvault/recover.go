package keyvault

import (
	"context"
	"strings"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// recoverWait is the time between two reads of a secret that Key Vault is recovering.
const recoverWait = 200 * time.Millisecond

// recover recovers a soft-deleted secret with all its versions, and waits until it can be used.
func (c *vault) recover(ctx context.Context, r remote) error {
	err := c.config.Ready(ctx)
	if err == nil {
		_, err = c.api.RecoverDeletedSecret(ctx, r.name, nil)
	}
	if err = r.explain(ctx, err); err != nil {
		return c.unrecovered(ctx, r, err)
	}
	for {
		_, err := c.current(ctx, r)
		if err == nil || !provider.IsNotFound(err) && provider.ClassOf(err) != provider.Conflict {
			return err
		}
		if !provider.Sleep(ctx, recoverWait) {
			return r.explain(ctx, ctx.Err())
		}
	}
}

// unrecovered explains why a soft-deleted secret blocks its name.
func (c *vault) unrecovered(ctx context.Context, r remote, err error) error {
	if provider.ClassOf(err) != provider.Denied {
		return err
	}
	fix := "grant the identity in spec.auth the permission to recover, or purge the secret"
	if out, e := c.api.GetDeletedSecret(ctx, r.name, nil); e == nil && out.Attributes != nil && out.Attributes.RecoveryLevel != nil &&
		!strings.Contains(*out.Attributes.RecoveryLevel, "Purgeable") {
		fix = "grant the identity in spec.auth the permission to recover; purge protection keeps anyone from purging the secret"
	}
	return provider.NewError(provider.Denied, "%s: is soft-deleted, and access to recover it is denied; %s", r, fix)
}
