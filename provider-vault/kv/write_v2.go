package kv

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/hashicorp/vault/api"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

const (
	// maxReads is how many times a secret is read until its metadata and value match.
	maxReads = 3
	// markTimeout limits the second attempt to mark a secret, which does not depend on the caller's context.
	markTimeout = 3 * time.Second
)

// features implements writing. KV v2 replaces only the version that the caller names, and version 0 means that
// there is none.
func (kv2) features() provider.Features { return provider.Features{Exclusive: true, Guarded: true} }

func (kv2) minimum() int { return 0 }

// metadata returns the path of a secret with all its versions and metadata.
func (e kv2) metadata(c *Client, key string) string { return e.list(c.mount, key) }

// readMetadata reads the metadata of a secret.
func (e kv2) readMetadata(ctx context.Context, c *Client, key string) (kv2Metadata, error) {
	a, err := c.do(ctx, request{key, e.metadata(c, key), "read", gets(nil)})
	if err != nil {
		return kv2Metadata{}, err
	}
	m, err := session.Data[kv2Metadata](a)
	if err != nil || m.Created == "" {
		return kv2Metadata{}, provider.NewError(provider.Unavailable, "%s: the response of Vault has no metadata", about(provider.Ref{Key: key}))
	}
	return m, nil
}

// readMetadataUnchanged returns the metadata of a secret, and a Conflict if it has changed since seen. Version numbers
// alone would not distinguish it from a new secret of the same name.
func (e kv2) readMetadataUnchanged(ctx context.Context, c *Client, key string, seen provider.Observed) (kv2Metadata, error) {
	m, err := e.readMetadata(ctx, c, key)
	if err == nil && (m.Created != seen.ID || m.token() != seen.Token) {
		err = provider.ErrChanged
	}
	return m, err
}

func gets(query url.Values) func(context.Context, *api.Client, string) (session.Answer, error) {
	return func(ctx context.Context, c *api.Client, path string) (session.Answer, error) {
		return session.Read(ctx, c, path, query)
	}
}

// observe reads the metadata, and then the version that is current by it, so that both match.
func (e kv2) observe(ctx context.Context, c *Client, key string) (provider.Observed, settings, error) {
	for range maxReads {
		m, err := e.readMetadata(ctx, c, key)
		if err != nil {
			return provider.Observed{}, settings{}, err
		}
		o := provider.Observed{ID: m.Created, Mark: m.Custom[markKey], Token: m.token()}
		has, err := m.settings(key)
		if err != nil || m.Current == 0 {
			return o, has, err
		}
		v, there, err := e.current(ctx, c, key, m)
		switch {
		case err != nil:
			return provider.Observed{}, settings{}, err
		case there:
			if v.Version != "" {
				o.Data, o.Version = spelled(v.Data), v.Version
			}
			return o, has, nil
		}
	}
	return provider.Observed{}, settings{}, provider.NewError(provider.Unavailable, "%s: other clients keep deleting and creating it; retrying", about(provider.Ref{Key: key}))
}

// current reads the version that is current by the metadata. It returns the zero Value if that version is
// deleted or destroyed. there is false if the secret has changed since.
func (e kv2) current(ctx context.Context, c *Client, key string, m kv2Metadata) (v provider.Value, there bool, err error) {
	path := e.read(c.mount, key)
	query := url.Values{"version": {strconv.FormatInt(m.Current, 10)}}
	a, err := c.vault.Call(ctx, func(s *session.Session) (session.Answer, error) { return session.Read(ctx, s.Secrets, path, query) })
	switch status := session.StatusOf(err); {
	case status == http.StatusNotFound && e.isDeleted(a):
		return provider.Value{}, m.has(a), nil
	case err != nil:
		err = c.refused(ctx, err, request{key: key, path: path, needs: "read"})
		if provider.IsNotFound(err) {
			return provider.Value{}, false, nil
		}
		return provider.Value{}, false, err
	}
	v, err = e.value(provider.Ref{Key: key}, a)
	return v, m.has(a), err
}

