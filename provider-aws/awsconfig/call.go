package awsconfig

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const arnPrefix = "arn:"

// IsARN reports whether a key is an ARN. Such a key is complete.
func IsARN(key string) bool { return strings.HasPrefix(key, arnPrefix) }

// ID is how AWS knows a key: names get the store's prefix.
func (c *Config) ID(key string) string {
	if IsARN(key) {
		return key
	}
	return c.Prefix + key
}

// MaxID is the length of an id from which on AWS rejects a call, and with it a whole batch.
const MaxID = 2048

// CheckKey returns an error for a key that AWS cannot have.
func (c *Config) CheckKey(key string) error {
	if !utf8.ValidString(key) {
		return provider.NewError(provider.Invalid, "a key that is not UTF-8 is none that AWS can have")
	}
	if key == "" || len(c.ID(key)) > MaxID {
		return provider.NewError(provider.Invalid, "a key of %d characters is none that AWS can have", len(key))
	}
	return nil
}

// An Operation is a method of one of the SDK's clients.
type Operation[In, Out, Options any] func(context.Context, *In, ...func(*Options)) (*Out, error)

// Call makes one call. A session that ended before its time is replaced once.
func Call[In, Out, Options any](ctx context.Context, c *Config, f Operation[In, Out, Options], in *In) (*Out, error) {
	ctx, said := Listen(ctx)
	out, err := f(ctx, in)
	if IsExpired(CodeOf(err)) && c.Forget() {
		out, err = f(ctx, in)
	}
	return out, said.Or(err)
}

// Pages asks for one page after another until there are no more. fetch returns the token of the next
// page.
func Pages(what string, fetch func(token *string) (next *string, err error)) error {
	var token *string
	for {
		next, err := fetch(token)
		if err != nil || aws.ToString(next) == "" {
			return err
		}
		if aws.ToString(next) == aws.ToString(token) {
			return provider.NewError(provider.Unavailable, "%s: AWS sends the same page again and again", what)
		}
		token = next
	}
}

// TagMap makes a map of the tags of any service.
func TagMap[T any](tags []T, pair func(T) (key, value *string)) map[string]string {
	m := make(map[string]string, len(tags))
	for _, t := range tags {
		k, v := pair(t)
		m[aws.ToString(k)] = aws.ToString(v)
	}
	return m
}

// LoginFailure returns what the answer to a harmless call says of the login: nil also where only the
// permission for that very call is missing.
func (c *Config) LoginFailure(err error, codes Codes) error {
	if err == nil || IsAccessDenied(CodeOf(err)) {
		return nil
	}
	return c.Explain(err, "", codes)
}
