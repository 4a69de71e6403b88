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

// writing is what differs between the versions of the KV secrets engine for those that write. The key and
// the value have been checked.
type writing interface {
	features() provider.Features
	// settings reads the metadata of a provider.Target.
	settings(raw []byte) (settings, error)
	// number returns what the engine makes of a number, in a form that can be compared; an error if that
	// is not the same number.
	number(n json.Number) (any, error)
	// minimum is how many members an object must have.
	minimum() int

	// observe also returns the settings that a secret has.
	observe(ctx context.Context, c *Client, key string) (provider.Observed, settings, error)
	create(ctx context.Context, c *Client, key string, data []byte, s settings, mark string) (provider.Written, error)
	// update leaves the value alone if data is nil.
	update(ctx context.Context, c *Client, key string, seen provider.Observed, data []byte, s settings) (provider.Written, error)
	mark(ctx context.Context, c *Client, key string, seen provider.Observed, mark string) error
	remove(ctx context.Context, c *Client, key string, seen provider.Observed) error
}

// Features are all that there are with KV v2, which compares versions when it writes. KV v1 has none to
// compare.
func (c *Client) Features() provider.Features { return c.engine.features() }

// settings reads the metadata of a target, and checks its key.
func (c *Client) settings(t provider.Target) (settings, error) {
	if err := checkKey(t.Key); err != nil {
		return settings{}, err
	}
	return c.engine.settings(t.Metadata)
}

// Observe reads a secret, its settings and its mark. A secret of KV v2 whose current version is deleted or
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

// Create makes a secret that does not exist.
func (c *Client) Create(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
	s, err := c.settings(t)
	if err != nil {
		return provider.Written{}, err
	}
	if _, err := c.object(t.Key, data); err != nil {
		return provider.Written{}, err
	}
	// The paths of one version of the engine mean something else, or harm, at the other.
	if err := c.checkMounted(ctx); err != nil {
		return provider.Written{}, err
	}
	return c.engine.create(ctx, c, t.Key, data, s, mark)
}

// Update writes the value first, for only that is guarded, and then the settings that drifted. A value that
// is the same but for its spelling makes no version: Vault spells in its own way.
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

// Mark gives a secret another mark. Vault does so without a condition, so the secret is looked at right before.
func (c *Client) Mark(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
	if err := checkKey(t.Key); err != nil {
		return err
	}
	if err := c.checkMounted(ctx); err != nil {
		return err
	}
	return gone(c.engine.mark(ctx, c, t.Key, seen, mark))
}

// Delete removes a secret with all its versions and its metadata. Vault does so without a condition, so the
// secret is looked at right before.
func (c *Client) Delete(ctx context.Context, t provider.Target, seen provider.Observed) error {
	if err := checkKey(t.Key); err != nil {
		return err
	}
	if err := c.checkMounted(ctx); err != nil {
		return err
	}
	err := c.engine.remove(ctx, c, t.Key, seen)
	if provider.IsNotFound(err) {
		return nil
	}
	return err
}

func changed(key string) error {
	return provider.NewError(provider.Conflict, "%s: has changed meanwhile", about(provider.Ref{Key: key}))
}

// gone makes a Conflict of what says that a secret is gone that was there before.
func gone(err error) error {
	if !provider.IsNotFound(err) {
		return err
	}
	return provider.NewError(provider.Conflict, "%s", err)
}

// A request is one call of a Writer.
type request struct {
	key, path string
	// needs are the capabilities that a policy must allow on the path, for the message where it does not.
	needs string
	send  func(ctx context.Context, c *api.Client, path string) (session.Answer, error)
}

// do makes a request. An attempt whose answer was lost is made again: Vault refuses it if the first one was
// carried out, as it does where somebody else was faster, and the caller looks again.
func (c *Client) do(ctx context.Context, r request) (session.Answer, error) {
	a, err := c.vault.Call(ctx, func(s *session.Session) (session.Answer, error) { return r.send(ctx, s.Secrets, r.path) })
	if err != nil {
		err = c.refused(ctx, err, r)
	}
	return a, err
}

