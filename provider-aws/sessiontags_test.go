package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
	"github.com/direct-secrets/direct-secrets/provider-aws/manifests"
)

// tenantsPolicy is the policy of the role in docs/guides/multi-tenancy.md, with the region and account of the emulator, and
// with what a push needs.
const tenantsPolicy = `{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Effect": "Allow",
      "Action": ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret", "secretsmanager:CreateSecret", "secretsmanager:TagResource"],
      "Resource": "arn:aws:secretsmanager:us-east-1:000000000000:secret:${aws:PrincipalTag/direct-secrets.io/namespace}/*"
    },
    {
      "Effect": "Allow",
      "Action": "secretsmanager:BatchGetSecretValue",
      "Resource": "*",
      "Condition": {"StringLike": {"aws:PrincipalTag/direct-secrets.io/namespace": "*"}}
    }
  ]
}`

// testSessionTags applies examples/sessiontags.yaml with the operator's own identity. The policy of the role, not the
// store, keeps the namespaces apart: one reads and pushes its own secrets, the other cannot.
func testSessionTags(t *testing.T, srv *emulator.Server) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	const role = "arn:aws:iam::111122223333:role/tenants"
	srv.AddRole(emulator.Role{ARN: role, Principals: []string{"arn:aws:iam::000000000000:user/test"}, Policy: emulator.ParsePolicy(tenantsPolicy)})
	srv.Put("north/db", []byte("of north"))
	srv.Put("south/db", []byte("of south"))
	applyExample(t, srv, operatortest.Example(t, manifests.Examples, "sessiontags.yaml"))
	own := operatortest.ExternalSecret("south", "own", "ClusterAWSSecretsManager", "by-namespace", "south/db")
	own.Spec.Data = []common.DataEntry{{SecretKey: "password", RemoteRef: common.RemoteRef{Key: "south/db"}}}
	suite.For(t).Create(own)
	push := func(namespace, key string) *common.PushSecret {
		suite.For(t).In(namespace).Source("source", map[string]string{"password": "pushed by " + namespace})
		p := &common.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "push"}}
		p.Spec.StoreRefs = []common.PushStoreRef{{Kind: "ClusterAWSSecretsManager", Name: "by-namespace"}}
		p.Spec.Selector.Secret = &common.PushSecretSelector{Name: "source"}
		p.Spec.Data = []common.PushData{{Match: common.PushMatch{SecretKey: "password", RemoteRef: common.PushRemoteRef{RemoteKey: key}}}}
		suite.For(t).Create(p)
		return p
	}
	push("north", "north/pushed")
	refused := push("south", "north/stolen")

	controlplane.Eventually(t, func() string { return cmp.Diff("of north", suite.For(t).In("north").Data("db")["password"]) })
	controlplane.Eventually(t, func() string { return cmp.Diff("of south", suite.For(t).In("south").Data("own")["password"]) })
	controlplane.Eventually(t, func() string {
		v, _ := srv.Get("north/pushed")
		return cmp.Diff("pushed by north", string(v))
	})
	foreign := &common.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "south", Name: "foreign"}}
	for _, o := range []client.Object{foreign, refused} {
		controlplane.Eventually(t, func() string {
			if c := suite.For(t).Condition(o); !strings.Contains(c, "Denied: ") || !strings.Contains(c, "is not allowed to perform secretsmanager:") {
				return "want that AWS denies it: " + c
			}
			return ""
		})
	}
	if _, ok := srv.Get("north/stolen"); ok {
		t.Error("one namespace has created a secret of the other")
	}
	if suite.For(t).In("south").Secret("foreign") != nil {
		t.Error("a Secret was created from a secret of the other namespace")
	}
	for _, s := range srv.Sessions() {
		if ns := s.Tags["direct-secrets.io/namespace"]; s.RoleARN == role && ns != "north" && ns != "south" {
			t.Errorf("a session of the role must name one namespace: it has the tags %v", s.Tags)
		}
	}
}

// TestSessionTagsCRD checks the API server's validation of the session tags of a cluster store.
func TestSessionTagsCRD(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   v1alpha1.AWSSpec
		scope  common.AuthenticationScope
		want   string // part of the error
	}{
		"Each":     {"With a session for each namespace the policy is valid.", v1alpha1.AWSSpec{Role: shopRole, SessionTagsPolicy: "Simple"}, common.ScopeManifestNamespace, ""},
		"Shared":   {"A session that namespaces share can name none of them.", v1alpha1.AWSSpec{Role: shopRole, SessionTagsPolicy: "Simple"}, "", "sessionTagsPolicy: Simple needs authenticationScope: ManifestNamespace"},
		"None":     {"None is valid everywhere.", v1alpha1.AWSSpec{SessionTagsPolicy: "None"}, "", ""},
		"Other":    {"Another policy is rejected.", v1alpha1.AWSSpec{Role: shopRole, SessionTagsPolicy: "Custom"}, "", "sessionTagsPolicy"},
		"NoRole":   {"Without a role there is no session.", v1alpha1.AWSSpec{SessionTagsPolicy: "Simple"}, common.ScopeManifestNamespace, "need a role"},
		"Reserved": {"A key of the operator is rejected, whatever its case.", v1alpha1.AWSSpec{Role: shopRole, SessionTags: []v1alpha1.SessionTag{{Key: "Direct-Secrets.io/x"}}}, "", "keys of sessionTags must not begin with direct-secrets.io/"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.ClusterAWSSecretsManager{ObjectMeta: metav1.ObjectMeta{Name: "tags-" + strings.ToLower(name)}}
			s.Spec.AWSSpec, s.Spec.AuthenticationScope = tc.spec, tc.scope
			suite.Accepts(t, tc.reason, s, tc.want)
		})
	}
}
