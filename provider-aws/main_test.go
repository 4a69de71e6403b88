package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
	"github.com/direct-secrets/direct-secrets/provider-aws/manifests"
)

var suite operatortest.Suite

const shopRole = "arn:aws:iam::111122223333:role/shop"

func TestMain(m *testing.M) { suite.Main(m, v1alpha1.AddToScheme, manifests.CRDs) }

func TestCRDs(t *testing.T) { operatortest.CheckCRDs(t, manifests.CRDs) }

func newStore(namespace, name string, spec v1alpha1.AWSSpec) *v1alpha1.AWSSecretsManager {
	return &v1alpha1.AWSSecretsManager{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.AWSSecretsManagerSpec{AWSSpec: spec},
	}
}

func byKey() *v1alpha1.AWSAuth {
	return &v1alpha1.AWSAuth{SecretRef: &v1alpha1.AWSSecretRef{
		AccessKeyIDSecretRef:     common.SecretKeySelector{Name: "aws", Key: "id"},
		SecretAccessKeySecretRef: common.SecretKeySelector{Name: "aws", Key: "key"},
	}}
}

func byToken() *v1alpha1.AWSAuth {
	return &v1alpha1.AWSAuth{ServiceAccountRef: &common.ServiceAccountSelector{Name: "default"}}
}

// byOperator logs in as the operator's own ServiceAccount.
func byOperator(audience string) *v1alpha1.AWSAuth {
	return &v1alpha1.AWSAuth{OperatorServiceAccount: &common.OperatorServiceAccount{Audience: audience}}
}

func TestCRD(t *testing.T) {
	both := byKey()
	both.ServiceAccountRef = byToken().ServiceAccountRef
	ownAndKey := byKey()
	ownAndKey.OperatorServiceAccount = byOperator("sts.amazonaws.com").OperatorServiceAccount
	const needsRole = "additionalRoles, externalID, sessionTags, sessionTagsPolicy and transitiveTagKeys need a role"
	cases := map[string]struct {
		reason string
		spec   v1alpha1.AWSSpec
		want   string // part of the error
	}{
		"Empty":      {"An empty spec is valid.", v1alpha1.AWSSpec{}, ""},
		"Key":        {"An access key is enough.", v1alpha1.AWSSpec{Region: "eu-central-1", Auth: byKey()}, ""},
		"Everything": {"All fields together are valid.", v1alpha1.AWSSpec{Region: "eu-central-1", Role: shopRole, AdditionalRoles: []string{shopRole}, ExternalID: "x", SessionTags: []v1alpha1.SessionTag{{Key: "k", Value: ""}}, TransitiveTagKeys: []string{"k"}, Endpoint: "https://aws.example", Auth: byToken()}, ""},
		"TwoAuths":   {"Two ways to log in are rejected.", v1alpha1.AWSSpec{Role: shopRole, Auth: both}, "set exactly one of secretRef, serviceAccountRef and operatorServiceAccount"},
		"NoAuth":     {"An empty auth is rejected.", v1alpha1.AWSSpec{Auth: &v1alpha1.AWSAuth{}}, "set exactly one of secretRef, serviceAccountRef and operatorServiceAccount"},
		"TokenAlone": {"A ServiceAccount is enough, because its annotation can name the role.", v1alpha1.AWSSpec{Auth: byToken()}, ""},
		"Own":        {"The operator's own ServiceAccount with a role is accepted.", v1alpha1.AWSSpec{Role: shopRole, Auth: byOperator("sts.amazonaws.com")}, ""},
		"OwnAlone":   {"The operator's own ServiceAccount needs a role, because its annotations are not read.", v1alpha1.AWSSpec{Auth: byOperator("sts.amazonaws.com")}, "auth.operatorServiceAccount needs a role"},
		"OwnBare":    {"The operator's own ServiceAccount needs an audience.", v1alpha1.AWSSpec{Role: shopRole, Auth: byOperator("")}, "operatorServiceAccount.audience"},
		"OwnAndKey":  {"The operator's own ServiceAccount together with an access key is rejected.", v1alpha1.AWSSpec{Role: shopRole, Auth: ownAndKey}, "set exactly one of secretRef, serviceAccountRef and operatorServiceAccount"},
		"Roles":      {"additionalRoles are rejected without a role.", v1alpha1.AWSSpec{AdditionalRoles: []string{"a"}}, needsRole},
		"ExternalID": {"A field that would be ignored is rejected.", v1alpha1.AWSSpec{ExternalID: "x"}, needsRole},
		"Tags":       {"A field that would be ignored is rejected.", v1alpha1.AWSSpec{SessionTags: []v1alpha1.SessionTag{{Key: "k"}}}, needsRole},
		"Partition":  {"The partitions of China and GovCloud are accepted.", v1alpha1.AWSSpec{Role: "arn:aws-us-gov:iam::111122223333:role/path/to/shop", AdditionalRoles: []string{"arn:aws-cn:iam::111122223333:role/shop"}}, ""},
		"RoleName":   {"A role without its ARN is rejected.", v1alpha1.AWSSpec{Role: "shop"}, "role must be the ARN of an IAM role"},
		"RoleNames":  {"An additional role without its ARN is rejected.", v1alpha1.AWSSpec{Role: shopRole, AdditionalRoles: []string{"shop"}}, "each of additionalRoles must be the ARN of an IAM role"},
		"Endpoint":   {"An endpoint without a scheme is rejected.", v1alpha1.AWSSpec{Endpoint: "aws.example"}, "endpoint must be a URL"},
		"Region":     {"A region with other characters is rejected, because it becomes part of a host name.", v1alpha1.AWSSpec{Region: "evil.example/"}, "spec.region"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			suite.Accepts(t, tc.reason, newStore("default", strings.ToLower(name), tc.spec), tc.want)
		})
	}
}

