package awsconfig

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const (
	first  = "arn:aws:iam::000000000000:role/first"
	second = "arn:aws:iam::000000000000:role/second"
	target = "arn:aws:iam::000000000000:role/target"
	user   = "arn:aws:iam::000000000000:user/test"
	issuer = "https://oidc.example"
	shopSA = "system:serviceaccount:shop:shop"
	ownSA  = "system:serviceaccount:direct-secrets:operator"
)

// startSTS starts an STS with three roles. first trusts the user and the ServiceAccount. second trusts first.
// target trusts second and the user, and requires an external id.
func startSTS(t *testing.T) *emulator.Server {
	t.Helper()
	srv, err := emulator.Start(
		emulator.WithCredentials(emulator.Credential{AccessKeyID: "test", SecretAccessKey: canary, UserName: "test"}),
		emulator.WithRoles(
			emulator.Role{ARN: first, Principals: []string{user}, WebIdentities: []emulator.WebIdentity{{Issuer: issuer, Subject: shopSA, Audience: "sts.amazonaws.com"}, {Issuer: issuer, Subject: shopSA, Audience: "aws.example"}, {Issuer: issuer, Subject: ownSA, Audience: "aws.example"}}},
			emulator.Role{ARN: second, Principals: []string{first}},
			emulator.Role{ARN: target, Principals: []string{second, user}, ExternalID: "shop-42"},
		))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("AWS_ENDPOINT_URL_STS", srv.URL())
	return srv
}

// good returns Credentials with a key and tokens that STS accepts.
func good() kube {
	return kube{
		secrets: map[string]string{"id": "test", "key": canary},
		token: func(audiences []string) (string, error) {
			return fake.NewToken(issuer, shopSA, strings.Join(audiences, " "), time.Now().Add(time.Hour)), nil
		},
		own: func(audience string) (string, error) {
			return fake.NewToken(issuer, ownSA, audience, time.Now().Add(time.Hour)), nil
		},
	}
}