// put writes a value if version is still the current one; 0 means that the secret does not exist.
func (e kv2) put(ctx context.Context, c *Client, key string, data []byte, version int64) (v kv2Version, number int64, err error) {
	body := map[string]any{"data": json.RawMessage(data), "options": map[string]any{"cas": version}}
	a, err := c.do(ctx, request{key, e.read(c.mount, key), "create and update", sends(body)})
	if err != nil {
		return v, 0, err
	}
	made, err := session.Data[struct {
		kv2Version
		Version int64 `json:"version"`
	}](a)
	if err != nil || made.Version != version+1 || made.Created == "" {
		return v, 0, provider.NewError(provider.Unavailable, "%s: the response of Vault has no version", about(provider.Ref{Key: key}))
	}
	return made.kv2Version, made.Version, nil
}

// create creates the first version, and then writes the mark and the settings, for which Vault needs another
// call. A secret that stays without a mark is never deleted.
func (e kv2) create(ctx context.Context, c *Client, key string, data []byte, s settings, mark string) (provider.Written, error) {
	made, number, err := e.put(ctx, c, key, data, 0)
	if err != nil {
		return provider.Written{}, err
	}
	s = s.marked(mark)
	err = e.sign(ctx, c, key, made, s)
	if class := provider.ClassOf(err); err != nil && (class == provider.Unavailable || class == provider.Throttled) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
		defer cancel()
		err = e.sign(ctx, c, key, made, s)
	}
	if err != nil {
		return provider.Written{}, err
	}
	return provider.Written{Version: strconv.FormatInt(number, 10), ID: made.Created}, nil
}

// sign writes the mark if the secret started with the version that create made. A secret with older metadata,
// or one that was created again since, is owned by another writer.
func (e kv2) sign(ctx context.Context, c *Client, key string, made kv2Version, s settings) error {
	m, err := e.readMetadata(ctx, c, key)
	if err == nil && m.Created != made.Created {
		err = provider.ErrChanged
	}
	if err == nil {
		err = e.writeSettings(ctx, c, key, m, s)
	}
	return err
}

// update replaces the version in seen.
func (e kv2) update(ctx context.Context, c *Client, key string, seen provider.Observed, data []byte, s settings) (provider.Written, error) {
	m, err := e.readMetadataUnchanged(ctx, c, key, seen)
	if err != nil {
		return provider.Written{}, err
	}
	w := provider.Written{Version: seen.Version, ID: seen.ID}
	if data != nil {
		_, number, err := e.put(ctx, c, key, data, m.Current)
		if err != nil {
			return provider.Written{}, err
		}
		w.Version = strconv.FormatInt(number, 10)
	}
	if s.empty() {
		return w, nil
	}
	if err := e.writeSettings(ctx, c, key, m, s); err != nil {
		return provider.Written{}, err
	}
	return w, nil
}

// writeSettings writes settings. Without the capability patch it writes all custom metadata again, as it was just
// read.
func (e kv2) writeSettings(ctx context.Context, c *Client, key string, m kv2Metadata, s settings) error {
	path := e.metadata(c, key)
	_, err := c.vault.Call(ctx, func(on *session.Session) (session.Answer, error) { return patches(s.body(nil))(ctx, on.Secrets, path) })
	r := request{key, path, "patch, or create and update,", sends(s.body(m.Custom))}
	switch session.StatusOf(err) {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		_, err = c.do(ctx, r)
		return err
	case http.StatusNotFound: // The secret has just been deleted. Vault says no more.
		return provider.ErrChanged
	}
	if err != nil {
		err = c.refused(ctx, err, r)
	}
	return err
}

// mark compares the version number, because an update has changed the token meanwhile.
func (e kv2) mark(ctx context.Context, c *Client, key string, seen provider.Observed, mark string) error {
	m, err := e.readMetadata(ctx, c, key)
	switch {
	case err != nil:
		return err
	case m.Created != seen.ID, m.Custom[markKey] != seen.Mark,
		seen.Version == "" && m.token() != seen.Token, seen.Version != "" && strconv.FormatInt(m.Current, 10) != seen.Version:
		return provider.ErrChanged
	}
	return e.writeSettings(ctx, c, key, m, settings{}.marked(mark))
}

func (e kv2) remove(ctx context.Context, c *Client, key string, seen provider.Observed) error {
	m, err := e.readMetadataUnchanged(ctx, c, key, seen)
	if err == nil && m.Custom[markKey] != seen.Mark {
		err = provider.ErrChanged
	}
	if err != nil {
		return err
	}
	_, err = c.do(ctx, request{key, e.metadata(c, key), "delete", deletes})
	return err
}
