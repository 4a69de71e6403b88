package keyvault

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

var (
	secretName = regexp.MustCompile(`^[0-9a-zA-Z-]{1,127}$`)
	versionID  = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// A collection is what Key Vault keeps apart: the objects of one collection have their own names. Its value is its path in the API.
type collection string

const (
	secrets      collection = "secrets"
	certificates collection = "certificates"
	keys         collection = "keys"
)

var prefixes = map[string]collection{"secret/": secrets, "cert/": certificates, "key/": keys}

// noun returns what one object of the collection is called.
func (c collection) noun() string { return strings.TrimSuffix(string(c), "s") }

// split returns the collection that a key names by its prefix, and the rest of the key. Without a prefix it is that of secrets.
func split(key string) (collection, string) {
	for prefix, c := range prefixes {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			return c, rest
		}
	}
	return secrets, key
}

// objectOf returns the collection and the name of the object that a key names: the name of a secret, or secret/, cert/ or key/ and a name.
func objectOf(key string) (collection, string, error) {
	c, name := split(key)
	if !secretName.MatchString(name) {
		return "", "", provider.NewError(provider.Invalid, "key %s: is not the name of a %s, which has at most 127 letters, digits and - (the version goes into version, a part of a value into property)", provider.Quoted(key), c.noun())
	}
	return c, name, nil
}

// writableName returns the name of the secret that a key names. Only secrets can be written.
func writableName(key string) (string, error) {
	c, name, err := objectOf(key)
	if err == nil && c != secrets {
		err = provider.NewError(provider.Invalid, "key %s: a %s cannot be pushed to; use the name of a secret", provider.Quoted(key), c.noun())
	}
	return name, err
}

// parseID returns the name and the version in the ID of a secret, which is a URL.
func parseID(id *azsecrets.ID) (name, version string, ok bool) {
	return parseURL(secrets, (*string)(id))
}

// parseURL returns the name and the version in the ID of an object of a collection.
func parseURL(of collection, id *string) (name, version string, ok bool) {
	if id == nil {
		return "", "", false
	}
	u, err := url.Parse(*id)
	if err != nil {
		return "", "", false
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != string(of) || !secretName.MatchString(parts[1]) {
		return "", "", false
	}
	if len(parts) == 3 {
		version = parts[2]
	}
	return parts[1], version, true
}

// otherName returns the error of an answer about an object with another name. Key Vault ignores the case of names, but keys do not.
func otherName(ref provider.Ref, got, name string) error {
	if strings.EqualFold(got, name) {
		return provider.NewError(provider.Invalid, "%s: the %s is named %q; write the key so", about(ref), nounOf(ref), got)
	}
	return provider.NewError(provider.Unavailable, "%s: the response of Key Vault is about another %s", about(ref), nounOf(ref))
}

func nounOf(ref provider.Ref) string {
	c, _ := split(ref.Key)
	return c.noun()
}

// about describes a ref in messages.
func about(ref provider.Ref) string { return ref.About(nounOf(ref)) }
