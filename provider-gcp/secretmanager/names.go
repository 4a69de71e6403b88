package secretmanager

import (
	"context"
	"net/url"
	"regexp"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
)

const (
	secretsPart  = "/secrets/"
	versionsPart = "/versions/"
	latest       = "latest"
)

var (
	secretID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)
	// number and alias follow the description of Secret.version_aliases in Google's protos.
	number = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)
	// byNumber is the name of a secret as the console of Google Cloud shows it.
	byNumber = regexp.MustCompile(`^projects/[0-9]+/`)
	alias    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,62}$`)
)

// parentOf returns the prefix of the names of a store's secrets.
func parentOf(spec *v1alpha1.GCPSpec) string {
	if spec.Location == "" {
		return "projects/" + spec.ProjectID
	}
	return "projects/" + spec.ProjectID + "/locations/" + spec.Location
}

// idOf returns the id of the secret that a key names. The key is either the id or a full name with the prefix
// of the store's own secrets. Another project or location needs another store.
func (c *Client) idOf(key string) (string, error) {
	id := key
	if strings.HasPrefix(key, "projects/") {
		own, ok := strings.CutPrefix(key, c.parent+secretsPart)
		if !ok && byNumber.MatchString(key) {
			return "", provider.NewError(provider.Invalid, "key %s: names a project by its number; if it is the project of the store, write only the id of the secret, and otherwise use a store of its own", provider.Quoted(key))
		}
		if !ok {
			return "", provider.NewError(provider.Invalid, "key %s: is not a secret of %s; use a store of its own for another project or location", provider.Quoted(key), c.parent)
		}
		id = own
	}
	if !secretID.MatchString(id) {
		return "", provider.NewError(provider.Invalid, "key %s: is not the id of a secret, which has at most 255 letters, digits, _ and - (the version goes into version, a part of a value into property)", provider.Quoted(key))
	}
	return id, nil
}

var _ provider.Namer = &Client{}

// Name returns the full name of a secret, which a key can also be.
func (c *Client) Name(_ context.Context, key string) (provider.Name, error) {
	id, err := c.idOf(key)
	if err != nil {
		return provider.Name{}, err
	}
	return provider.Name{Key: c.parent + secretsPart + id}, nil
}

// versionOf returns the version of a ref in Google's format: a number or an alias.
func versionOf(v string) (string, error) {
	switch {
	case v == "":
		return latest, nil
	case number.MatchString(v), alias.MatchString(v):
		return v, nil
	}
	return "", provider.NewError(provider.Invalid, "version %s: is not a number or an alias", provider.Quoted(v))
}

// numberOf returns the version number in an answer, if the answer is for the secret. Answers contain the
// project's number instead of its id.
func numberOf(name, id string) (string, bool) {
	parent, rest, ok := strings.Cut(name, secretsPart)
	if !ok || !strings.HasPrefix(parent, "projects/") {
		return "", false
	}
	got, version, ok := strings.Cut(rest, versionsPart)
	return version, ok && got == id && number.MatchString(version)
}

// params returns the resource of a request in the format of Google's own clients.
func params(field, name string) string { return field + "=" + url.QueryEscape(name) }

// about describes a ref in messages.
func about(ref provider.Ref) string { return ref.About("secret") }