// accessKey holds the values that byKey refers to.
var accessKey = map[string]string{"id": "test", "key": "test"}

// startEmulator starts an emulator, which serves STS, too, and stops it when the test ends.
func startEmulator(t *testing.T, opts ...emulator.Option) *emulator.Server {
	t.Helper()
	srv, err := emulator.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() }) // The test does not depend on a clean stop.
	t.Setenv("AWS_ENDPOINT_URL_STS", srv.URL())
	return srv
}

func TestProvider(t *testing.T) {
	const role = "arn:aws:iam::000000000000:role/shop"
	srv := startEmulator(t, emulator.WithRoles(emulator.Role{ARN: role, WebIdentities: []emulator.WebIdentity{
		{Subject: "system:serviceaccount:shop:default", Audience: "sts.amazonaws.com"},
	}}))
	for name, labels := range map[string]map[string]string{"shop": {"secrets": "aws"}, "bank": nil} {
		suite.For(t).Namespace(name, labels)
		suite.For(t).In(name).Source("aws", accessKey)
	}
	suite.Start(t, "provider-aws", manifests.Permissions, newOperator)
	t.Run("Namespaced", func(t *testing.T) { testNamespaced(t, srv, role) })
	t.Run("Cluster", func(t *testing.T) { testCluster(t, srv) })
	t.Run("Example", func(t *testing.T) { testExample(t, srv) })
	t.Run("PushExample", func(t *testing.T) { testPushExample(t, srv) })
	t.Run("SessionTags", func(t *testing.T) { testSessionTags(t, srv) })
	t.Run("Events", testEvents)
}

