package awsconfig

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// canary is in every credential of these tests, and must be in no message.
const canary = "c4n4ry"

// A kube answers as the operator's Credentials would.
type kube struct {
	secrets map[string]string // by key
	token   func(audiences []string) (string, error)
	ambient error
}

func (k kube) SecretValue(_ context.Context, sel common.SecretKeySelector) ([]byte, error) {
	if v, ok := k.secrets[sel.Key]; ok {
		return []byte(v), nil
	}
	return nil, noSecret
}

func (k kube) ConfigMapValue(context.Context, common.ConfigMapKeySelector) ([]byte, error) {
	return nil, noSecret
}

func (k kube) ServiceAccountToken(_ context.Context, _ common.ServiceAccountSelector, audiences ...string) (string, error) {
	return k.token(audiences)
}

func (k kube) Ambient() error { return k.ambient }

var (
	noSecret  = provider.NewError(provider.Invalid, "auth: no such Secret")
	noAmbient = provider.NewError(provider.Invalid, "auth is not set")
)

func byKey() *v1alpha1.AWSAuth {
	return &v1alpha1.AWSAuth{SecretRef: &v1alpha1.AWSSecretRef{
		AccessKeyIDSecretRef:     common.SecretKeySelector{Name: "aws", Key: "id"},
		SecretAccessKeySecretRef: common.SecretKeySelector{Name: "aws", Key: "key"},
	}}
}

func byToken(audiences ...string) *v1alpha1.AWSAuth {
	return &v1alpha1.AWSAuth{ServiceAccountRef: &common.ServiceAccountSelector{Name: "shop", Audiences: audiences}}
}

func load(t *testing.T, spec v1alpha1.AWSSpec, k kube) (*Config, error) {
	t.Helper()
	none := int32(0)
	o := &v1alpha1.AWSSecretsManager{}
	o.Namespace, o.Name = "shop", "prod"
	o.Spec.AWSSpec = spec
	o.Spec.RetrySettings = &common.RetrySettings{MaxRetries: &none, RetryInterval: "1ms"}
	return Load(t.Context(), o, k)
}

// operatorEnvironment is what no store with an auth of its own may see.
func operatorEnvironment(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "aws")
	text := "[default]\naws_access_key_id = file\naws_secret_access_key = file\nregion = file-1\nrole_arn = arn:aws:iam::1:role/file\nsource_profile = default\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"AWS_CONFIG_FILE": file, "AWS_SHARED_CREDENTIALS_FILE": file, "AWS_REGION": "env-1",
		"AWS_ACCESS_KEY_ID": "operator", "AWS_SECRET_ACCESS_KEY": "operator", "AWS_SESSION_TOKEN": "operator",
	} {
		t.Setenv(k, v)
	}
}

