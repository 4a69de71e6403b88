package keyvault

import (
	"fmt"
	"maps"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// markTag holds the mark of a provider.Writer, and idTag what distinguishes the secret from a later one of the same name.
	markTag = provider.Reserved + "_created-by"
	idTag   = provider.Reserved + "_id"
)

// The limits follow https://learn.microsoft.com/azure/key-vault/general/about-keys-secrets-certificates and .../secrets/about-secrets.
const (
	maxSize        = 25 << 10 // bytes of a value
	maxTags        = 15
	maxTag         = 256 // characters of a name or a value
	maxContentType = 255
)

// settings is the decoded metadata of a Target. A field that is not set leaves the secret's setting unchanged.
type settings struct {
	Tags        map[string]string `json:"tags"`
	ContentType *string           `json:"contentType"`
	// ActivationDate and ExpirationDate are times by RFC 3339.
	ActivationDate string `json:"activationDate"`
	ExpirationDate string `json:"expirationDate"`

	activation, expiration *time.Time
}

func refused(format string, args ...any) error {
	return provider.NewError(provider.Invalid, format, args...)
}

// checkValue rejects values that Key Vault does not store.
func checkValue(data []byte) error {
	switch {
	case len(data) > maxSize:
		return refused("the value has %d bytes, at most %d are allowed", len(data), maxSize)
	case !utf8.Valid(data):
		return refused("the value is not text, which Key Vault needs; encode it, for example as base64")
	}
	return nil
}

// settingsOf decodes metadata strictly, so that no unknown field is silently ignored.
func settingsOf(metadata []byte) (s settings, err error) {
	if err := provider.DecodeMetadata(metadata, &s, "tags (a map of strings), contentType, activationDate and expirationDate"); err != nil {
		return s, err
	}
	err = provider.CheckSettings("tags", s.Tags, func(name, value string) (wrong string) {
		if name == "" || utf8.RuneCountInString(name) > maxTag || utf8.RuneCountInString(value) > maxTag {
			return fmt.Sprintf("must have a name, and at most %d characters in its name and its value", maxTag)
		}
		return ""
	})
	if err != nil {
		return s, err
	}
	if s.ContentType != nil && utf8.RuneCountInString(*s.ContentType) > maxContentType {
		return s, refused("metadata.contentType: must have at most %d characters", maxContentType)
	}
	if s.activation, err = date("activationDate", s.ActivationDate); err != nil {
		return s, err
	}
	if s.expiration, err = date("expirationDate", s.ExpirationDate); err != nil {
		return s, err
	}
	if s.activation != nil && s.expiration != nil && !s.activation.Before(*s.expiration) {
		return s, refused("metadata.expirationDate: must be after activationDate")
	}
	return s, nil
}

// date parses a time in whole seconds, as Key Vault stores it.
func date(field, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, refused("metadata.%s: %s is not a time; write it as 2027-01-31T12:00:00Z", field, provider.Quoted(text))
	}
	return to.Ptr(t.Truncate(time.Second)), nil
}

// drift returns the names of the settings that differ from those of a secret.
func (s settings) drift(of stored) (names []string) {
	names = provider.Differing("tags", s.Tags, tagsOf(of.Tags))
	if s.ContentType != nil && *s.ContentType != deref(of.ContentType) {
		names = append(names, "contentType")
	}
	a := deref(of.Attributes)
	for _, d := range []struct {
		name       string
		want, have *time.Time
	}{{"activationDate", s.activation, a.NotBefore}, {"expirationDate", s.expiration, a.Expires}} {
		if d.want != nil && (d.have == nil || !d.want.Equal(*d.have)) {
			names = append(names, d.name)
		}
	}
	return names
}

// onto returns the settings of a secret with these applied, without a value.
func (s settings) onto(of stored) (azsecrets.SetSecretParameters, error) {
	p := of.parameters()
	p.Value, p.Tags = nil, maps.Clone(p.Tags)
	if p.Tags == nil {
		p.Tags = map[string]*string{}
	}
	for k, v := range s.Tags {
		p.Tags[k] = &v
	}
	if s.ContentType != nil {
		p.ContentType = s.ContentType
	}
	if p.SecretAttributes == nil {
		p.SecretAttributes = &azsecrets.SecretAttributes{}
	}
	if s.activation != nil {
		p.SecretAttributes.NotBefore = s.activation
	}
	if s.expiration != nil {
		p.SecretAttributes.Expires = s.expiration
	}
	n := len(p.Tags)
	if of.version == "" {
		n += 2 // those of Create
	}
	if n > maxTags {
		return p, refused("metadata.tags: with them, and those of the operator, the secret has %d tags, at most %d are allowed", n, maxTags)
	}
	return p, nil
}

// deref returns what a pointer points to, or the zero value.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
