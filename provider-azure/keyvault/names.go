package keyvault

import (
	"fmt"
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

// nameOf returns the name of the secret that a key names: the name itself, or secret/ and the name.
func nameOf(key string) (string, error) {
	for _, prefix := range []string{"cert/", "key/"} {
		if strings.HasPrefix(key, prefix) {
			return "", provider.NewError(provider.Invalid, "key %s: certificates and keys cannot be read yet; a certificate with its private key is also a secret with the same name", shown(key))
		}
	}
	name := strings.TrimPrefix(key, "secret/")
	if !secretName.MatchString(name) {
		return "", provider.NewError(provider.Invalid, "key %s: is not the name of a secret, which has at most 127 letters, digits and - (the version goes into version, a part of a value into property)", shown(key))
	}
	return name, nil
}

// parseID returns the name and the version in the ID of a secret, which is a URL.
func parseID(id *azsecrets.ID) (name, version string, ok bool) {
	if id == nil {
		return "", "", false
	}
	u, err := url.Parse(string(*id))
	if err != nil {
		return "", "", false
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "secrets" || !secretName.MatchString(parts[1]) {
		return "", "", false
	}
	if len(parts) == 3 {
		version = parts[2]
	}
	return parts[1], version, true
}

// otherName returns the error of an answer about a secret with another name. Key Vault ignores the case of names, but keys do not.
func otherName(ref provider.Ref, got, name string) error {
	if strings.EqualFold(got, name) {
		return provider.NewError(provider.Invalid, "%s: the secret is named %q; write the key so", about(ref), got)
	}
	return provider.NewError(provider.Unavailable, "%s: the response of Key Vault is about another secret", about(ref))
}

const maxShown = 80

// shown quotes a part of a user's text.
func shown(s string) string {
	if len(s) > maxShown {
		return fmt.Sprintf("%q… (%d characters)", strings.ToValidUTF8(s[:maxShown], ""), len(s))
	}
	return fmt.Sprintf("%q", s)
}

// about describes a ref in messages.
func about(ref provider.Ref) string {
	if ref.Version != "" {
		return fmt.Sprintf("secret %q version %q", ref.Key, ref.Version)
	}
	return fmt.Sprintf("secret %q", ref.Key)
}
