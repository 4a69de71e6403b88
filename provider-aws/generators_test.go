package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/ecrtoken"
	"github.com/direct-secrets/direct-secrets/provider-aws/manifests"
	"github.com/direct-secrets/direct-secrets/provider-aws/ststoken"
)

func TestGeneratorExamples(t *testing.T) {
	suite.Examples(t, operatortest.Example(t, manifests.Examples, "ecrauthorizationtoken.yaml"))
	suite.Examples(t, operatortest.Example(t, manifests.Examples, "stssessiontoken.yaml"))
}

// TestGeneratorTemplates renders the templates of the examples with generated values.
func TestGeneratorTemplates(t *testing.T) {
	srv := awstest.Start(t)
	made := func(g provider.Generator, err error) provider.Generated {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		out, err := g.Generate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}

	login := made(awstest.Connect(t, &v1alpha1.ECRAuthorizationToken{}, ecrtoken.Connect[*v1alpha1.ECRAuthorizationToken], srv.URL()))
	pull := rendered(t, operatortest.Example(t, manifests.Examples, "ecrauthorizationtoken.yaml"), login)
	var got, want any
	if err := json.Unmarshal(pull[".dockerconfigjson"], &got); err != nil {
		t.Fatalf("%s: %s", pull[".dockerconfigjson"], err)
	}
	password := string(login.Values["password"])
	want = map[string]any{"auths": map[string]any{"000000000000.dkr.ecr.us-east-1.amazonaws.com": map[string]any{
		"username": "AWS", "password": password, "auth": base64.StdEncoding.EncodeToString([]byte("AWS:" + password)),
	}}}
	if diff := cmp.Diff(want, got); diff != "" || len(pull) != 1 {
		t.Errorf("A pull secret must have the format of kubelets: -want, +got:\n%s", diff)
	}

	key := made(awstest.Connect(t, &v1alpha1.STSSessionToken{}, ststoken.Connect[*v1alpha1.STSSessionToken], srv.URL()))
	wantKey := map[string][]byte{
		"AWS_ACCESS_KEY_ID": key.Values["access_key_id"], "AWS_SECRET_ACCESS_KEY": key.Values["secret_access_key"], "AWS_SESSION_TOKEN": key.Values["session_token"],
	}
	if diff := cmp.Diff(wantKey, rendered(t, operatortest.Example(t, manifests.Examples, "stssessiontoken.yaml"), key)); diff != "" {
		t.Errorf("An access key must have the names of SDKs: -want, +got:\n%s", diff)
	}
}

// rendered returns the result of the template of the ExternalSecret in a manifest.
func rendered(t *testing.T, manifest []byte, made provider.Generated) map[string][]byte {
	t.Helper()
	for doc := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		es := &common.ExternalSecret{}
		if err := yaml.Unmarshal(doc, es); err != nil || es.Kind != "ExternalSecret" {
			continue
		}
		data, err := inspect.Shape(es.Spec.Target.Template, made.Values)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	t.Fatal("no ExternalSecret")
	return nil
}

func TestECRAuthorizationTokenCRD(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   v1alpha1.ECRAuthorizationTokenSpec
		want   string // part of the error
	}{
		"Empty":   {"An empty spec is valid.", v1alpha1.ECRAuthorizationTokenSpec{}, ""},
		"Private": {"The default scope can be set.", v1alpha1.ECRAuthorizationTokenSpec{Scope: v1alpha1.ECRPrivate, AWSSpec: v1alpha1.AWSSpec{Region: "eu-central-1", Auth: byKey()}}, ""},
		"Public":  {"The scope public can be set.", v1alpha1.ECRAuthorizationTokenSpec{Scope: v1alpha1.ECRPublic, GeneratorSpec: common.GeneratorSpec{RotationInterval: "1h", KeepPrevious: true}}, ""},
		"Both":    {"An unknown scope is rejected.", v1alpha1.ECRAuthorizationTokenSpec{Scope: "both"}, "spec.scope"},
		"Auth":    {"The rules of the AWS stores apply, too.", v1alpha1.ECRAuthorizationTokenSpec{AWSSpec: v1alpha1.AWSSpec{Auth: &v1alpha1.AWSAuth{}}}, "set exactly one of secretRef, serviceAccountRef and operatorServiceAccount"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.ECRAuthorizationToken{Spec: tc.spec}
			g.Namespace, g.Name = "default", strings.ToLower(name)
			suite.Accepts(t, tc.reason, g, tc.want)

			twin := &v1alpha1.ClusterECRAuthorizationToken{Spec: v1alpha1.ClusterECRAuthorizationTokenSpec{ECRAuthorizationTokenSpec: tc.spec}}
			twin.Name = g.Name
			suite.Accepts(t, tc.reason, twin, tc.want)
		})
	}
}

