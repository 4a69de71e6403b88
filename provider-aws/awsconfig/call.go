package awsconfig

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const arnPrefix = "arn:"

// IsARN reports whether a key is an ARN, to which no prefix is added.
func IsARN(key string) bool { return strings.HasPrefix(key, arnPrefix) }

// ID returns the name or ARN that AWS uses for a key: the store's prefix is added to names only.
func (c *Config) ID(key string) string {
	if IsARN(key) {
		return key
	}
	return c.Prefix + key
}

// MaxID is the longest id that AWS accepts, in bytes. A longer one makes it reject the whole batch.
const MaxID = 2048

// CheckKey returns an error for a key that cannot exist in AWS.
func (c *Config) CheckKey(key string) error {
	if !utf8.ValidString(key) {
		return provider.NewError(provider.Invalid, "a key that is not UTF-8 is not valid in AWS")
	}
	if key == "" || len(c.ID(key)) > MaxID {
		return provider.NewError(provider.Invalid, "a key of %d characters is not valid in AWS", len(key))
	}
	return nil
}

// An Operation is a method of one of the SDK's clients.
type Operation[In, Out, Options any] func(context.Context, *In, ...func(*Options)) (*Out, error)

// Call makes one call. If the session has expired early, Call logs in again and retries once.
func Call[In, Out, Options any](ctx context.Context, c *Config, f Operation[In, Out, Options], in *In) (*Out, error) {
	ctx, lastError := provider.KeepLastError(ctx)
	out, err := f(ctx, in)
	if IsExpired(CodeOf(err)) && c.Forget() {
		out, err = f(ctx, in)
	}
	return out, lastError.Or(err)
}

// Pages is Listing.Pages for the tokens of AWS.
func Pages(l *provider.Listing, what string, fetch func(token *string) (next *string, err error)) error {
	return l.Pages(what, func(token string) (string, error) {
		var from *string
		if token != "" {
			from = &token
		}
		next, err := fetch(from)
		return aws.ToString(next), err
	})
}

// TagMap turns the tags of any service into a map.
func TagMap[T any](tags []T, pair func(T) (key, value *string)) map[string]string {
	m := make(map[string]string, len(tags))
	for _, t := range tags {
		k, v := pair(t)
		m[aws.ToString(k)] = aws.ToString(v)
	}
	return m
}

// LoginFailure derives from the answer to a harmless call whether the login works. It also returns nil if only
// the permission for that call is missing.
func (c *Config) LoginFailure(err error, codes Codes) error {
	if err == nil || IsAccessDenied(CodeOf(err)) {
		return nil
	}
	return c.Explain(err, "", codes)
}

// NoList returns the error for an answer without the requested list. AWS sends an empty list if nothing
// matches, so the answer does not come from AWS.
func NoList(what string) error {
	return provider.NewError(provider.Unavailable, "%s: the response is not from AWS; check spec.endpoint", what)
}
