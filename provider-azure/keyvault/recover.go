package keyvault

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/azureconfig"
)

// Key Vault answers a deletion and a recovery at once, and completes them some seconds later. The time between two calls that wait for
// that grows from firstWait to lastWait.
const (
	firstWait = 200 * time.Millisecond
	lastWait  = 2 * time.Second
)

// until repeats a call until it succeeds, or fails with an error that is not pending, or ctx ends.
func (c *vault) until(ctx context.Context, r remote, pending func(error) bool, call func() error) error {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := call()
		if err == nil || !pending(err) {
			return err
		}
		if !c.sleep(ctx, wait) {
			return provider.NewError(provider.Unavailable, "%s: Key Vault has not completed its deletion or recovery in time; retrying with back-off", r)
		}
	}
}

// recover recovers a soft-deleted secret with all its versions, and waits until it can be read. requested is called with the current
// version once Key Vault accepts the recovery.
func (c *vault) recover(ctx context.Context, r remote, requested func(version string)) (s stored, err error) {
	accepted := false
	pending := func(err error) bool { return provider.IsNotFound(err) || provider.ClassOf(err) == provider.Conflict }
	err = c.until(ctx, r, pending, func() error {
		if !accepted {
			version, err := c.requestRecovery(ctx, r)
			if err != nil && !pending(err) {
				return c.unrecovered(ctx, r, err)
			}
			if accepted = err == nil; accepted {
				requested(version)
			}
		}
		// If Key Vault does not accept it, another client has possibly recovered the secret.
		s, err = c.current(ctx, r)
		return err
	})
	return s, err
}

// requestRecovery returns the version that is current after the recovery; empty if Key Vault does not name it.
func (c *vault) requestRecovery(ctx context.Context, r remote) (version string, err error) {
	if err := c.config.Ready(ctx); err != nil {
		return "", err
	}
	out, err := c.api.RecoverDeletedSecret(ctx, r.name, nil)
	if err != nil {
		return "", r.explain(ctx, err)
	}
	_, version, _ = parseID(out.ID)
	return version, nil
}

// restore recovers a secret of which a deletion took a version of another client. If ctx ends before that, the next call for the
// secret continues.
func (c *vault) restore(ctx context.Context, r remote) error {
	c.unfinished.begin(r.name, recovery{restores: true})
	_, err := c.recover(ctx, r, func(string) {})
	if err == nil {
		c.unfinished.end(r.name)
	}
	return err
}

// recoverOld recovers a secret only to write over it, and returns its versions. If ctx ends before the write, the next one continues.
func (c *vault) recoverOld(ctx context.Context, r remote) (map[string]bool, error) {
	s, err := c.recover(ctx, r, func(version string) { c.unfinished.begin(r.name, recovery{replaces: true, version: version}) })
	if err != nil {
		return nil, err
	}
	if !c.unfinished.of(r.name).isReplaced(s.version) {
		c.unfinished.end(r.name)
		return nil, provider.NewError(provider.Conflict, "%s: another client recovered it at the same time; retrying", r)
	}
	return c.versions(ctx, r)
}

// existing reads the current version. A secret that was recovered only to write over it does not exist.
func (c *vault) existing(ctx context.Context, r remote) (stored, error) {
	of := c.unfinished.of(r.name)
	if of.restores {
		if err := c.restore(ctx, r); err != nil {
			return stored{}, err
		}
	}
	s, err := c.current(ctx, r)
	if err == nil && of.isReplaced(s.version) {
		return s, provider.NewError(provider.NotFound, "%s: does not exist", r)
	}
	return s, err
}

// A recovery is one that a call began.
type recovery struct {
	restores bool   // whether the secret is that of another client
	replaces bool   // whether it is recovered only to write over it
	version  string // to write over; empty if it is not known
}

// isReplaced reports whether a version is to be written over.
func (r recovery) isReplaced(version string) bool {
	return r.replaces && (r.version == "" || r.version == version)
}

// recoveries are those that no call has finished, by name of the secret.
type recoveries struct {
	mu sync.Mutex
	// Bound: one per secret that the vault has had as deleted, while the store is connected.
	all map[string]recovery
}

func (u *recoveries) begin(name string, r recovery) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all[name] = r
}

func (u *recoveries) end(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, name)
}

func (u *recoveries) of(name string) recovery {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all[name]
}

// setNew sets a secret that does not exist. It first recovers one that is soft-deleted, and returns the versions that it then has.
func (c *vault) setNew(ctx context.Context, r remote, p azsecrets.SetSecretParameters) (version string, before map[string]bool, err error) {
	if !c.unfinished.of(r.name).replaces {
		version, err = c.setFree(ctx, r, p)
		// Some answers do not have the inner code of a name that is taken.
		if inner, conflict := azureconfig.ConflictCode(err); !conflict || inner != azureconfig.SoftDeleted && inner != "" {
			return version, nil, r.explain(ctx, err)
		}
	}
	if before, err = c.recoverOld(ctx, r); err != nil {
		return "", nil, err
	}
	if version, err = c.setFree(ctx, r, p); err != nil {
		return "", nil, r.explain(ctx, err)
	}
	c.unfinished.end(r.name)
	return version, before, nil
}

// setFree adds a version after Key Vault has completed the deletion or recovery of the name. A conflict without an inner code is
// returned when it is repeated. The error is not explained.
func (c *vault) setFree(ctx context.Context, r remote, p azsecrets.SetSecretParameters) (version string, err error) {
	unclear := 0
	pending := func(err error) bool {
		inner, conflict := azureconfig.ConflictCode(err)
		if conflict && inner == "" {
			unclear++
		}
		return conflict && (inner == azureconfig.BeingDeleted || inner == azureconfig.BeingRecovered || inner == "" && unclear == 1)
	}
	err = c.until(ctx, r, pending, func() (err error) {
		version, err = c.set(ctx, r, p)
		return err
	})
	return version, err
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
