package awsconfig

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// limitedTo is a kube whose Client works for the objects of one namespace.
type limitedTo struct {
	kube

	namespace string
}

func (l limitedTo) LimitedTo() string { return l.namespace }

func manyTags(n int) (tags []v1alpha1.SessionTag) {
	for i := range n {
		tags = append(tags, v1alpha1.SessionTag{Key: fmt.Sprintf("k%d", i), Value: "v"})
	}
	return tags
}

func TestSessionTags(t *testing.T) {
	const simple = v1alpha1.SessionTagsSimple
	namespaced := func(spec v1alpha1.AWSSpec) Object {
		o := &v1alpha1.AWSSecretsManager{}
		o.Namespace, o.Name, o.Spec.AWSSpec = "shop", "prod", spec
		return o
	}
	cluster := func(spec v1alpha1.AWSSpec) Object {
		o := &v1alpha1.ClusterAWSParameterStore{}
		o.Name, o.Spec.AWSSpec = "platform", spec
		return o
	}
	type want struct {
		Tags       map[string]string
		Transitive []string
		Err        string // part of it
	}
	ofShop := map[string]string{"direct-secrets.io/namespace": "shop", "direct-secrets.io/store-kind": "AWSSecretsManager", "direct-secrets.io/store-name": "prod"}
	cases := map[string]struct {
		reason string
		object func(v1alpha1.AWSSpec) Object
		spec   v1alpha1.AWSSpec
		creds  provider.Credentials
		want   want
	}{
		"Unset": {
			reason: "Without a policy the operator adds no tags.",
			object: namespaced, spec: v1alpha1.AWSSpec{Auth: byKey(), Role: first}, creds: good(),
		},
		"None": {
			reason: "The policy None adds no tags to those of the spec.",
			object: namespaced, spec: v1alpha1.AWSSpec{Auth: byKey(), Role: first, SessionTagsPolicy: v1alpha1.SessionTagsNone, SessionTags: []v1alpha1.SessionTag{{Key: "team", Value: "shop"}}}, creds: good(),
			want: want{Tags: map[string]string{"team": "shop"}},
		},
		"Namespaced": {
			reason: "A namespaced store has the namespace, the Kind and the name of the store, and can make them transitive.",
			object: namespaced, spec: v1alpha1.AWSSpec{Auth: byKey(), Role: first, SessionTagsPolicy: simple, TransitiveTagKeys: []string{"direct-secrets.io/namespace"}}, creds: good(),
			want: want{Tags: ofShop, Transitive: []string{"direct-secrets.io/namespace"}},
		},
		"OtherLimit": {
			reason: "The namespace of a namespaced store is its own.",
			object: namespaced, spec: v1alpha1.AWSSpec{Auth: byKey(), Role: first, SessionTagsPolicy: simple}, creds: limitedTo{good(), "bank"},
			want: want{Tags: ofShop},
		},
		"Cluster": {
			reason: "A cluster store has the namespace of the objects for which the client works.",
			object: cluster, spec: v1alpha1.AWSSpec{Auth: byKey(), Role: first, SessionTagsPolicy: simple}, creds: limitedTo{good(), "bank"},
			want: want{Tags: map[string]string{"direct-secrets.io/namespace": "bank", "direct-secrets.io/store-kind": "ClusterAWSParameterStore", "direct-secrets.io/store-name": "platform"}},
		},
		"Shared": {
			reason: "A cluster store whose client works for several namespaces is refused, because its session could carry none of them.",
			object: cluster, spec: v1alpha1.AWSSpec{Auth: byKey(), Role: first, SessionTagsPolicy: simple}, creds: limitedTo{good(), ""},
			want: want{Err: "Invalid: spec.sessionTagsPolicy: the session of this store is shared by several namespaces; set spec.authenticationScope to ManifestNamespace"},
		},
		"UnknownLimit": {
			reason: "Credentials that report no namespace count as shared.",
			object: cluster, spec: v1alpha1.AWSSpec{Auth: byKey(), Role: first, SessionTagsPolicy: simple}, creds: good(),
			want: want{Err: "Invalid: spec.sessionTagsPolicy: the session of this store is shared by several namespaces"},
		},
		"ServiceAccount": {
			reason: "With a token the tags are for the role after the one that the token assumes, with the ServiceAccount.",
			object: namespaced, spec: v1alpha1.AWSSpec{Auth: byToken(), Role: second, AdditionalRoles: []string{first}, SessionTagsPolicy: simple}, creds: good(),
			want: want{Tags: map[string]string{
				"direct-secrets.io/namespace": "shop", "direct-secrets.io/store-kind": "AWSSecretsManager", "direct-secrets.io/store-name": "prod",
				"direct-secrets.io/service-account": "shop/shop",
			}},
		},
		"ServiceAccountAlone": {
			reason: "A role that a token assumes cannot get tags.",
			object: namespaced, spec: v1alpha1.AWSSpec{Auth: byToken(), Role: first, SessionTagsPolicy: simple}, creds: good(),
			want: want{Err: "Invalid: spec.role: externalID, sessionTags, sessionTagsPolicy and transitiveTagKeys cannot be used with a role that is assumed with a token"},
		},
		"LongServiceAccount": {
			reason: "A tag is never cut, because a cut one could name another ServiceAccount.",
			object: namespaced, creds: good(),
			spec: v1alpha1.AWSSpec{Auth: &v1alpha1.AWSAuth{ServiceAccountRef: &common.ServiceAccountSelector{Name: strings.Repeat("a", 253)}}, Role: second, AdditionalRoles: []string{first}, SessionTagsPolicy: simple},
			want: want{Err: "Invalid: spec.auth.serviceAccountRef.name: too long for the session tag direct-secrets.io/service-account"},
		},
		"NoRole": {
			reason: "Without a role there is no session to tag.",
			object: namespaced, spec: v1alpha1.AWSSpec{Auth: byKey(), SessionTagsPolicy: simple}, creds: good(),
			want: want{Err: "Invalid: spec.role: required with"},
		},
		"Reserved": {
			reason: "The spec cannot set a key of the operator, whatever its case, also without a policy.",
			object: namespaced, spec: v1alpha1.AWSSpec{Auth: byKey(), Role: first, SessionTags: []v1alpha1.SessionTag{{Key: "a"}, {Key: "Direct-Secrets.IO/namespace", Value: "bank"}}}, creds: good(),
			want: want{Err: "Invalid: spec.sessionTags[1].key: keys that begin with direct-secrets.io/ are reserved for the operator"},
		},
		"TooMany": {
			reason: "More tags than AWS allows are refused before a call.",
			object: namespaced, spec: v1alpha1.AWSSpec{Auth: byKey(), Role: first, SessionTagsPolicy: simple, SessionTags: manyTags(48)}, creds: good(),
			want: want{Err: "Invalid: spec.sessionTags: with those of sessionTagsPolicy a session would have 51 tags, and AWS allows 50"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := startSTS(t)
			tc.spec.Region, tc.spec.Endpoint = "us-east-1", "https://secretsmanager.invalid"
			c, err := Load(t.Context(), tc.object(tc.spec), tc.creds)
			if err == nil {
				if _, err = c.AWS.Credentials.Retrieve(t.Context()); err != nil {
					err = c.Explain(err, "", nil)
				}
			}
			var got want
			for _, s := range srv.Sessions() {
				if s.RoleARN == tc.spec.Role {
					got.Tags, got.Transitive = s.Tags, s.TransitiveTagKeys
				} else if len(s.Tags) > 0 {
					t.Errorf("only spec.role gets tags: %s has %v", s.RoleARN, s.Tags)
				}
			}
			if err != nil {
				got.Err = string(provider.ClassOf(err)) + ": " + err.Error()
				if tc.want.Err != "" && strings.HasPrefix(got.Err, tc.want.Err) {
					got.Err = tc.want.Err
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTagSession checks that the error names the permission that session tags need.
func TestTagSession(t *testing.T) {
	srv := startSTS(t)
	srv.AddCredential(emulator.Credential{AccessKeyID: "test", SecretAccessKey: canary, UserName: "test", Deny: []emulator.Deny{{Action: "sts:TagSession"}}})
	c, err := load(t, v1alpha1.AWSSpec{Region: "us-east-1", Auth: byKey(), Role: first, SessionTagsPolicy: v1alpha1.SessionTagsSimple}, good())
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.AWS.Credentials.Retrieve(t.Context())
	const want = "spec.role: cannot assume role " + first + ": the caller is not allowed to pass session tags; allow sts:TagSession in the caller's policy, and in the role's trust policy"
	if diff := cmp.Diff(want, c.Explain(err, "", nil).Error()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