// Texts of Vault by which refusals are told apart.
const (
	// otherVersion is of a write whose cas is not the current version.
	otherVersion = "check-and-set parameter did not match"
	// overLimit and twice are of JSON that Vault does not even read, for which it has no status of its own.
	overLimit = "exceeds allowed"
	twice     = "duplicate key"
)

// refused explains why Vault did not do what a Writer needs.
func (c *Client) refused(ctx context.Context, err error, r request) error {
	what := about(provider.Ref{Key: r.key})
	var said *session.Refusal
	switch {
	case !errors.As(err, &said):
		return session.Explain(err, what)
	case said.Status == http.StatusBadRequest && said.Says(otherVersion):
		return changed(r.key)
	case said.Status == http.StatusRequestEntityTooLarge:
		return provider.NewError(provider.Invalid, "%s: the value is larger than Vault, its storage or a proxy before it takes", what)
	case said.Status >= http.StatusBadRequest && (said.Says(overLimit) || said.Says(twice)):
		return provider.NewError(provider.Invalid, "%s: Vault does not read the value: it is nested too deep, has too many members, or one twice", what)
	case said.Status == http.StatusForbidden && !said.Foreign:
		return provider.NewError(provider.Denied, "%s: access denied; allow %s on %q in a policy", what, r.needs, session.Shortened(r.path))
	case said.Status == http.StatusNotFound:
		return c.missing(ctx, said, what)
	}
	return session.Explain(err, what)
}

// sends returns the sending of a JSON object.
func sends(body any) func(context.Context, *api.Client, string) (session.Answer, error) {
	return func(ctx context.Context, c *api.Client, path string) (session.Answer, error) {
		return session.Write(ctx, c, path, body)
	}
}

// patches is sends for what changes only what it names.
func patches(body any) func(context.Context, *api.Client, string) (session.Answer, error) {
	return func(ctx context.Context, c *api.Client, path string) (session.Answer, error) {
		raw, err := json.Marshal(body)
		if err != nil {
			return session.Answer{}, err
		}
		// The SDK names another format of patches, which Vault does not take here.
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

// minimum: KV v1 takes no empty object.
func (kv1) minimum() int { return 1 }

func (kv1) observe(ctx context.Context, c *Client, key string) (provider.Observed, settings, error) {
	v, err := c.Get(ctx, provider.Ref{Key: key})
	if err != nil {
		return provider.Observed{}, settings{}, err
	}
	return provider.Observed{Data: spelled(v.Data), Version: v.Version}, settings{}, nil
}

// create overwrites what somebody else has made meanwhile: KV v1 has no way to find out.
func (e kv1) create(ctx context.Context, c *Client, key string, data []byte, _ settings, _ string) (provider.Written, error) {
	_, err := c.do(ctx, request{key, e.read(c.mount, key), "create and update", sends(json.RawMessage(data))})
	if err != nil {
		return provider.Written{}, gone(err)
	}
	return provider.Written{Version: onlyVersion}, nil
}

func (e kv1) update(ctx context.Context, c *Client, key string, _ provider.Observed, data []byte, s settings) (provider.Written, error) {
	return e.create(ctx, c, key, data, s, "")
}

func (kv1) mark(context.Context, *Client, string, provider.Observed, string) error {
	return provider.NewError(provider.Invalid, "not implemented: KV v1 has no place for a mark")
}

func (e kv1) remove(ctx context.Context, c *Client, key string, seen provider.Observed) error {
	o, _, err := e.observe(ctx, c, key)
	if err == nil && !bytes.Equal(o.Data, seen.Data) {
		err = changed(key)
	}
	if err != nil {
		return err
	}
	_, err = c.do(ctx, request{key, e.read(c.mount, key), "delete", deletes})
	return err
}
