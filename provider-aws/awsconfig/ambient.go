package awsconfig

import (
	"crypto/x509"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// The operator's own identity comes from the sources that a pod has, in the SDK's order:
//  - an access key in the environment
//  - a web identity (IAM roles for ServiceAccounts)
//  - a container endpoint (EKS Pod Identity)
//  - the instance
//
// Profile files are not read: a pod has none, and a profile can name a program to run for credentials
// (credential_process). config.LoadDefaultConfig is not used: even when told not to read profile files, it
// fails if AWS_PROFILE is set next to an access key. Its errors also show URLs with their passwords.
//
// https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html

// profileVariables name the profile or profile file to use, which the operator does not read.
var profileVariables = []string{"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"}

// ecsHost is the host for AWS_CONTAINER_CREDENTIALS_RELATIVE_URI. containerHosts may serve
// AWS_CONTAINER_CREDENTIALS_FULL_URI without TLS.
const ecsHost = "http://169.254.170.2"

var containerHosts = []string{"169.254.170.2", "169.254.170.23", "fd00:ec2::23"}

// ambient returns the configuration and the credentials from the operator's environment.
func ambient(env config.EnvConfig, region string, retryer func() aws.Retryer) (aws.Config, error) {
	cfg := aws.Config{Region: region, Retryer: retryer, AppID: appID, ConfigSources: []any{env}}
	if cfg.Region == "" {
		cfg.Region = env.Region
	}
	if cfg.Region == "" {
		return aws.Config{}, provider.NewError(provider.Invalid, "spec.region: not set, and the operator's own AWS configuration has none; set it")
	}
	switch {
	case env.Credentials.HasKeys():
		cfg.Credentials = credentials.StaticCredentialsProvider{Value: env.Credentials}
	case env.WebIdentityTokenFilePath != "":
		if env.RoleARN == "" {
			return aws.Config{}, provider.NewError(provider.Invalid, "spec.auth: not set, and the operator has AWS_WEB_IDENTITY_TOKEN_FILE without AWS_ROLE_ARN; set both")
		}
		cfg.Credentials = stscreds.NewWebIdentityRoleProvider(sts.NewFromConfig(cfg), env.RoleARN,
			stscreds.IdentityTokenFile(env.WebIdentityTokenFilePath), func(o *stscreds.WebIdentityRoleOptions) { o.RoleSessionName = env.RoleSessionName })
	case profiled() != "":
		return aws.Config{}, provider.NewError(provider.Invalid, "spec.auth: not set; the operator has %s, but does not read profile files; set spec.auth, or give the operator a web identity or a pod identity", profiled())
	case env.ContainerCredentialsEndpoint != "" || env.ContainerCredentialsRelativePath != "":
		endpoint := env.ContainerCredentialsEndpoint
		if env.ContainerCredentialsRelativePath != "" {
			endpoint = ecsHost + env.ContainerCredentialsRelativePath
		}
		if err := checkContainer(endpoint); err != nil {
			return aws.Config{}, err
		}
		cfg.Credentials = endpointcreds.New(endpoint, func(o *endpointcreds.Options) {
			o.AuthorizationToken = env.ContainerAuthorizationToken
			if file := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
				o.AuthorizationTokenProvider = endpointcreds.TokenProviderFunc(func() (string, error) {
					b, err := os.ReadFile(file) //nolint:gosec // The operator's own environment names it.
					return string(b), err
				})
			}
		})
	default:
		cfg.Credentials = ec2rolecreds.New(func(o *ec2rolecreds.Options) { o.Client = imds.NewFromConfig(cfg) })
	}
	return cfg, nil
}

// deniedAmbient returns what to fix if AWS denies the login of the operator's own identity.
func deniedAmbient(cfg aws.Config) string {
	if _, ok := cfg.Credentials.(*stscreds.WebIdentityRoleProvider); ok {
		return deniedToken
	}
	return denied
}

// profiled returns the first environment variable that names a profile, or "".
func profiled() string {
	for _, v := range profileVariables {
		if os.Getenv(v) != "" {
			return v
		}
	}
	return ""
}

// checkContainer rejects an endpoint to which credentials would travel over the network unencrypted.
func checkContainer(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err == nil && (u.Scheme == "https" || u.Scheme == "http" && (provider.Loopback(u.Hostname()) || slices.Contains(containerHosts, u.Hostname()))) {
		return nil
	}
	return provider.NewError(provider.Invalid, "spec.auth: not set, and the operator's AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor an address of the host; correct it")
}

// trust makes a transport trust the certificates of AWS_CA_BUNDLE, and no others.
func trust(t *http.Transport, env config.EnvConfig) error {
	if env.CustomCABundle == "" {
		return nil
	}
	pool := x509.NewCertPool()
	if pem, err := os.ReadFile(env.CustomCABundle); err != nil || !pool.AppendCertsFromPEM(pem) {
		return provider.NewError(provider.Invalid, "the operator cannot read certificates from the file in AWS_CA_BUNDLE; correct the variable")
	}
	t.TLSClientConfig.RootCAs = pool
	return nil
}

// awsEnv reads the operator's AWS_ environment variables. Its error names the variable, never the value.
func awsEnv() (config.EnvConfig, error) {
	env, err := config.NewEnvConfig()
	if err != nil {
		name := "AWS_"
		for _, kv := range os.Environ() {
			if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "AWS_") && strings.Contains(err.Error(), k) {
				name = k
			}
		}
		return env, provider.NewError(provider.Invalid, "the operator's environment variable %s is not valid; correct it", name)
	}
	return env, nil
}
