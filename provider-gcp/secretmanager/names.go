package secretmanager

import (
	"fmt"
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
	// number and alias are by the description of Secret.version_aliases in Google's protos.
	number = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)
	alias  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,62}$`)
)

// parentOf is how names of a store's secrets begin.
func parentOf(spec *v1alpha1.GCPSpec) string {
	if spec.Location == "" {
		return "projects/" + spec.ProjectID
	}
	return "projects/" + spec.ProjectID + "/locations/" + spec.Location
}

// idOf returns the id of the secret that a key names: the id itself, or a full name that begins as
// the store's own secrets do. Another project or location is another store's.
func (c *Client) idOf(key string) (string, error) {
	id := key
	if strings.HasPrefix(key, "projects/") {
		own, ok := strings.CutPrefix(key, c.parent+secretsPart)
		if !ok {
			return "", provider.NewError(provider.Invalid, "key %s: is not a secret of %s; use a store of its own for another project or location", shown(key), c.parent)
		}
		id = own
	}
	if !secretID.MatchString(id) {
		return "", provider.NewError(provider.Invalid, "key %s: is not the id of a secret, which has at most 255 letters, digits, _ and - (the version goes into version, a part of a value into property)", shown(key))
	}
	return id, nil
}

// versionOf spells the version of a ref as Google does: a number, or an alias.
func versionOf(v string) (string, error) {
	switch {
	case v == "":
		return latest, nil
	case number.MatchString(v), alias.MatchString(v):
		return v, nil
	}
	return "", provider.NewError(provider.Invalid, "version %s: is neither a number nor an alias", shown(v))
}

// numberOf returns the version that an answer is of, if it is of the secret. Answers name projects by
// their number.
func numberOf(name, id string) (string, bool) {
	parent, rest, ok := strings.Cut(name, secretsPart)
	if !ok || !strings.HasPrefix(parent, "projects/") {
		return "", false
	}
	got, version, ok := strings.Cut(rest, versionsPart)
	return version, ok && got == id && number.MatchString(version)
}

// params says what a request is about, as Google's own clients do.
func params(field, name string) string { return field + "=" + url.QueryEscape(name) }

const maxShown = 80

// shown quotes a part of what a user wrote.
func shown(s string) string {
	if len(s) > maxShown {
		return fmt.Sprintf("%q… (%d characters)", strings.ToValidUTF8(s[:maxShown], ""), len(s))
	}
	return fmt.Sprintf("%q", s)
}

// about names what a ref asks for.
func about(ref provider.Ref) string {
	if ref.Version != "" {
		return fmt.Sprintf("secret %q version %q", ref.Key, ref.Version)
	}
	return fmt.Sprintf("secret %q", ref.Key)
}
