package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

const (
	iamField = "spec.auth.iam"
	// callerIdentity is the body of the request that Vault sends to STS.
	callerIdentity = "Action=GetCallerIdentity&Version=2011-06-15"
	// serverIDHeader prevents that the request is used at another Vault.
	serverIDHeader = "X-Vault-AWS-IAM-Server-ID"
	// globalRegion is the region of the global endpoint of STS, the default of Vault's auth method.
	globalRegion = "us-east-1"
	awsSession   = "direct-secrets"
)

var awsRegion = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// byIAM logs in with a signed request that Vault then sends to STS; see
// https://developer.hashicorp.com/vault/docs/auth/aws#iam-auth-method.
func byIAM(a *v1alpha1.IAMAuth, creds provider.Credentials) (*method, error) {
	region := cmp.Or(a.Region, globalRegion)
	switch {
	case !awsRegion.MatchString(region):
		return nil, provider.NewError(provider.Invalid, "%s.region: %q is not a region; write it as eu-central-1", iamField, region)
	case (a.SecretRef != nil) == (a.ServiceAccountRef != nil):
		return nil, provider.NewError(provider.Invalid, "%s: set either secretRef or serviceAccountRef", iamField)
	case a.ServiceAccountRef != nil && a.AWSIAMRole == "":
		return nil, provider.NewError(provider.Invalid, "%s.role: required with serviceAccountRef; set it to the ARN of the role that trusts the ServiceAccount", iamField)
	}
	path, err := loginPath(iamField+".path", a.Path, "aws")
	credential := iamField + ".secretRef"
	if a.ServiceAccountRef != nil {
		credential = iamField + ".serviceAccountRef"
	}
	return &method{
		field: iamField, credential: credential, path: path,
		wrong: "Vault does not accept the AWS identity; check that vaultRole is bound to it, and region, vaultAwsIamServerID and path",
		hints: []hint{
			{"entry for role", provider.Denied, iamField + ".vaultRole", "the role does not exist at Vault"},
			{"error making request", provider.Unavailable, iamField, "Vault cannot reach the STS of AWS"},
		},
		body: func(ctx context.Context) (map[string]any, error) {
			key, err := awsKey(ctx, a, region, creds)
			if err != nil {
				return nil, err
			}
			return signedIdentity(ctx, a, region, key)
		},
	}, err
}

// awsKey returns the access key to sign with.
func awsKey(ctx context.Context, a *v1alpha1.IAMAuth, region string, creds provider.Credentials) (aws.Credentials, error) {
	var none aws.Credentials
	if a.ServiceAccountRef != nil {
		account := a.ServiceAccountRef
		source := tokenSource{creds: creds, field: iamField + ".serviceAccountRef", account: account, audience: "sts.amazonaws.com"}
		token, err := source.get(ctx)
		if err != nil {
			return none, err
		}
		return retrieve(ctx, stscreds.NewWebIdentityRoleProvider(stsClient(region, nil), a.AWSIAMRole, identityToken(token),
			func(o *stscreds.WebIdentityRoleOptions) { o.RoleSessionName = awsSession }))
	}
	key, err := staticKey(ctx, a.SecretRef, creds)
	if err != nil || a.AWSIAMRole == "" {
		return key.Value, err
	}
	return retrieve(ctx, stscreds.NewAssumeRoleProvider(stsClient(region, key), a.AWSIAMRole, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = awsSession
		if a.ExternalID != "" {
			o.ExternalID = aws.String(a.ExternalID)
		}
	}))
}

// staticKey reads an access key from Secrets.
func staticKey(ctx context.Context, ref *v1alpha1.IAMSecretRef, creds provider.Credentials) (key credentials.StaticCredentialsProvider, err error) {
	const field = iamField + ".secretRef"
	if key.Value.AccessKeyID, err = textAt(ctx, creds, field+".accessKeyIDSecretRef", ref.AccessKeyIDSecretRef); err != nil {
		return key, err
	}
	if key.Value.SecretAccessKey, err = textAt(ctx, creds, field+".secretAccessKeySecretRef", ref.SecretAccessKeySecretRef); err != nil {
		return key, err
	}
	if ref.SessionTokenSecretRef != nil {
		key.Value.SessionToken, err = textAt(ctx, creds, field+".sessionTokenSecretRef", *ref.SessionTokenSecretRef)
	}
	return key, err
}

func stsClient(region string, key aws.CredentialsProvider) *sts.Client {
	return sts.NewFromConfig(aws.Config{Region: region, Credentials: key})
}

func retrieve(ctx context.Context, p aws.CredentialsProvider) (aws.Credentials, error) {
	key, err := p.Retrieve(ctx)
	if err != nil {
		return key, provider.NewError(provider.Denied, "%s.role: AWS does not allow the identity to assume the role, or cannot be reached", iamField)
	}
	return key, nil
}

type identityToken string

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (t identityToken) GetIdentityToken() ([]byte, error) { return []byte(t), nil }

// signedIdentity returns the body of a login, which contains the parts of a signed request to STS.
func signedIdentity(ctx context.Context, a *v1alpha1.IAMAuth, region string, key aws.Credentials) (map[string]any, error) {
	endpoint, err := stsEndpoint(ctx, region)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(callerIdentity))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	if a.ServerID != "" {
		r.Header.Set(serverIDHeader, a.ServerID)
	}
	sum := sha256.Sum256([]byte(callerIdentity))
	if err := v4.NewSigner().SignHTTP(ctx, key, r, hex.EncodeToString(sum[:]), "sts", region, time.Now()); err != nil {
		return nil, provider.NewError(provider.Invalid, "%s.secretRef: the access key cannot be used", iamField)
	}
	r.Header.Set("Host", r.URL.Host)
	header, err := json.Marshal(r.Header)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"role":                    a.Role,
		"iam_http_request_method": r.Method,
		"iam_request_url":         encoded(endpoint),
		"iam_request_body":        encoded(callerIdentity),
		"iam_request_headers":     encoded(string(header)),
	}, nil
}

func encoded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// stsEndpoint returns the address of STS for the signature.
func stsEndpoint(ctx context.Context, region string) (string, error) {
	if region == globalRegion {
		return "https://sts.amazonaws.com/", nil
	}
	e, err := sts.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, sts.EndpointParameters{Region: aws.String(region)})
	if err != nil {
		return "", provider.NewError(provider.Invalid, "%s.region: %q is not a region; write it as eu-central-1", iamField, region)
	}
	return strings.TrimSuffix(e.URI.String(), "/") + "/", nil
}
