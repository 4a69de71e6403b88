package keyvault

import (
	"bytes"
	"context"
	"crypto/rand"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

var _ provider.Writer = &Client{}

// Features returns both features. Key Vault has no conditional write. The versions of a secret show whether another client wrote at the
// same time, and writes of one client to a secret do not overlap.
func (c *Client) Features() provider.Features {
	return provider.Features{Exclusive: true, Guarded: true}
}

// Observe reads the current version of a secret, also one that has expired.
func (c *Client) Observe(ctx context.Context, t provider.Target) (provider.Observed, error) {
	r, err := remoteOf(t)
	if err != nil {
		return provider.Observed{}, err
	}
	s, err := c.existing(ctx, r)
	if err != nil {
		return provider.Observed{}, err
	}
	return provider.Observed{Data: []byte(*s.Value), Version: s.version, ID: s.id(), Mark: s.tag(markTag), Drift: r.drift(s)}, nil
}

// Create creates a secret with the mark. If another client creates the secret at the same time, Create restores the value of that client,
// and returns Conflict.
func (c *Client) Create(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
	r, err := remoteOf(t)
	if err == nil {
		err = checkValue(data)
	}
	if err != nil {
		return provider.Written{}, err
	}
	switch _, err := c.existing(ctx, r); {
	case err == nil:
		return provider.Written{}, provider.NewError(provider.Conflict, "%s: another client created it meanwhile; retrying", r)
	case !provider.IsNotFound(err):
		return provider.Written{}, err
	}
	p, err := r.onto(stored{})
	if err != nil {
		return provider.Written{}, err
	}
	p.Value = to.Ptr(string(data))
	p.Tags[markTag], p.Tags[idTag] = &mark, to.Ptr(rand.Text())
	version, before, err := c.setNew(ctx, r, p)
	if err != nil {
		return provider.Written{}, err
	}
	others, err := c.others(ctx, r, before, version)
	if err == nil && len(others.versions) > 0 {
		err = c.giveBack(ctx, r, others, version)
	}
	return provider.Written{Version: version, ID: *p.Tags[idTag]}, err
}

// giveBack restores the value of another client if the own version covers it. It always returns an error.
func (c *vault) giveBack(ctx context.Context, r remote, o others, own string) error {
	conflict := provider.NewError(provider.Conflict, "%s: another client created it at the same time; retrying", r)
	if o.current != own {
		return conflict
	}
	s, err := c.version(ctx, r, o.latest(own))
	if err != nil {
		return r.unrestored(own, err)
	}
	if _, err := c.set(ctx, r, s.parameters()); err != nil {
		return r.unrestored(own, r.explain(ctx, err))
	}
	return conflict
}

// Update adds a version with the value and the settings, or changes only the settings of the current version.
func (c *Client) Update(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
	r, err := remoteOf(t)
	if err != nil {
		return provider.Written{}, err
	}
	if data == nil || seen.Version != "" && bytes.Equal(data, seen.Data) {
		return c.align(ctx, r, seen)
	}
	if err := checkValue(data); err != nil {
		return provider.Written{}, err
	}
	return c.replace(ctx, r, seen, data)
}

// align changes the settings of the current version. If Key Vault keeps a content type that must be empty, it adds a version with the
// same value.
func (c *vault) align(ctx context.Context, r remote, seen provider.Observed) (provider.Written, error) {
	same := provider.Written{Version: seen.Version, ID: seen.ID}
	if len(seen.Drift) == 0 {
		return same, nil
	}
	s, err := c.unchanged(ctx, r, seen)
	if err != nil {
		return same, err
	}
	p, err := r.onto(s)
	if err != nil {
		return same, err
	}
	after, err := c.patch(ctx, r, seen.Version, azsecrets.UpdateSecretPropertiesParameters{ContentType: p.ContentType, SecretAttributes: p.SecretAttributes, Tags: p.Tags})
	if err == nil && p.ContentType != nil && *p.ContentType == "" && after != "" {
		return c.replace(ctx, r, seen, []byte(*s.Value))
	}
	return same, err
}

// replace adds a version. It lists the versions before the read that shows that the secret is unchanged, so that each version that
// comes later is known as that of another client.
func (c *vault) replace(ctx context.Context, r remote, seen provider.Observed, data []byte) (provider.Written, error) {
	before, err := c.versions(ctx, r)
	if err != nil {
		return provider.Written{}, err
	}
	s, err := c.unchanged(ctx, r, seen)
	if err != nil {
		return provider.Written{}, err
	}
	p, err := r.onto(s)
	if err != nil {
		return provider.Written{}, err
	}
	p.Value = to.Ptr(string(data))
	version, err := c.set(ctx, r, p)
	if err != nil {
		return provider.Written{}, r.explain(ctx, err)
	}
	w := provider.Written{Version: version, ID: idOf(p.Tags, version)}
	o, err := c.others(ctx, r, before, version)
	if err != nil {
		return provider.Written{}, err
	}
	if covered := o.latest(version); covered != "" {
		lost, err := c.version(ctx, r, covered)
		switch {
		case err != nil:
			return provider.Written{}, r.unrestored(version, err)
		case *lost.Value != string(data):
			w.Lost = []byte(*lost.Value)
		}
	}
	return w, nil
}

// Mark replaces the mark of a secret.
func (c *Client) Mark(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
	r, err := remoteOf(provider.Target{Key: t.Key})
	if err != nil {
		return err
	}
	s, err := c.unchanged(ctx, r, seen)
	if err != nil {
		return err
	}
	p, err := remote{Target: r.Target, name: r.name, settings: settings{Tags: map[string]string{markTag: mark}}}.onto(s)
	if err == nil {
		_, err = c.patch(ctx, r, seen.Version, azsecrets.UpdateSecretPropertiesParameters{Tags: p.Tags})
	}
	return err
}

// patch changes settings of a version, and returns the content type that it then has.
func (c *vault) patch(ctx context.Context, r remote, version string, p azsecrets.UpdateSecretPropertiesParameters) (contentType string, err error) {
	var out azsecrets.UpdateSecretPropertiesResponse
	if err = c.config.Ready(ctx); err == nil {
		out, err = c.api.UpdateSecretProperties(ctx, r.name, version, p, nil)
	}
	return deref(out.ContentType), r.explain(ctx, err)
}

// Delete deletes a secret with all its versions. Key Vault keeps it as soft-deleted. If that deletes a version of another client, Delete
// recovers the secret, and returns Conflict.
func (c *Client) Delete(ctx context.Context, t provider.Target, seen provider.Observed) error {
	r, err := remoteOf(provider.Target{Key: t.Key})
	if err != nil {
		return err
	}
	if c.unfinished.of(r.name).restores {
		if err := c.restore(ctx, r); err != nil {
			return err
		}
	}
	if _, err := c.unchanged(ctx, r, seen); err != nil {
		return err
	}
	out, err := c.api.DeleteSecret(ctx, r.name, nil)
	if err != nil {
		return r.explain(ctx, err)
	}
	if _, version, _ := parseID(out.ID); version == "" || version == seen.Version {
		return nil
	}
	// Key Vault does not find the deleted secret for some seconds. That is not a deletion.
	if err := c.restore(ctx, r); err != nil {
		return r.unfinishedRestore(err)
	}
	return provider.ErrChanged
}

// set adds a version. It is never repeated, because each repetition adds another one. The error is not explained.
func (c *vault) set(ctx context.Context, r remote, p azsecrets.SetSecretParameters) (version string, err error) {
	if err := c.config.Ready(ctx); err != nil {
		return "", err
	}
	if deref(p.ContentType) == "" {
		p.ContentType = nil // A new version without one has none.
	}
	once := policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
	out, err := c.api.SetSecret(once, r.name, p, nil)
	if err != nil {
		return "", err
	}
	got, version, ok := parseID(out.ID)
	if !ok || version == "" || got != r.name {
		return "", provider.NewError(provider.Unavailable, "%s: the response of Key Vault is about another secret", r)
	}
	return version, nil
}