func TestSTSSessionTokenCRD(t *testing.T) {
	const (
		mfaOfUser = "requestParameters.serialNumber is the MFA device of a user, and cannot be used with additionalRoles or auth.serviceAccountRef"
		tooLong   = "requestParameters.sessionDuration is at most 129600, 43200 with role, and 3600 with additionalRoles"
		together  = "set both serialNumber and tokenCode, or none"
	)
	temporary := func() *v1alpha1.AWSAuth {
		a := byKey()
		a.SecretRef.SessionTokenSecretRef = &common.SecretKeySelector{Name: "aws", Key: "token"}
		return a
	}
	role := v1alpha1.AWSSpec{Role: shopRole, Auth: byKey()}
	chain := v1alpha1.AWSSpec{Role: shopRole, AdditionalRoles: []string{shopRole}, Auth: byKey()}
	lasting := func(seconds int32) *v1alpha1.STSRequestParameters {
		return &v1alpha1.STSRequestParameters{SessionDuration: seconds}
	}
	mfa := &v1alpha1.STSRequestParameters{SerialNumber: "arn:aws:iam::111122223333:mfa/me", TokenCode: "123456"}
	rotating := common.GeneratorSpec{RotationInterval: "1h"}
	cases := map[string]struct {
		reason string
		spec   v1alpha1.STSSessionTokenSpec
		want   string // part of the error
	}{
		"Empty":         {"An empty spec is valid.", v1alpha1.STSSessionTokenSpec{}, ""},
		"User":          {"A user's access key is enough.", v1alpha1.STSSessionTokenSpec{AWSSpec: v1alpha1.AWSSpec{Auth: byKey()}, RequestParameters: lasting(129600), GeneratorSpec: rotating}, ""},
		"MFA":           {"A user's MFA device can be set.", v1alpha1.STSSessionTokenSpec{AWSSpec: v1alpha1.AWSSpec{Auth: byKey()}, RequestParameters: mfa}, ""},
		"MFARole":       {"An MFA device can be set with a role.", v1alpha1.STSSessionTokenSpec{AWSSpec: role, RequestParameters: mfa}, ""},
		"Role":          {"A session of a role can last 12 hours.", v1alpha1.STSSessionTokenSpec{AWSSpec: role, RequestParameters: lasting(43200)}, ""},
		"Chain":         {"A session of chained roles can last one hour.", v1alpha1.STSSessionTokenSpec{AWSSpec: chain, RequestParameters: lasting(3600)}, ""},
		"TemporaryRole": {"A temporary access key can assume a role.", v1alpha1.STSSessionTokenSpec{AWSSpec: v1alpha1.AWSSpec{Role: shopRole, Auth: temporary()}}, ""},
		"Temporary":     {"A temporary access key without a role is rejected.", v1alpha1.STSSessionTokenSpec{AWSSpec: v1alpha1.AWSSpec{Auth: temporary()}}, "auth.secretRef.sessionTokenSecretRef needs a role"},
		"Short":         {"A duration below AWS's minimum is rejected.", v1alpha1.STSSessionTokenSpec{RequestParameters: lasting(899)}, "greater than or equal to 900"},
		"Long":          {"A duration above AWS's maximum is rejected.", v1alpha1.STSSessionTokenSpec{RequestParameters: lasting(129601)}, "less than or equal to 129600"},
		"LongRole":      {"A duration above AWS's maximum for a role is rejected.", v1alpha1.STSSessionTokenSpec{AWSSpec: role, RequestParameters: lasting(43201)}, tooLong},
		"LongChain":     {"A duration above AWS's maximum for chained roles is rejected.", v1alpha1.STSSessionTokenSpec{AWSSpec: chain, RequestParameters: lasting(3601)}, tooLong},
		"NoCode":        {"A serial number without a token code is rejected.", v1alpha1.STSSessionTokenSpec{RequestParameters: &v1alpha1.STSRequestParameters{SerialNumber: "device"}}, together},
		"NoDevice":      {"A token code without a serial number is rejected.", v1alpha1.STSSessionTokenSpec{RequestParameters: &v1alpha1.STSRequestParameters{TokenCode: "123456"}}, together},
		"BadCode":       {"A token code without six digits is rejected.", v1alpha1.STSSessionTokenSpec{RequestParameters: &v1alpha1.STSRequestParameters{SerialNumber: "device", TokenCode: "12345"}}, "tokenCode"},
		"BadDevice":     {"A serial number with a space is rejected.", v1alpha1.STSSessionTokenSpec{RequestParameters: &v1alpha1.STSRequestParameters{SerialNumber: "my device", TokenCode: "123456"}}, "serialNumber"},
		"MFAChain":      {"An MFA device with chained roles is rejected.", v1alpha1.STSSessionTokenSpec{AWSSpec: chain, RequestParameters: mfa}, mfaOfUser},
		"MFAToken":      {"An MFA device with a ServiceAccount is rejected.", v1alpha1.STSSessionTokenSpec{AWSSpec: v1alpha1.AWSSpec{Role: shopRole, Auth: byToken()}, RequestParameters: mfa}, mfaOfUser},
		"Rotation":      {"A token code with a rotation interval is rejected.", v1alpha1.STSSessionTokenSpec{RequestParameters: mfa, GeneratorSpec: rotating}, "requestParameters.tokenCode works only once, so a rotation would fail; remove rotationInterval"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.STSSessionToken{Spec: tc.spec}
			g.Namespace, g.Name = "default", strings.ToLower(name)
			suite.Accepts(t, tc.reason, g, tc.want)

			twin := &v1alpha1.ClusterSTSSessionToken{Spec: v1alpha1.ClusterSTSSessionTokenSpec{STSSessionTokenSpec: tc.spec}}
			twin.Name = g.Name
			suite.Accepts(t, tc.reason, twin, tc.want)
		})
	}
}
