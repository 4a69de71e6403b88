package kv

import (
	"context"
	"net/http"
	"net/url"
	"regexp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/hashicorp/vault/api"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

// Get reads one version of a secret, which is a JSON object. KV v2 includes its custom metadata in the answer.
func (c *Client) Get(ctx context.Context, ref provider.Ref) (provider.Value, error) {
	if err := c.checkKey(ref.Key); err != nil {
		return provider.Value{}, err
	}
	query, err := c.engine.query(ref.Version)
	if err != nil {
		return provider.Value{}, err
	}
	if ref.Metadata && c.engine.version() == (kv1{}).version() {
		return provider.Value{}, provider.NewError(provider.Invalid, "%s: KV v1 has no custom metadata; remove metadataPolicy, or use a secrets engine of KV v2", about(ref))
	}
	path := c.engine.read(c.mount, ref.Key)
	a, err := c.read(ctx, path, query)
	if err == nil {
		return c.engine.value(ref, a)
	}
	var r *session.Refusal
	switch {
	case !errors.As(err, &r):
		return provider.Value{}, session.Explain(err, about(ref))
	case r.Status == http.StatusNotFound && c.engine.isDeleted(a):
		return provider.Value{}, provider.NewError(provider.NotFound, "%s: is deleted", about(ref))
	case r.Status == http.StatusNotFound:
		return provider.Value{}, c.missing(ctx, r, about(ref))
	case r.Status == http.StatusForbidden && !r.Foreign:
		return provider.Value{}, provider.NewError(provider.Denied, "%s: access denied; allow read on %q in a policy", about(ref), session.Shortened(path))
	}
	return provider.Value{}, session.Explain(err, about(ref))
}

// missing explains a 404. It is NotFound only if Vault says that a secret does not exist, and if the secrets
// engine is the expected one. A wrongly configured store must not look like an empty one.
func (c *Client) missing(ctx context.Context, r *session.Refusal, what string) error {
	if r.Foreign {
		return session.Explain(r, what)
	}
	if err := c.checkMounted(ctx); err != nil {
		return err
	}
	if !notThere(r) {
		return provider.NewError(provider.Invalid, "%s: the path does not exist at Vault; check spec.path, spec.version and spec.namespace", what)
	}
	return provider.NewError(provider.NotFound, "%s: does not exist", what)
}

// read requests a path of the secrets engine. If the session has expired early, read logs in again and retries
// once.
func (c *Client) read(ctx context.Context, path string, query url.Values) (session.Answer, error) {
	if c.engine.version() == (kv1{}).version() {
		// KV v2 would also answer at the paths of v1, for example with its configuration.
		if err := c.checkMounted(ctx); err != nil {
			return session.Answer{}, err
		}
	}
	return c.vault.Call(ctx, func(s *session.Session) (session.Answer, error) { return session.Read(ctx, s.Secrets, path, query) })
}

// Check checks the address, the login and the secrets engine. A denied request that is not about the login
// passes.
func (c *Client) Check(ctx context.Context) error {
	if err := c.vault.Check(ctx); err != nil {
		return err
	}
	if err := c.checkMounted(ctx); err != nil {
		return err
	}
	return c.vault.Warnings()
}

var plainWord = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// checkMounted checks once what is mounted at the store's path. Vault tells this to every token with any
// permission there. If Vault does not tell, checkMounted assumes that the store is right.
func (c *Client) checkMounted(ctx context.Context) error {
	if c.mounted.Load() {
		return nil
	}
	a, err := c.vault.Call(ctx, func(s *session.Session) (session.Answer, error) {
		return session.Read(ctx, s.Secrets, "sys/internal/ui/mounts/"+c.mount, nil)
	})
	switch session.StatusOf(err) {
	case http.StatusForbidden, http.StatusNotFound:
		return nil
	}
	if err != nil {
		return session.Explain(err, "spec.path: reading the mount")
	}
	if err := c.suits(a); err != nil {
		return err
	}
	c.mounted.Store(true)
	return nil
}

// suits compares Vault's description of a mount with the store.
func (c *Client) suits(a session.Answer) error {
	m, err := session.Data[api.MountOutput](a)
	at, pathErr := session.Data[struct {
		Path string `json:"path"`
	}](a)
	if err != nil || pathErr != nil {
		return provider.NewError(provider.Unavailable, "spec.path: the response of Vault does not describe the mount")
	}
	version := m.Options["version"]
	if version == "" {
		version = "1"
	}
	switch {
	case at.Path != c.mount+"/":
		return provider.NewError(provider.Invalid, "spec.path: %q is not the mount of a secrets engine, but a path below one; move the folder to the key", c.mount)
	case m.Type != "kv" && m.Type != "generic":
		if !plainWord.MatchString(m.Type) {
			m.Type = "another"
		}
		return provider.NewError(provider.Invalid, "spec.path: %q is a secrets engine of type %s, not kv", c.mount, m.Type)
	case version != c.engine.version():
		return provider.NewError(provider.Invalid, "spec.version: the secrets engine %q is KV v%s; correct the version", c.mount, session.Shortened(version))
	}
	return nil
}

// about describes a ref in messages.
func about(ref provider.Ref) string { return ref.About("secret") }
