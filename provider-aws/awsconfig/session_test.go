package awsconfig

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func loadSTS(t *testing.T, spec v1alpha1.AWSSpec, s Session) *Config {
	t.Helper()
	none := int32(0)
	o := &v1alpha1.STSSessionToken{}
	o.Namespace, o.Name = "shop", "prod"
	o.Spec.AWSSpec = spec
	o.Spec.RetrySettings = &common.RetrySettings{MaxRetries: &none, RetryInterval: "1ms"}
	c, err := LoadSTS(t.Context(), o, s, good())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOpenSession(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   v1alpha1.AWSSpec
		want   []emulator.Session // The sessions after two calls of OpenSession.
	}{
		"Role": {
			reason: "Each call opens a new session with the requested duration.",
			spec:   v1alpha1.AWSSpec{Auth: byKey(), Role: first},
			want:   []emulator.Session{{RoleARN: first, Chain: []string{first}}, {RoleARN: first, Chain: []string{first}}},
		},
		"Chain": {
			reason: "The roles before the last one are assumed once.",
			spec:   v1alpha1.AWSSpec{Auth: byKey(), Role: target, AdditionalRoles: []string{first, second}, ExternalID: "shop-42"},
			want: []emulator.Session{
				{RoleARN: first, Chain: []string{first}}, {RoleARN: second, Chain: []string{first, second}},
				{RoleARN: target, ExternalID: "shop-42", Chain: []string{first, second, target}},
				{RoleARN: target, ExternalID: "shop-42", Chain: []string{first, second, target}},
			},
		},
		"WebIdentity": {
			reason: "A ServiceAccount's token opens sessions, too.",
			spec:   v1alpha1.AWSSpec{Auth: byToken(), Role: first},
			want: []emulator.Session{
				{RoleARN: first, Subject: shopSA, Audience: "sts.amazonaws.com", Chain: []string{first}},
				{RoleARN: first, Subject: shopSA, Audience: "sts.amazonaws.com", Chain: []string{first}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := startSTS(t)
			// spec.endpoint is that of STS: no server listens at the one of the environment.
			t.Setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
			tc.spec.Region, tc.spec.Endpoint = "us-east-1", srv.URL()
			c := loadSTS(t, tc.spec, Session{Duration: 20 * time.Minute})
			for range 2 {
				got, err := c.OpenSession(t.Context())
				if err != nil {
					t.Fatal(c.Explain(err, "", nil))
				}
				all := srv.Sessions()
				last := all[len(all)-1]
				if diff := cmp.Diff([]any{last.AccessKeyID, 20 * time.Minute}, []any{got.AccessKeyID, last.Expires.Sub(last.Issued)}); diff != "" {
					t.Errorf("%s\nOpenSession(...): -want, +got:\n%s", tc.reason, diff)
				}
			}
			ignore := cmpopts.IgnoreFields(emulator.Session{}, "AccessKeyID", "Name", "AssumedRoleARN", "SourceAccessKeyID", "Issued", "Expires")
			if diff := cmp.Diff(tc.want, srv.Sessions(), ignore, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nsessions: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