func testNamespaced(t *testing.T, srv *emulator.Server, role string) {
	srv.Put("shop/db", []byte(`{"user":"u","password":"one"}`))
	srv.PutParameter("shop/db", `{"user":"u","password":"two"}`, emulator.Secure())
	spec := v1alpha1.AWSSpec{Region: "us-east-1", Endpoint: srv.URL(), Auth: byKey()}
	prefixed := func(name string, spec v1alpha1.AWSSpec) *v1alpha1.AWSSecretsManager {
		s := newStore("shop", name, spec)
		s.Spec.Prefix = "shop/"
		return s
	}
	suite.For(t).Create(prefixed("by-key", spec))
	suite.For(t).Create(&v1alpha1.AWSParameterStore{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "parameters"},
		Spec:       v1alpha1.AWSParameterStoreSpec{AWSSpec: spec, KeySpec: v1alpha1.KeySpec{Prefix: "shop/"}},
	})
	spec.Auth, spec.Role = byToken(), role
	suite.For(t).Create(prefixed("by-token", spec))
	suite.For(t).Create(newStore("shop", "ambient", v1alpha1.AWSSpec{Region: "us-east-1"}))

	suite.For(t).Create(externalSecret("shop", "AWSSecretsManager", "by-key", "db"))
	suite.For(t).Create(externalSecret("shop", "AWSSecretsManager", "by-token", "db"))
	suite.For(t).Create(externalSecret("shop", "AWSParameterStore", "parameters", "db"))
	for name, want := range map[string]string{"by-key": "one", "by-token": "one", "parameters": "two"} {
		controlplane.Eventually(t, func() string { return cmp.Diff(want, suite.For(t).In("shop").Data(name)["password"]) })
	}
	for _, name := range []string{"by-key", "by-token"} {
		controlplane.Eventually(t, func() string {
			return cmp.Diff("True Valid", suite.For(t).Ready(&v1alpha1.AWSSecretsManager{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}))
		})
	}
	controlplane.Eventually(t, func() string {
		return cmp.Diff("True Valid", suite.For(t).Ready(&v1alpha1.AWSParameterStore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "parameters"}}))
	})
	controlplane.Eventually(t, func() string {
		return cmp.Diff("False InvalidSpec", suite.For(t).Ready(&v1alpha1.AWSSecretsManager{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ambient"}}))
	})
}

// testCluster checks that cluster stores serve the namespaces with a label, and only the keys of each.
func testCluster(t *testing.T, srv *emulator.Server) {
	for _, ns := range []string{"shop", "bank"} {
		srv.Put(ns+"/key", []byte(`{"password":"secret of `+ns+`"}`))
		srv.PutParameter("/"+ns+"/key", `{"password":"parameter of `+ns+`"}`)
	}
	auth := byKey()
	auth.SecretRef.AccessKeyIDSecretRef.Namespace, auth.SecretRef.SecretAccessKeySecretRef.Namespace = "bank", "bank"
	spec := v1alpha1.AWSSpec{Region: "us-east-1", Endpoint: srv.URL(), Auth: auth}
	serves := common.ClusterStoreSpec{Conditions: []common.StoreCondition{{
		NamespaceCondition: common.NamespaceCondition{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"secrets": "aws"}}},
		AllowedKeys:        []string{"${namespace}/*", "/${namespace}/*"},
	}}}
	suite.For(t).Create(&v1alpha1.ClusterAWSSecretsManager{ObjectMeta: metav1.ObjectMeta{Name: "secrets"}, Spec: v1alpha1.ClusterAWSSecretsManagerSpec{
		AWSSecretsManagerSpec: v1alpha1.AWSSecretsManagerSpec{AWSSpec: spec}, ClusterStoreSpec: serves,
	}})
	suite.For(t).Create(&v1alpha1.ClusterAWSParameterStore{ObjectMeta: metav1.ObjectMeta{Name: "parameters"}, Spec: v1alpha1.ClusterAWSParameterStoreSpec{
		AWSParameterStoreSpec: v1alpha1.AWSParameterStoreSpec{AWSSpec: spec}, ClusterStoreSpec: serves,
	}})
	controlplane.Eventually(t, func() string {
		return cmp.Diff("True Valid", suite.For(t).Ready(&v1alpha1.ClusterAWSSecretsManager{ObjectMeta: metav1.ObjectMeta{Name: "secrets"}}))
	})
	controlplane.Eventually(t, func() string {
		return cmp.Diff("True Valid", suite.For(t).Ready(&v1alpha1.ClusterAWSParameterStore{ObjectMeta: metav1.ObjectMeta{Name: "parameters"}}))
	})

	for kind, of := range map[string]struct{ store, slash, value string }{
		"ClusterAWSSecretsManager": {"secrets", "", "secret of "},
		"ClusterAWSParameterStore": {"parameters", "/", "parameter of "},
	} {
		name := func(es *common.ExternalSecret, suffix string) *common.ExternalSecret {
			es.Name = strings.ToLower(kind) + suffix
			return es
		}
		own := name(externalSecret("shop", kind, of.store, of.slash+"shop/key"), "-own")
		foreign := name(externalSecret("shop", kind, of.store, of.slash+"bank/key"), "-foreign")
		unlabelled := name(externalSecret("bank", kind, of.store, of.slash+"bank/key"), "")
		for _, es := range []*common.ExternalSecret{own, foreign, unlabelled} {
			suite.For(t).Create(es)
		}
		controlplane.Eventually(t, func() string { return cmp.Diff(of.value+"shop", suite.For(t).In("shop").Data(own.Name)["password"]) })
		for _, es := range []*common.ExternalSecret{foreign, unlabelled} {
			controlplane.Eventually(t, func() string { return cmp.Diff("False Forbidden", suite.For(t).Ready(es)) })
		}

		label(t, "bank", "aws")
		controlplane.Eventually(t, func() string {
			return cmp.Diff(of.value+"bank", suite.For(t).In("bank").Data(unlabelled.Name)["password"])
		})
		label(t, "bank", "none")
	}
}

