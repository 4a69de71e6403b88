package keyvault

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/azureconfig"
)

// A remote is the secret of a provider.Target.
type remote struct {
	provider.Target
	settings

	name string
}

func (r remote) String() string { return about(provider.Ref{Key: r.Key}) }

func remoteOf(t provider.Target) (remote, error) {
	name, err := writableName(t.Key)
	if err != nil {
		return remote{}, err
	}
	s, err := settingsOf(t.Metadata)
	return remote{Target: t, settings: s, name: name}, err
}

// explain explains the error of a call; nil stays nil.
func (r remote) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return azureconfig.Explain(ctx, err, r.String(), azureconfig.WriteSecret)
}

// unrestored adds to an error that a version covers that of another client, and unchecked that it possibly does.
func (r remote) unrestored(version string, err error) error {
	return after(version, "the one that another client wrote at the same time cannot be restored", err)
}

func (r remote) unchecked(version string, err error) error {
	return after(version, "whether another client wrote at the same time cannot be checked", err)
}

// unfinishedRestore adds to an error that a deletion took a version of another client, which is not recovered yet.
func (r remote) unfinishedRestore(err error) error {
	return &provider.Error{Class: provider.ClassOf(err), RetryAfter: provider.RetryAfter(err), Message: "another client changed the secret meanwhile, so that it must be recovered: " + provider.Safe(err).Message}
}

func after(version, but string, err error) error {
	return &provider.Error{Class: provider.ClassOf(err), RetryAfter: provider.RetryAfter(err), Message: "version " + version + " was written, and " + but + ": " + provider.Safe(err).Message}
}

// stored is a version of a secret. The zero value has no settings.
type stored struct {
	azsecrets.Secret

	version string
}

func (s stored) tag(name string) string {
	if v := s.Tags[name]; v != nil {
		return *v
	}
	return ""
}

func (s stored) id() string { return idOf(s.Tags, s.version) }

// idOf returns what Create has written, or the version of a secret of another client.
func idOf(tags map[string]*string, version string) string {
	if id := tags[idTag]; id != nil && *id != "" {
		return *id
	}
	return version
}

// parameters returns what stores the same version again.
func (s stored) parameters() azsecrets.SetSecretParameters {
	p := azsecrets.SetSecretParameters{Value: s.Value, ContentType: s.ContentType, Tags: s.Tags}
	if a := s.Attributes; a != nil {
		p.SecretAttributes = &azsecrets.SecretAttributes{Enabled: a.Enabled, NotBefore: a.NotBefore, Expires: a.Expires}
	}
	return p
}

// current reads the current version.
func (c *vault) current(ctx context.Context, r remote) (stored, error) { return c.version(ctx, r, "") }

// version reads a version; empty means the current one.
func (c *vault) version(ctx context.Context, r remote, version string) (stored, error) {
	out, err := c.get(ctx, r.name, version, nil)
	if err != nil {
		return stored{}, r.explain(ctx, err)
	}
	got, is, ok := parseID(out.ID)
	switch {
	case !ok || out.Value == nil || is == "":
		return stored{}, notKeyVault(provider.Ref{Key: r.Key})
	case got != r.name:
		return stored{}, otherName(provider.Ref{Key: r.Key}, got, r.name)
	case deref(out.Managed):
		return stored{}, provider.NewError(provider.Invalid, "%s: is part of a certificate, which cannot be pushed to; choose another key", r)
	}
	return stored{out.Secret, is}, nil
}

// unchanged returns the current version, which must be the one that was seen.
func (c *vault) unchanged(ctx context.Context, r remote, seen provider.Observed) (stored, error) {
	s, err := c.current(ctx, r)
	if err == nil {
		err = provider.Observed{Version: s.version, ID: s.id(), Mark: s.tag(markTag)}.Unchanged(seen)
	}
	return s, err
}

// versions returns the IDs of all versions.
func (c *vault) versions(ctx context.Context, r remote) (map[string]bool, error) {
	all := map[string]bool{}
	err := c.eachVersion(ctx, r, func(id string, _ *azsecrets.SecretProperties) { all[id] = true })
	return all, err
}

func (c *vault) eachVersion(ctx context.Context, r remote, do func(id string, s *azsecrets.SecretProperties)) error {
	of := func(p azsecrets.ListSecretPropertiesVersionsResponse) azsecrets.SecretPropertiesListResult {
		return p.SecretPropertiesListResult
	}
	explain := func(err error) error { return r.explain(ctx, err) }
	for all, err := range pagesOf(ctx, c.config, c.api.NewListSecretPropertiesVersionsPager(r.name, nil), of, r.String(), explain) {
		if err != nil {
			return err
		}
		for _, s := range all {
			got, id, ok := parseID(s.ID)
			if !ok || got != r.name || id == "" {
				return provider.NewError(provider.Unavailable, "%s: the list of versions is not that of Key Vault; check spec.vaultURL", r)
			}
			do(id, s)
		}
	}
	return nil
}

// others are versions that other clients wrote at the same time.
type others struct {
	current  string
	versions []otherVersion
}

type otherVersion struct {
	id      string
	created time.Time
}

// others returns the versions that are neither known from before nor the own one.
func (c *vault) others(ctx context.Context, r remote, before map[string]bool, own string) (o others, err error) {
	err = c.eachVersion(ctx, r, func(id string, s *azsecrets.SecretProperties) {
		if before[id] || id == own {
			return
		}
		v := otherVersion{id: id}
		if s.Attributes != nil && s.Attributes.Created != nil {
			v.created = *s.Attributes.Created
		}
		o.versions = append(o.versions, v)
	})
	var s stored
	if err == nil && len(o.versions) > 0 {
		s, err = c.current(ctx, r)
	}
	if err != nil {
		return o, r.unchecked(own, err)
	}
	o.current = s.version
	return o, nil
}

// latest returns the latest version that the own one covers; empty if there is none. Times are in seconds, so of several versions of one
// second any can be the result.
func (o others) latest(own string) (id string) {
	var at time.Time
	for _, v := range o.versions {
		if v.id != o.current && v.id != own && !v.created.Before(at) {
			id, at = v.id, v.created
		}
	}
	return id
}
