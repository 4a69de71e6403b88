package kv

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/hashicorp/vault/api"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

var _ provider.Writer = &Client{}

// writing implements the differences between the versions of the KV secrets engine for writes. The key and the
// value have been checked.
type writing interface {
	features() provider.Features
	// settings decodes the metadata of a provider.Target.
	settings(raw []byte) (settings, error)
	// number returns the engine's result for a number, in a form that can be compared, or an error if the
	// number would change.
	number(n json.Number) (any, error)
	// minimum is the minimum number of members of an object.
	minimum() int

	// observe also returns the settings of the secret.
	observe(ctx context.Context, c *Client, key string) (provider.Observed, settings, error)
	create(ctx context.Context, c *Client, key string, data []byte, s settings, mark string) (provider.Written, error)
	// update leaves the value unchanged if data is nil.
	update(ctx context.Context, c *Client, key string, seen provider.Observed, data []byte, s settings) (provider.Written, error)
	mark(ctx context.Context, c *Client, key string, seen provider.Observed, mark string) error
	remove(ctx context.Context, c *Client, key string, seen provider.Observed) error
}

// Features returns all features for KV v2, which compares versions when it writes. KV v1 has no versions.
func (c *Client) Features() provider.Features { return c.engine.features() }

// settings decodes the metadata of a target, and checks its key.
func (c *Client) settings(t provider.Target) (settings, error) {
	if err := c.checkKey(t.Key); err != nil {
		return settings{}, err
	}
	return c.engine.settings(t.Metadata)
}

// Observe reads a secret, its settings and its mark. A KV v2 secret whose current version is deleted or
// destroyed exists without a value.
func (c *Client) Observe(ctx context.Context, t provider.Target) (provider.Observed, error) {
	s, err := c.settings(t)
	if err != nil {
		return provider.Observed{}, err
	}
	o, has, err := c.engine.observe(ctx, c, t.Key)
	if err != nil {
		return provider.Observed{}, err
	}
	o.Drift = s.drift(has)
	return o, nil
}

// Create creates a secret that does not exist.
func (c *Client) Create(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
	s, err := c.settings(t)
	if err != nil {
		return provider.Written{}, err
	}
	if _, err := c.object(t.Key, data); err != nil {
		return provider.Written{}, err
	}
	// The paths of one engine version have another meaning for the other version, and can do damage there.
	if err := c.checkMounted(ctx); err != nil {
		return provider.Written{}, err
	}
	return c.engine.create(ctx, c, t.Key, data, s, mark)
}

// Update writes the value first, because only that write is guarded, and then the settings that have drifted. A
// value that differs only in its spelling creates no version, because Vault changes the spelling.
func (c *Client) Update(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
	s, err := c.settings(t)
	if err != nil {
		return provider.Written{}, err
	}
	if data != nil {
		object, err := c.object(t.Key, data)
		if err != nil {
			return provider.Written{}, err
		}
		if c.holds(seen.Data, object) {
			data = nil
		}
	}
	s = s.drifted(seen.Drift)
	if data == nil && s.empty() {
		return provider.Written{Version: seen.Version, ID: seen.ID}, nil
	}
	if err := c.checkMounted(ctx); err != nil {
		return provider.Written{}, err
	}
	return c.engine.update(ctx, c, t.Key, seen, data, s)
}

// Mark replaces the mark of a secret. Vault has no conditional call for this, so the secret is read right
// before.
func (c *Client) Mark(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
	if err := c.checkKey(t.Key); err != nil {
		return err
	}
	if err := c.checkMounted(ctx); err != nil {
		return err
	}
	return c.engine.mark(ctx, c, t.Key, seen, mark)
}

// Delete deletes a secret with all its versions and its metadata. Vault has no conditional call for this, so
// the secret is read right before.
func (c *Client) Delete(ctx context.Context, t provider.Target, seen provider.Observed) error {
	if err := c.checkKey(t.Key); err != nil {
		return err
	}
	if err := c.checkMounted(ctx); err != nil {
		return err
	}
	return c.engine.remove(ctx, c, t.Key, seen)
}

// A request is one call of a Writer.
type request struct {
	key, path string
	// needs names the capabilities that a policy must allow on the path, for the error message.
	needs string
	send  func(ctx context.Context, c *api.Client, path string) (session.Answer, error)
}

// do sends a request. A request without an answer is repeated. If the first attempt had its effect, or another
// writer was faster, Vault rejects the second one, and the caller reads the secret again.
func (c *Client) do(ctx context.Context, r request) (session.Answer, error) {
	a, err := c.vault.Call(ctx, func(s *session.Session) (session.Answer, error) { return r.send(ctx, s.Secrets, r.path) })
	if err != nil {
		err = c.refused(ctx, err, r)
	}
	return a, err
}