// applyExample applies an example with another address.
func applyExample(t *testing.T, srv *emulator.Server, manifest []byte) {
	t.Helper()
	for doc := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, o); err != nil {
			t.Fatal(err)
		}
		if o.GroupVersionKind().Group == v1alpha1.Group {
			if err := unstructured.SetNestedField(o.Object, srv.URL(), "spec", "endpoint"); err != nil {
				t.Fatal(err)
			}
		}
		suite.For(t).Create(o)
	}
}

// testPushExample applies examples/pushsecret.yaml. The value that the first object has pushed stays when the
// cluster generates another password. The second object pushes the new password.
func testPushExample(t *testing.T, srv *emulator.Server) {
	srv.Put("shared/passwords", []byte(`{"bakery":"theirs"}`))
	applyExample(t, srv, operatortest.Example(t, manifests.Examples, "pushsecret.yaml"))
	value := func(name string) string {
		v, _ := srv.Get(name)
		return string(v)
	}
	controlplane.Eventually(t, func() string {
		return cmp.Diff(`{"bakery":"theirs","garden":"made-in-the-cluster"}`, value("shared/passwords"))
	})
	controlplane.Eventually(t, func() string {
		return cmp.Diff("made-in-the-cluster", suite.For(t).In("garden").Data("password")["password"])
	})
	controlplane.Eventually(t, func() string { return cmp.Diff([]string{"eu-west-1"}, srv.Replicas("shared/passwords")) })
	if policy := srv.ResourcePolicy("shared/passwords"); !strings.Contains(policy, "arn:aws:iam::444455556666:root") {
		t.Errorf("the policy of the example is not set: %q", policy)
	}
	generated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "generated"}, Data: map[string][]byte{"password": []byte("made-again")}}
	if err := suite.API.Update(t.Context(), generated); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() string {
		return cmp.Diff(`{"bakery":"theirs","garden":"made-again"}`, value("shared/passwords"))
	})
	controlplane.Eventually(t, func() string {
		return cmp.Diff("True SecretAlreadyExists", suite.For(t).Ready(&common.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "first-password"}}))
	})
	if got := value("garden/password"); got != "made-in-the-cluster" {
		t.Errorf("the store holds %q, want the value that was pushed first", got)
	}
}

// testExample applies examples/parameterstore.yaml with another address.
func testExample(t *testing.T, srv *emulator.Server) {
	srv.PutParameter("/bakery/oven/password", "before")
	srv.LabelParameter("/bakery/oven/password", "previous")
	srv.PutParameter("/bakery/oven/password", "now", emulator.Secure())
	srv.PutParameter("/bakery/settings/heat", "230")
	srv.PutParameter("/bakery/settings/minutes", "40")
	applyExample(t, srv, operatortest.Example(t, manifests.Examples, "parameterstore.yaml"))
	for name, want := range map[string]map[string]string{
		"oven":     {"password": "now", "password-before": "before"},
		"settings": {"heat": "230", "minutes": "40"},
	} {
		controlplane.Eventually(t, func() string { return cmp.Diff(want, suite.For(t).In("bakery").Data(name)) })
	}
}

// externalSecret returns an ExternalSecret that reads the property password of a key. It has the store's name.
func externalSecret(namespace, kind, store, key string) *common.ExternalSecret {
	return operatortest.ExternalSecret(namespace, store, kind, store, key, "password")
}

func label(t *testing.T, namespace, value string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"secrets":"`+value+`"}}}`))
	if err := suite.API.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, patch); err != nil {
		t.Fatal(err)
	}
}
