package kv

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/hashicorp/vault/api"

	"github.com/direct-secrets/direct-secrets/common/store"
)

// Get reads one version of a secret: a JSON object. KV v2 sends its custom metadata along.
func (c *Client) Get(ctx context.Context, ref store.Ref) (store.Value, error) {
	if err := checkKey(ref.Key); err != nil {
		return store.Value{}, err
	}
	query, err := c.engine.query(ref.Version)
	if err != nil {
		return store.Value{}, err
	}
	path := c.engine.read(c.mount, ref.Key)
	a, err := c.read(ctx, path, query)
	if err == nil {
		return c.engine.value(ref, a.Data)
	}
	var r *refusal
	switch {
	case !errors.As(err, &r):
		return store.Value{}, explain(err, about(ref))
	case r.status == http.StatusNotFound && c.engine.gone(a.Data):
		return store.Value{}, store.NewError(store.NotFound, "%s: has been deleted", about(ref))
	case r.status == http.StatusNotFound:
		return store.Value{}, c.missing(ctx, r, about(ref))
	case r.status == http.StatusForbidden && !r.foreign:
		return store.Value{}, store.NewError(store.Denied, "%s: access denied; allow read on %q in a policy", about(ref), shortened(path))
	}
	return store.Value{}, explain(err, about(ref))
}

// missing explains a 404: it is NotFound only if Vault says so of a secret, and the secrets engine is
// the one that it should be. A store that is set up wrongly must not look like an empty one.
func (c *Client) missing(ctx context.Context, r *refusal, what string) error {
	if r.foreign {
		return explain(r, what)
	}
	if err := c.checkMounted(ctx); err != nil {
		return err
	}
	if !notThere(r) {
		return store.NewError(store.Invalid, "%s: Vault knows no such path; check spec.path, spec.version and spec.namespace", what)
	}
	return store.NewError(store.NotFound, "%s: does not exist", what)
}

// read asks for what is at a path of the secrets engine. A session that ended before its time is
// replaced once.
func (c *Client) read(ctx context.Context, path string, query url.Values) (answer, error) {
	if c.engine.version() == (kv1{}).version() {
		// KV v2 would answer to the paths of v1, too, with its configuration and the like.
		if err := c.checkMounted(ctx); err != nil {
			return answer{}, err
		}
	}
	return c.call(ctx, func(s *session) (answer, error) { return read(ctx, s.secrets, path, query) })
}

func (c *Client) call(ctx context.Context, f func(*session) (answer, error)) (answer, error) {
	s, err := c.logins.session(ctx)
	if err != nil {
		return answer{}, err
	}
	a, err := f(s)
	if r := deniedBy(err); r != nil && c.logins.ended(ctx, s, r) {
		if s, err = c.logins.session(ctx); err != nil {
			return answer{}, err
		}
		a, err = f(s)
	}
	if status := statusOf(err); err == nil || status == http.StatusNotFound {
		s.worked.Store(true)
	}
	return a, err
}

func deniedBy(err error) *refusal {
	var r *refusal
	if errors.As(err, &r) && r.status == http.StatusForbidden {
		return r
	}
	return nil
}

// Check proves address, login and secrets engine. What is denied beyond the login does not count.
func (c *Client) Check(ctx context.Context) error {
	_, err := c.call(ctx, func(s *session) (answer, error) {
		_, err := s.lookup(ctx)
		return answer{}, err
	})
	if err != nil && deniedBy(err) == nil {
		return explain(err, "")
	}
	return c.checkMounted(ctx)
}

var plainWord = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// checkMounted asks once what is mounted where the store says. Vault tells this to every token that
// may do anything there; where it does not tell, the store is taken at its word.
func (c *Client) checkMounted(ctx context.Context) error {
	if c.mounted.Load() {
		return nil
	}
	a, err := c.call(ctx, func(s *session) (answer, error) {
		return read(ctx, s.secrets, "sys/internal/ui/mounts/"+c.mount, nil)
	})
	switch statusOf(err) {
	case http.StatusForbidden, http.StatusNotFound:
		return nil
	}
	if err != nil {
		return explain(err, "spec.path: asking what is mounted there")
	}
	if err := c.suits(a.Data); err != nil {
		return err
	}
	c.mounted.Store(true)
	return nil
}

// suits compares what Vault says of a mount with the store.
func (c *Client) suits(data json.RawMessage) error {
	var m api.MountOutput
	var at struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(data, &m) != nil || json.Unmarshal(data, &at) != nil {
		return store.NewError(store.Unavailable, "spec.path: the answer of Vault says nothing of the mount")
	}
	version := m.Options["version"]
	if version == "" {
		version = "1"
	}
	switch {
	case at.Path != c.mount+"/":
		return store.NewError(store.Invalid, "spec.path: %q is no mount of a secrets engine, but lies below one; a folder belongs to the key", c.mount)
	case m.Type != "kv" && m.Type != "generic":
		if !plainWord.MatchString(m.Type) {
			m.Type = "another"
		}
		return store.NewError(store.Invalid, "spec.path: %q is a secrets engine of type %s, not kv", c.mount, m.Type)
	case version != c.engine.version():
		return store.NewError(store.Invalid, "spec.version: the secrets engine %q is KV v%s; correct the version", c.mount, shortened(version))
	}
	return nil
}