// These texts of Vault identify the cause of an error.
const (
	// otherVersion is the error of a write whose cas is not the current version.
	otherVersion = "check-and-set parameter did not match"
	// overLimit and twice are the errors for JSON that Vault does not decode. It has no status of its own for
	// them.
	overLimit = "exceeds allowed"
	twice     = "duplicate key"
)

// refused explains why Vault rejected the request of a Writer.
func (c *Client) refused(ctx context.Context, err error, r request) error {
	what := about(provider.Ref{Key: r.key})
	var refusal *session.Refusal
	switch {
	case !errors.As(err, &refusal):
		return session.Explain(err, what)
	case refusal.Status == http.StatusBadRequest && refusal.Contains(otherVersion):
		return provider.ErrChanged
	case refusal.Status == http.StatusRequestEntityTooLarge:
		return provider.NewError(provider.Invalid, "%s: the value is too large for Vault, its storage or a proxy in front of it", what)
	case refusal.Status >= http.StatusBadRequest && (refusal.Contains(overLimit) || refusal.Contains(twice)):
		return provider.NewError(provider.Invalid, "%s: Vault rejects the value: it is nested too deep, has too many members, or has a member twice", what)
	case refusal.Status == http.StatusForbidden && !refusal.Foreign:
		return provider.NewError(provider.Denied, "%s: access denied; allow %s on %q in a policy", what, r.needs, session.Shortened(r.path))
	case refusal.Status == http.StatusNotFound:
		return c.missing(ctx, refusal, what)
	}
	return session.Explain(err, what)
}

// sends returns a function that sends a JSON object.
func sends(body any) func(context.Context, *api.Client, string) (session.Answer, error) {
	return func(ctx context.Context, c *api.Client, path string) (session.Answer, error) {
		return session.Write(ctx, c, path, body)
	}
}

// patches is sends for a change of only the named fields.
func patches(body any) func(context.Context, *api.Client, string) (session.Answer, error) {
	return func(ctx context.Context, c *api.Client, path string) (session.Answer, error) {
		raw, err := json.Marshal(body)
		if err != nil {
			return session.Answer{}, err
		}
		// The SDK sets another content type, which Vault does not accept here.
		c = c.WithRequestCallbacks(func(r *api.Request) { r.Headers.Set("Content-Type", "application/merge-patch+json") })
		return session.Send(ctx, func(ctx context.Context) (*api.Response, error) {
			return c.Logical().PatchRawWithContext(ctx, path, raw)
		})
	}
}

func deletes(ctx context.Context, c *api.Client, path string) (session.Answer, error) {
	return session.Send(ctx, func(ctx context.Context) (*api.Response, error) {
		return c.Logical().DeleteRawWithContext(ctx, path)
	})
}

func (kv1) features() provider.Features { return provider.Features{} }

// minimum implements writing: KV v1 does not accept an empty object.
func (kv1) minimum() int { return 1 }

func (kv1) observe(ctx context.Context, c *Client, key string) (provider.Observed, settings, error) {
	v, err := c.Get(ctx, provider.Ref{Key: key})
	if err != nil {
		return provider.Observed{}, settings{}, err
	}
	return provider.Observed{Data: spelled(v.Data), Version: v.Version}, settings{}, nil
}

// create overwrites a secret that another writer has created meanwhile, because KV v1 has no conditional write.
func (e kv1) create(ctx context.Context, c *Client, key string, data []byte, _ settings, _ string) (provider.Written, error) {
	_, err := c.do(ctx, request{key, e.read(c.mount, key), "create and update", sends(json.RawMessage(data))})
	if err != nil {
		return provider.Written{}, err
	}
	return provider.Written{Version: onlyVersion}, nil
}

func (e kv1) update(ctx context.Context, c *Client, key string, _ provider.Observed, data []byte, s settings) (provider.Written, error) {
	return e.create(ctx, c, key, data, s, "")
}

func (kv1) mark(context.Context, *Client, string, provider.Observed, string) error {
	return provider.NewError(provider.Invalid, "a secrets engine of KV v1 has no metadata to record who created a secret; set adoptionPolicy: Adopt, or use an engine of KV v2")
}

func (e kv1) remove(ctx context.Context, c *Client, key string, seen provider.Observed) error {
	o, _, err := e.observe(ctx, c, key)
	if err == nil && !bytes.Equal(o.Data, seen.Data) {
		err = provider.ErrChanged
	}
	if err != nil {
		return err
	}
	_, err = c.do(ctx, request{key, e.read(c.mount, key), "delete", deletes})
	return err
}
