// Package ststoken generates temporary AWS access keys for the generator Kind STSSessionToken.
package ststoken

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// A Generator generates the access keys of one object, for a role or for the user whose access key it has.
type Generator struct {
	api    api
	config *awsconfig.Config
	asks   v1alpha1.STSRequestParameters
	role   bool
	// spent is set once AWS has accepted or rejected the token code, which works only once.
	spent atomic.Bool
}

// An api holds the calls of the SDK's client that this package needs.
type api interface {
	GetCallerIdentity(context.Context, *sts.GetCallerIdentityInput, ...func(*sts.Options)) (*sts.GetCallerIdentityOutput, error)
	GetSessionToken(context.Context, *sts.GetSessionTokenInput, ...func(*sts.Options)) (*sts.GetSessionTokenOutput, error)
}

// An Object is a generator Kind of temporary access keys.
type Object interface {
	awsconfig.Object

	GeneratorSpec() *common.GeneratorSpec
	// RequestParameters returns the parameters of the request to STS; nil means its defaults.
	RequestParameters() *v1alpha1.STSRequestParameters
}

var (
	_ provider.Generator = &Generator{}
	_ provider.Checker   = &Generator{}
)

// Connect returns the Generator of an object, namespaced or not. It does not call AWS.
func Connect[S Object](ctx context.Context, s S, creds provider.Credentials) (provider.Generator, error) {
	var asks v1alpha1.STSRequestParameters
	if p := s.RequestParameters(); p != nil {
		asks = *p
	}
	if err := check(s.AWS(), s.GeneratorSpec(), asks); err != nil {
		return nil, err
	}
	c, err := awsconfig.LoadSTS(ctx, s, awsconfig.Session{
		Duration: time.Duration(asks.SessionDuration) * time.Second, SerialNumber: asks.SerialNumber, TokenCode: asks.TokenCode,
	}, creds)
	if err != nil {
		return nil, err
	}
	caller := c
	role := c.HasRole()
	if role && asks.TokenCode != "" {
		caller = c.AsCaller() // Validating the role would use up the code.
	}
	return &Generator{config: c, asks: asks, role: role, api: caller.STS()}, nil
}

// Close releases connections.
func (g *Generator) Close() error { return g.config.Close() }

// Check asks AWS for the owner of the credentials, which needs no permission.
func (g *Generator) Check(ctx context.Context) error {
	out, err := awsconfig.Call(ctx, g.config, g.api.GetCallerIdentity, &sts.GetCallerIdentityInput{})
	switch {
	case err != nil:
		return g.explain(err)
	case aws.ToString(out.Arn) == "":
		return provider.NewError(provider.Unavailable, "the response of AWS has no identity; check spec.endpoint")
	case !g.role && strings.Contains(*out.Arn, ":assumed-role/"):
		return provider.NewError(provider.Invalid, needsRole)
	}
	return nil
}

// Generate generates an access key.
func (g *Generator) Generate(ctx context.Context) (provider.Generated, error) {
	code := g.asks.TokenCode != ""
	if code && g.spent.Load() {
		return provider.Generated{}, provider.NewError(provider.Denied, spentCode)
	}
	key, err := g.key(ctx)
	if code && (err == nil || isBadCode(err)) {
		g.spent.Store(true)
	}
	if err != nil {
		return provider.Generated{}, g.explain(err)
	}
	if !key.HasKeys() || key.SessionToken == "" || key.Expires.IsZero() {
		return provider.Generated{}, provider.NewError(provider.Unavailable, "the response of AWS has no access key; check spec.endpoint")
	}
	return provider.Generated{Expires: key.Expires, Values: map[string][]byte{
		"access_key_id":     []byte(key.AccessKeyID),
		"secret_access_key": []byte(key.SecretAccessKey),
		"session_token":     []byte(key.SessionToken),
		"expiration":        []byte(strconv.FormatInt(key.Expires.Unix(), 10)),
	}}, nil
}

// key requests an access key: for the role if there is one, because AWS issues no session token to a role.
func (g *Generator) key(ctx context.Context) (aws.Credentials, error) {
	if g.role {
		return g.config.OpenSession(ctx)
	}
	in := &sts.GetSessionTokenInput{}
	if g.asks.SessionDuration != 0 {
		in.DurationSeconds = aws.Int32(g.asks.SessionDuration)
	}
	if g.asks.TokenCode != "" {
		in.SerialNumber, in.TokenCode = aws.String(g.asks.SerialNumber), aws.String(g.asks.TokenCode)
	}
	out, err := awsconfig.Call(ctx, g.config, g.api.GetSessionToken, in)
	if err != nil || out.Credentials == nil {
		return aws.Credentials{}, err
	}
	k := out.Credentials
	return aws.Credentials{
		AccessKeyID: aws.ToString(k.AccessKeyId), SecretAccessKey: aws.ToString(k.SecretAccessKey),
		SessionToken: aws.ToString(k.SessionToken), CanExpire: true, Expires: aws.ToTime(k.Expiration),
	}, nil
}
