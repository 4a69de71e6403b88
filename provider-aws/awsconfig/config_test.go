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

// canary is part of every credential in these tests, and must appear in no message.
const canary = "c4n4ry"

// A kube is a provider.Credentials with fixed contents.
type kube struct {
	secrets map[string]string // by key
	token   func(audiences []string) (string, error)
	own     func(audience string) (string, error)
	ambient error
	// annotations are those of the ServiceAccount, which does not exist if they are nil.
	annotations map[string]string
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

func (k kube) OwnToken(_ context.Context, audience string) (string, error) { return k.own(audience) }

func (k kube) ServiceAccountAnnotations(context.Context, common.ServiceAccountSelector) (map[string]string, error) {
	if k.annotations == nil {
		return nil, provider.NewError(provider.Invalid, "auth: ServiceAccount shop/shop does not exist")
	}
	return k.annotations, nil
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

func byOperator(audience string) *v1alpha1.AWSAuth {
	return &v1alpha1.AWSAuth{OperatorServiceAccount: &common.OperatorServiceAccount{Audience: audience}}
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

// operatorEnvironment sets variables that a store with its own auth must not use.
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
			reason: "The store's own key and region are used, not the operator's. A trailing line end is removed from the key.",
			spec:   v1alpha1.AWSSpec{Region: "eu-central-1", Auth: byKey()},
			kube:   keys,
			want:   want{Region: "eu-central-1", Keys: aws.Credentials{AccessKeyID: "test", SecretAccessKey: canary}},
		},
		"Temporary": {
			reason: "The session token of a temporary key is used.",
			spec:   v1alpha1.AWSSpec{Region: "eu-central-1", Auth: withToken},
			kube:   keys,
			want:   want{Region: "eu-central-1", Keys: aws.Credentials{AccessKeyID: "test", SecretAccessKey: canary, SessionToken: "session"}},
		},
		"StaticWithoutRegion": {
			reason: "A store with its own auth does not use the operator's region.",
			spec:   v1alpha1.AWSSpec{Auth: byKey()},
			kube:   keys,
			want:   want{Err: provider.NewError(provider.Invalid, "spec.region: required with spec.auth; set it, for example to eu-central-1")},
		},
		"NoSecret": {
			reason: "The error of a failed reference names the field.",
			spec:   v1alpha1.AWSSpec{Region: "eu-central-1", Auth: byKey()},
			kube:   kube{},
			want:   want{Err: provider.NewError(provider.Invalid, "spec.auth.secretRef.accessKeyIDSecretRef: no such Secret")},
		},
		"BlankKey": {
			reason: "A key of only white space is rejected.",
			spec:   v1alpha1.AWSSpec{Region: "eu-central-1", Auth: byKey()},
			kube:   kube{secrets: map[string]string{"id": "\n", "key": canary}},
			want:   want{Err: provider.NewError(provider.Invalid, "spec.auth.secretRef.accessKeyIDSecretRef: the value is blank; store the complete value")},
		},
		"Ambient": {
			reason: "If allowed, the operator's identity comes from its environment, where the access key comes first, as in the SDK.",
			want:   want{Region: "env-1", Keys: aws.Credentials{AccessKeyID: "operator", SecretAccessKey: "operator", SessionToken: "operator"}},
		},
		"AmbientRegion": {
			reason: "The store's region takes precedence over the operator's.",
			spec:   v1alpha1.AWSSpec{Region: "eu-west-1"},
			want:   want{Region: "eu-west-1", Keys: aws.Credentials{AccessKeyID: "operator", SecretAccessKey: "operator", SessionToken: "operator"}},
		},
		"AmbientRefused": {
			reason: "A store cannot use the operator's identity unless the operator allows it.",
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
		t.Errorf("No region is guessed.\nLoad(...): -want, +got:\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	const needsRole = "spec.role: required with additionalRoles, externalID, sessionTags, sessionTagsPolicy or transitiveTagKeys"
	const noPassing = "spec.role: externalID, sessionTags, sessionTagsPolicy and transitiveTagKeys cannot be used with a role that is assumed with a token; remove them, or name the role that trusts the ServiceAccount in spec.additionalRoles"
	both := byKey()
	both.ServiceAccountRef = byToken().ServiceAccountRef
	ownAndToken := byOperator("x")
	ownAndToken.ServiceAccountRef = byToken().ServiceAccountRef
	cases := map[string]struct {
		reason string
		spec   v1alpha1.AWSSpec
		want   string
	}{
		"Nothing":     {"An empty spec is valid.", v1alpha1.AWSSpec{}, ""},
		"Region":      {"A region with other characters is rejected, because it becomes part of a host name.", v1alpha1.AWSSpec{Region: "evil.example/"}, `spec.region: "evil.example/" is not a region; write it as eu-central-1`},
		"EmptyAuth":   {"An empty auth is rejected. It does not mean the operator's identity.", v1alpha1.AWSSpec{Auth: &v1alpha1.AWSAuth{}}, "spec.auth: set exactly one of secretRef, serviceAccountRef and operatorServiceAccount"},
		"TwoAuths":    {"Two ways to log in are rejected.", v1alpha1.AWSSpec{Auth: both}, "spec.auth: set exactly one of secretRef, serviceAccountRef and operatorServiceAccount"},
		"TokenAlone":  {"A ServiceAccount is enough, because its annotation can name the role.", v1alpha1.AWSSpec{Auth: byToken()}, ""},
		"Own":         {"The operator's own ServiceAccount and a role are enough.", v1alpha1.AWSSpec{Auth: byOperator("x"), Role: "r"}, ""},
		"OwnAlone":    {"The operator's own ServiceAccount needs a role, because its annotations are not read.", v1alpha1.AWSSpec{Auth: byOperator("x")}, "spec.role: required with auth.operatorServiceAccount; set it to the ARN of the IAM role that trusts the operator's own ServiceAccount"},
		"OwnAndToken": {"The operator's own ServiceAccount together with another one is rejected.", v1alpha1.AWSSpec{Auth: ownAndToken, Role: "r"}, "spec.auth: set exactly one of secretRef, serviceAccountRef and operatorServiceAccount"},
		"OwnPasses":   {"An external id is rejected for it, too.", v1alpha1.AWSSpec{Auth: byOperator("x"), Role: "r", ExternalID: "x"}, noPassing},
		"Token":       {"A ServiceAccount and a role are enough.", v1alpha1.AWSSpec{Auth: byToken(), Role: "r"}, ""},
		"Additional":  {"additionalRoles are rejected without a role.", v1alpha1.AWSSpec{AdditionalRoles: []string{"a"}}, needsRole},
		"ExternalID":  {"A field that would be ignored is rejected.", v1alpha1.AWSSpec{ExternalID: "x"}, needsRole},
		"Tags":        {"A field that would be ignored is rejected.", v1alpha1.AWSSpec{SessionTags: []v1alpha1.SessionTag{{Key: "k"}}}, needsRole},
		"Transitive":  {"A field that would be ignored is rejected.", v1alpha1.AWSSpec{TransitiveTagKeys: []string{"k"}}, needsRole},
		"TokenPasses": {"An external id is rejected, because AssumeRoleWithWebIdentity accepts none.", v1alpha1.AWSSpec{Auth: byToken(), Role: "r", ExternalID: "x"}, noPassing},
		"TokenChain":  {"An external id is accepted for the last role of a chain, however the first role was assumed.", v1alpha1.AWSSpec{Auth: byToken(), Role: "r", ExternalID: "x", AdditionalRoles: []string{"a"}}, ""},
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
		"None":        {"An empty endpoint means the region's endpoint.", "", ""},
		"HTTPS":       {"A VPC endpoint is used as it is.", "https://vpce-1.secretsmanager.eu-central-1.vpce.amazonaws.com", ""},
		"Loopback":    {"An emulator on the operator's host needs no certificate.", "http://127.0.0.1:4566", ""},
		"Loopback8":   {"All of 127.0.0.0/8 is this host.", "http://127.8.9.10:4566", ""},
		"Loopback6":   {"::1 is this host.", "http://[::1]:4566", ""},
		"Localhost":   {"localhost is this host.", "http://LocalHost:4566", ""},
		"HTTP":        {"Plain http to another host is rejected, because the requests are signed.", "http://aws.example", "spec.endpoint: plain http is for the operator's own host (127.0.0.1, localhost) only; use https"},
		"LikeLocal":   {"A name that only starts with localhost is another host.", "http://localhost.example", "spec.endpoint: plain http is for the operator's own host (127.0.0.1, localhost) only; use https"},
		"LikeIP":      {"A name that only starts with 127.0.0.1 is another host.", "http://127.0.0.1.example", "spec.endpoint: plain http is for the operator's own host (127.0.0.1, localhost) only; use https"},
		"Metadata":    {"The cloud's metadata service is rejected.", "http://169.254.169.254/latest", "spec.endpoint: plain http is for the operator's own host (127.0.0.1, localhost) only; use https"},
		"UserTrick":   {"The text before @ is a user, not the host.", "http://127.0.0.1@aws.example", "spec.endpoint: must have no user, query or fragment; write it as https://host:port"},
		"Password":    {"A password in the URL is rejected.", "https://u:" + canary + "@aws.example", "spec.endpoint: must have no user, query or fragment; write it as https://host:port"},
		"Query":       {"A query is rejected, because it would be sent with every request.", "https://aws.example?a=b", "spec.endpoint: must have no user, query or fragment; write it as https://host:port"},
		"NoScheme":    {"A host without a scheme is rejected.", "aws.example", "spec.endpoint: is not a URL; write it as https://host:port"},
		"File":        {"A scheme other than HTTP is rejected.", "file:///etc/passwd", "spec.endpoint: is not a URL; write it as https://host:port"},
		"OtherScheme": {"A scheme other than HTTP is rejected.", "ftp://aws.example", "spec.endpoint: must begin with https://"},
		"Garbage":     {"The error does not repeat the text.", "https://\x7f" + canary, "spec.endpoint: is not a URL; write it as https://host:port"},
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