func TestLoad(t *testing.T) {
	keys := kube{secrets: map[string]string{"id": " test\n", "key": canary + "\n", "token": "session"}, ambient: noAmbient}
	withToken := byKey()
	withToken.SecretRef.SessionTokenSecretRef = &common.SecretKeySelector{Name: "aws", Key: "token"}
	type want struct {
		Region string
		Keys   aws.Credentials
		Err    error
	}
	cases := map[string]struct {
		reason string
		spec   v1alpha1.AWSSpec
		kube   kube
		want   want
	}{
		"Static": {
			reason: "A store's own key and region are used, whatever the operator has; a line end is no part of a key.",
			spec:   v1alpha1.AWSSpec{Region: "eu-central-1", Auth: byKey()},
			kube:   keys,
			want:   want{Region: "eu-central-1", Keys: aws.Credentials{AccessKeyID: "test", SecretAccessKey: canary}},
		},
		"Temporary": {
			reason: "A session token belongs to a temporary key.",
			spec:   v1alpha1.AWSSpec{Region: "eu-central-1", Auth: withToken},
			kube:   keys,
			want:   want{Region: "eu-central-1", Keys: aws.Credentials{AccessKeyID: "test", SecretAccessKey: canary, SessionToken: "session"}},
		},
		"StaticWithoutRegion": {
			reason: "The operator's region is not that of a store with its own auth.",
			spec:   v1alpha1.AWSSpec{Auth: byKey()},
			kube:   keys,
			want:   want{Err: provider.NewError(provider.Invalid, "spec.region: must be set where spec.auth is, for example eu-central-1")},
		},
		"NoSecret": {
			reason: "The error of a reference names the field.",
			spec:   v1alpha1.AWSSpec{Region: "eu-central-1", Auth: byKey()},
			kube:   kube{},
			want:   want{Err: provider.NewError(provider.Invalid, "spec.auth.secretRef.accessKeyIDSecretRef: no such Secret")},
		},
		"BlankKey": {
			reason: "A key of white space alone is a mistake.",
			spec:   v1alpha1.AWSSpec{Region: "eu-central-1", Auth: byKey()},
			kube:   kube{secrets: map[string]string{"id": "\n", "key": canary}},
			want:   want{Err: provider.NewError(provider.Invalid, "spec.auth.secretRef.accessKeyIDSecretRef: the value is blank; store the whole value there")},
		},
		"Ambient": {
			reason: "Where it may be used, the operator's identity is that of its environment; the access key goes first, as in the SDK.",
			want:   want{Region: "env-1", Keys: aws.Credentials{AccessKeyID: "operator", SecretAccessKey: "operator", SessionToken: "operator"}},
		},
		"AmbientRegion": {
			reason: "The store's region goes before the operator's.",
			spec:   v1alpha1.AWSSpec{Region: "eu-west-1"},
			want:   want{Region: "eu-west-1", Keys: aws.Credentials{AccessKeyID: "operator", SecretAccessKey: "operator", SessionToken: "operator"}},
		},
		"AmbientRefused": {
			reason: "The operator decides who may use its identity.",
			spec:   v1alpha1.AWSSpec{Region: "eu-west-1"},
			kube:   kube{ambient: noAmbient},
			want:   want{Err: provider.NewError(provider.Invalid, "spec.auth: auth is not set")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			operatorEnvironment(t)
			var got want
			c, err := load(t, tc.spec, tc.kube)
			if got.Err = err; err == nil {
				got.Region = c.AWS.Region
				got.Keys, got.Err = c.AWS.Credentials.Retrieve(t.Context())
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(aws.Credentials{}, "Source")); diff != "" {
				t.Errorf("%s\nLoad(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLoadAmbientWithoutRegion(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "none")
	for _, k := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(k, empty)
	}
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	_, err := load(t, v1alpha1.AWSSpec{}, kube{})
	want := provider.NewError(provider.Invalid, "spec.region: not set, and the operator's own AWS configuration has none; set it")
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("A region is guessed by nobody.\nLoad(...): -want, +got:\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	const needsRole = "spec.role: must be set where additionalRoles, externalID, sessionTags or transitiveTagKeys are"
	const noPassing = "spec.role: is assumed with a token, which passes no externalID, sessionTags or transitiveTagKeys; remove them, or name the role that trusts the ServiceAccount in spec.additionalRoles"
	both := byKey()
	both.ServiceAccountRef = byToken().ServiceAccountRef
	cases := map[string]struct {
		reason string
		spec   v1alpha1.AWSSpec
		want   string
	}{
		"Nothing":     {"A store may leave all to the operator.", v1alpha1.AWSSpec{}, ""},
		"Region":      {"A region becomes part of a host name.", v1alpha1.AWSSpec{Region: "evil.example/"}, `spec.region: "evil.example/" is not a region; write it as eu-central-1`},
		"EmptyAuth":   {"An auth that names nobody is a mistake, not the operator's identity.", v1alpha1.AWSSpec{Auth: &v1alpha1.AWSAuth{}}, "spec.auth: set either secretRef or serviceAccountRef"},
		"TwoAuths":    {"Which of two would win?", v1alpha1.AWSSpec{Auth: both}, "spec.auth: set either secretRef or serviceAccountRef"},
		"TokenAlone":  {"A token is good for assuming a role only.", v1alpha1.AWSSpec{Auth: byToken()}, "spec.role: must be set with spec.auth.serviceAccountRef, to the ARN of the role that trusts the ServiceAccount"},
		"Token":       {"A token and a role are enough.", v1alpha1.AWSSpec{Auth: byToken(), Role: "r"}, ""},
		"Additional":  {"additionalRoles only lead to role.", v1alpha1.AWSSpec{AdditionalRoles: []string{"a"}}, needsRole},
		"ExternalID":  {"What would be ignored is refused.", v1alpha1.AWSSpec{ExternalID: "x"}, needsRole},
		"Tags":        {"What would be ignored is refused.", v1alpha1.AWSSpec{SessionTags: []v1alpha1.SessionTag{{Key: "k"}}}, needsRole},
		"Transitive":  {"What would be ignored is refused.", v1alpha1.AWSSpec{TransitiveTagKeys: []string{"k"}}, needsRole},
		"TokenPasses": {"AssumeRoleWithWebIdentity takes no external id.", v1alpha1.AWSSpec{Auth: byToken(), Role: "r", ExternalID: "x"}, noPassing},
		"TokenChain":  {"The last role of a chain takes it, however the first was assumed.", v1alpha1.AWSSpec{Auth: byToken(), Role: "r", ExternalID: "x", AdditionalRoles: []string{"a"}}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var want error
			if tc.want != "" {
				want = provider.NewError(provider.Invalid, "%s", tc.want)
			}
			if diff := cmp.Diff(want, check(&tc.spec)); diff != "" {
				t.Errorf("%s\ncheck(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseEndpoint(t *testing.T) {
	cases := map[string]struct {
		reason string
		url    string
		want   string
	}{
		"None":        {"The region's endpoint needs no setting.", "", ""},
		"HTTPS":       {"A VPC endpoint is used as it is.", "https://vpce-1.secretsmanager.eu-central-1.vpce.amazonaws.com", ""},
		"Loopback":    {"An emulator on the operator's host needs no certificate.", "http://127.0.0.1:4566", ""},
		"Loopback8":   {"All of 127.0.0.0/8 is this host.", "http://127.8.9.10:4566", ""},
		"Loopback6":   {"::1 is this host.", "http://[::1]:4566", ""},
		"Localhost":   {"localhost is this host.", "http://LocalHost:4566", ""},
		"HTTP":        {"Signed requests are not sent in the clear.", "http://aws.example", "spec.endpoint: plain http is for the operator's own host (127.0.0.1, localhost) only; use https"},
		"LikeLocal":   {"A name that begins like this host is another host.", "http://localhost.example", "spec.endpoint: plain http is for the operator's own host (127.0.0.1, localhost) only; use https"},
		"LikeIP":      {"So is one that begins like its address.", "http://127.0.0.1.example", "spec.endpoint: plain http is for the operator's own host (127.0.0.1, localhost) only; use https"},
		"Metadata":    {"The metadata service of a cloud is not for users.", "http://169.254.169.254/latest", "spec.endpoint: plain http is for the operator's own host (127.0.0.1, localhost) only; use https"},
		"UserTrick":   {"What stands before @ is a user, not a host.", "http://127.0.0.1@aws.example", "spec.endpoint: must have no user, query or fragment; write it as https://host:port"},
		"Password":    {"A spec is no place for a password.", "https://u:" + canary + "@aws.example", "spec.endpoint: must have no user, query or fragment; write it as https://host:port"},
		"Query":       {"A query would be sent along.", "https://aws.example?a=b", "spec.endpoint: must have no user, query or fragment; write it as https://host:port"},
		"NoScheme":    {"A host alone is no URL.", "aws.example", "spec.endpoint: is not a URL; write it as https://host:port"},
		"File":        {"Only HTTP is spoken.", "file:///etc/passwd", "spec.endpoint: is not a URL; write it as https://host:port"},
		"OtherScheme": {"Only HTTP is spoken.", "ftp://aws.example", "spec.endpoint: must begin with https://"},
		"Garbage":     {"The text itself is not repeated.", "https://\x7f" + canary, "spec.endpoint: is not a URL; write it as https://host:port"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var want error
			if tc.want != "" {
				want = provider.NewError(provider.Invalid, "%s", tc.want)
			}
			got, err := parseEndpoint(tc.url, nil)
			if diff := cmp.Diff(want, err); diff != "" {
				t.Errorf("%s\nparseEndpoint(%q): -want error, +got error:\n%s", tc.reason, tc.url, diff)
			}
			if err == nil && aws.ToString(got) != tc.url {
				t.Errorf("%s\nparseEndpoint(%q): got %q", tc.reason, tc.url, aws.ToString(got))
			}
		})
	}
}