func TestRoles(t *testing.T) {
	tags := []v1alpha1.SessionTag{{Key: "team", Value: "shop"}, {Key: "stage", Value: "test"}}
	cases := map[string]struct {
		reason string
		spec   v1alpha1.AWSSpec
		want   []emulator.Session
	}{
		"None": {
			reason: "A key alone needs no STS.",
			spec:   v1alpha1.AWSSpec{Auth: byKey()},
		},
		"Role": {
			reason: "The external id, tags and transitive tags apply to the session of spec.role.",
			spec:   v1alpha1.AWSSpec{Auth: byKey(), Role: target, ExternalID: "shop-42", SessionTags: tags, TransitiveTagKeys: []string{"team"}},
			want: []emulator.Session{{
				RoleARN: target, ExternalID: "shop-42", Chain: []string{target},
				Tags: map[string]string{"team": "shop", "stage": "test"}, TransitiveTagKeys: []string{"team"},
			}},
		},
		"Chain": {
			reason: "additionalRoles are assumed first, in their order, without the external id and tags.",
			spec:   v1alpha1.AWSSpec{Auth: byKey(), Role: target, AdditionalRoles: []string{first, second}, ExternalID: "shop-42", SessionTags: tags},
			want: []emulator.Session{
				{RoleARN: first, Chain: []string{first}},
				{RoleARN: second, Chain: []string{first, second}},
				{RoleARN: target, ExternalID: "shop-42", Chain: []string{first, second, target}, Tags: map[string]string{"team": "shop", "stage": "test"}},
			},
		},
		"WebIdentity": {
			reason: "A ServiceAccount token with AWS's default audience opens a session.",
			spec:   v1alpha1.AWSSpec{Auth: byToken(), Role: first},
			want:   []emulator.Session{{RoleARN: first, Subject: shopSA, Audience: "sts.amazonaws.com", Chain: []string{first}}},
		},
		"WebIdentityAudience": {
			reason: "The spec can set another audience.",
			spec:   v1alpha1.AWSSpec{Auth: byToken("aws.example"), Role: first},
			want:   []emulator.Session{{RoleARN: first, Subject: shopSA, Audience: "aws.example", Chain: []string{first}}},
		},
		"OwnAccount": {
			reason: "A token of the operator's own ServiceAccount opens a session, with the audience of the spec.",
			spec:   v1alpha1.AWSSpec{Auth: byOperator("aws.example"), Role: first},
			want:   []emulator.Session{{RoleARN: first, Subject: ownSA, Audience: "aws.example", Chain: []string{first}}},
		},
		"WebIdentityChain": {
			reason: "The token assumes the first role of the chain.",
			spec:   v1alpha1.AWSSpec{Auth: byToken(), Role: target, AdditionalRoles: []string{first, second}, ExternalID: "shop-42"},
			want: []emulator.Session{
				{RoleARN: first, Subject: shopSA, Audience: "sts.amazonaws.com", Chain: []string{first}},
				{RoleARN: second, Chain: []string{first, second}},
				{RoleARN: target, ExternalID: "shop-42", Chain: []string{first, second, target}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := startSTS(t)
			tc.spec.Region, tc.spec.Endpoint = "us-east-1", "https://secretsmanager.invalid"
			c, err := load(t, tc.spec, good())
			if err != nil {
				t.Fatal(err)
			}
			for range 3 { // Further calls reuse a session until it expires.
				if _, err := c.AWS.Credentials.Retrieve(t.Context()); err != nil {
					t.Fatal(c.Explain(err, "", nil))
				}
			}
			got := srv.Sessions()
			for _, s := range got {
				if s.Name != "direct-secrets@shop@prod" {
					t.Errorf("the session's name must name the store: got %q", s.Name)
				}
				if d := s.Expires.Sub(s.Issued); d != time.Hour {
					t.Errorf("a session must last one hour: got %s", d)
				}
			}
			ignore := cmpopts.IgnoreFields(emulator.Session{}, "AccessKeyID", "Name", "AssumedRoleARN", "SourceAccessKeyID", "Issued", "Expires")
			if diff := cmp.Diff(tc.want, got, ignore, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nsessions: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestForget(t *testing.T) {
	srv := startSTS(t)
	tokens := 0
	k := good()
	fresh := k.token
	k.token = func(a []string) (string, error) { tokens++; return fresh(a) }
	c, err := load(t, v1alpha1.AWSSpec{Region: "us-east-1", Auth: byToken(), Role: target, AdditionalRoles: []string{first, second}, ExternalID: "shop-42"}, k)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.AWS.Credentials.Retrieve(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !c.Forget() {
			t.Error("A new session must be opened after Forget.")
		}
	}
	if diff := cmp.Diff([]int{2, 6}, []int{tokens, len(srv.Sessions())}); diff != "" {
		t.Errorf("Each login must use a new token and assume the whole chain.\ntokens, sessions: -want, +got:\n%s", diff)
	}
}

func TestLoginErrors(t *testing.T) {
	noToken := provider.NewError(provider.Denied, "auth: the operator has no permission to create tokens")
	denied := "the caller is not allowed to assume the role; allow it in the caller's policy, and in the role's trust policy (principal, spec.externalID, spec.sessionTags)"
	deniedInChain := "the caller is not allowed to assume the role; allow it in the caller's policy, and in the role's trust policy (principal)"
	deniedByToken := "the ServiceAccount is not allowed to assume the role; allow it in the role's trust policy (identity provider, audience, namespace and name of the ServiceAccount)"
	cases := map[string]struct {
		reason string
		spec   v1alpha1.AWSSpec
		kube   func(*kube)
		fault  *emulator.Fault
		want   error
	}{
		"UnknownKey": {
			reason: "The error names the wrong access key, although it occurs while the role is assumed.",
			spec:   v1alpha1.AWSSpec{Auth: byKey(), Role: target, ExternalID: "shop-42"},
			kube:   func(k *kube) { k.secrets["id"] = "other" },
			want:   provider.NewError(provider.Denied, "spec.role: cannot assume role %s: spec.auth.secretRef.accessKeyIDSecretRef: AWS does not know the access key id", target),
		},
		"WrongSecretKey": {
			reason: "A wrong secret access key has another error than a wrong access key id.",
			spec:   v1alpha1.AWSSpec{Auth: byKey(), Role: target, ExternalID: "shop-42"},
			kube:   func(k *kube) { k.secrets["key"] = canary + "-other" },
			want:   provider.NewError(provider.Denied, "spec.role: cannot assume role %s: spec.auth.secretRef.secretAccessKeySecretRef: %s", target, badSignature),
		},
		"WrongExternalID": {
			reason: "The error names the possible causes, because STS does not say why.",
			spec:   v1alpha1.AWSSpec{Auth: byKey(), Role: target, ExternalID: "other"},
			want:   provider.NewError(provider.Denied, "spec.role: cannot assume role %s: %s", target, denied),
		},
		"BrokenChain": {
			reason: "The error names the first role that fails, not those after it.",
			spec:   v1alpha1.AWSSpec{Auth: byKey(), Role: target, AdditionalRoles: []string{second}, ExternalID: "shop-42"},
			want:   provider.NewError(provider.Denied, "spec.additionalRoles[0]: cannot assume role %s: %s", second, deniedInChain),
		},
		"DeniedToken": {
			reason: "A web identity has no policy, external ID or tags.",
			spec:   v1alpha1.AWSSpec{Auth: byToken(), Role: first},
			fault:  &emulator.Fault{Call: "AssumeRoleWithWebIdentity", Code: "AccessDenied", Status: 403, Message: "Not authorized to perform sts:AssumeRoleWithWebIdentity"},
			want:   provider.NewError(provider.Denied, "spec.role: cannot assume role %s: %s", first, deniedByToken),
		},
		"DeniedTokenTags": {
			reason: "A token can carry tags, which are not those of the spec.",
			spec:   v1alpha1.AWSSpec{Auth: byToken(), Role: first},
			fault:  &emulator.Fault{Call: "AssumeRoleWithWebIdentity", Code: "AccessDenied", Status: 403, Message: "not authorized to perform: sts:TagSession"},
			want:   provider.NewError(provider.Denied, "spec.role: cannot assume role %s: %s", first, deniedByToken),
		},
		"DeniedAfterToken": {
			reason: "The next role of a chain has a caller.",
			spec:   v1alpha1.AWSSpec{Auth: byToken(), Role: target, AdditionalRoles: []string{first}},
			fault:  &emulator.Fault{Call: "AssumeRole", Code: "AccessDenied", Status: 403},
			want:   provider.NewError(provider.Denied, "spec.role: cannot assume role %s: %s", target, denied),
		},
		"NoToken": {
			reason: "The error of the token request names the field.",
			spec:   v1alpha1.AWSSpec{Auth: byToken(), Role: first},
			kube:   func(k *kube) { k.token = func([]string) (string, error) { return "", noToken } },
			want:   provider.NewError(provider.Denied, "spec.auth.serviceAccountRef: the operator has no permission to create tokens"),
		},
		"OwnRefused": {
			reason: "The error names the field if the operator refuses its own ServiceAccount.",
			spec:   v1alpha1.AWSSpec{Auth: byOperator("aws.example"), Role: first},
			kube: func(k *kube) {
				k.own = func(string) (string, error) {
					return "", provider.NewError(provider.Invalid, "auth: --ambient-credentials=none refuses it")
				}
			},
			want: provider.NewError(provider.Invalid, "spec.auth.operatorServiceAccount: --ambient-credentials=none refuses it"),
		},
		"OwnAudience": {
			reason: "The error of a rejected token of the operator's own ServiceAccount names that field.",
			spec:   v1alpha1.AWSSpec{Auth: byOperator("other"), Role: first},
			want:   provider.NewError(provider.Denied, "spec.role: cannot assume role %s: spec.auth.operatorServiceAccount: %s", first, commonCodes["InvalidIdentityToken"].Text),
		},
		"WrongAudience": {
			reason: "The error of a rejected token names the ServiceAccount's field.",
			spec:   v1alpha1.AWSSpec{Auth: byToken("other"), Role: first},
			want:   provider.NewError(provider.Denied, "spec.role: cannot assume role %s: spec.auth.serviceAccountRef: %s", first, commonCodes["InvalidIdentityToken"].Text),
		},
		"ExpiredToken": {
			reason: "The error of an expired token names the ServiceAccount's field.",
			spec:   v1alpha1.AWSSpec{Auth: byToken(), Role: first},
			kube: func(k *kube) {
				k.token = func(a []string) (string, error) { return fake.NewToken(issuer, shopSA, a[0], time.Unix(1, 0)), nil }
			},
			want: provider.NewError(provider.Denied, "spec.role: cannot assume role %s: spec.auth.serviceAccountRef: %s", first, expired),
		},
		"TagsNotListed": {
			reason: "Invalid tags are Invalid.",
			spec:   v1alpha1.AWSSpec{Auth: byKey(), Role: target, ExternalID: "shop-42", TransitiveTagKeys: []string{"team"}},
			want:   provider.NewError(provider.Invalid, "spec.role: cannot assume role %s: %s", target, rejected),
		},
		"Throttled": {
			reason: "Throttling by STS is Throttled.",
			spec:   v1alpha1.AWSSpec{Auth: byKey(), Role: target, ExternalID: "shop-42"},
			fault:  &emulator.Fault{Code: "Throttling", RetryAfter: 3 * time.Second},
			want:   &provider.Error{Class: provider.Throttled, RetryAfter: 3 * time.Second, Message: "spec.role: cannot assume role " + target + ": AWS throttles the calls; retrying with back-off"},
		},
		"Down": {
			reason: "A login without an answer is Unavailable, not Denied.",
			spec:   v1alpha1.AWSSpec{Auth: byKey(), Role: target, ExternalID: "shop-42"},
			fault:  &emulator.Fault{Status: 503},
			want:   provider.NewError(provider.Unavailable, "spec.role: cannot assume role %s: AWS returned status 503", target),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := startSTS(t)
			if tc.fault != nil {
				srv.Inject(*tc.fault)
			}
			k := good()
			if tc.kube != nil {
				tc.kube(&k)
			}
			tc.spec.Region = "us-east-1"
			c, err := load(t, tc.spec, k)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.AWS.Credentials.Retrieve(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			got := c.Explain(err, `secret "a"`, nil)
			if diff := cmp.Diff(tc.want, error(got)); diff != "" {
				t.Errorf("%s\nExplain(...): -want, +got:\n%s", tc.reason, diff)
			}
			if CodeOf(err) != "" {
				t.Errorf("%s\nCodeOf(...): a failed login is no answer of the service", tc.reason)
			}
			if strings.Contains(got.Error(), canary) {
				t.Errorf("%s\nthe error shows a credential: %s", tc.reason, got)
			}
		})
	}
}

func TestSessionName(t *testing.T) {
	cases := map[string]struct {
		reason          string
		namespace, name string
		want            string
	}{
		"Namespaced": {"The session's name contains the store's namespace and name.", "shop", "prod", "direct-secrets@shop@prod"},
		"Cluster":    {"The session's name of a cluster store has no namespace.", "", "prod", "direct-secrets@@prod"},
		"Long":       {"The session's name is cut to the 64 characters that STS allows.", strings.Repeat("n", 63), "prod", "direct-secrets@" + strings.Repeat("n", 49)},
		"Odd":        {"Characters that STS does not allow are replaced.", "a", "b:c d", "direct-secrets@a@b-c-d"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, sessionName(tc.namespace, tc.name)); diff != "" {
				t.Errorf("%s\nsessionName(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
