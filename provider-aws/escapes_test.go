package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
	"github.com/direct-secrets/direct-secrets/provider-aws/manifests"
)

// calls returns a function that lists all calls that an emulator has received.
func calls(srv *emulator.Server) func() []string {
	return func() []string {
		all := []string{}
		for _, c := range srv.Calls() {
			all = append(all, c.Operation)
		}
		return all
	}
}

// TestEscapes tries to read secrets of namespace bank from namespace shop. The store has no prefix, so only the
// checks of keys separate the namespaces.
func TestEscapes(t *testing.T) {
	const ns, arn = "shop-escapes", "arn:aws:secretsmanager:us-east-1:000000000000:secret:"
	srv := startEmulator(t)
	value := `{"password":"x"}`
	for _, name := range []string{ns + "/db", "bank/db", "common/db"} {
		srv.Put(name, []byte(value))
		srv.PutParameter("/"+name, value, emulator.Secure())
	}
	bank, err := secretsmanager.NewFromConfig(sdk(srv)).DescribeSecret(t.Context(), &secretsmanager.DescribeSecretInput{SecretId: aws.String("bank/db")})
	if err != nil {
		t.Fatal(err)
	}
	foreign := *bank.ARN
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("aws", accessKey)
	suite.Start(t, "provider-aws", manifests.Permissions, newOperator)

	auth := byKey()
	auth.SecretRef.AccessKeyIDSecretRef.Namespace, auth.SecretRef.SecretAccessKeySecretRef.Namespace = ns, ns
	spec := v1alpha1.AWSSpec{Region: "us-east-1", Endpoint: srv.URL(), Auth: auth}
	for kind, of := range map[string]struct {
		allowed []string
		own     string
		cases   map[string]operatortest.Escape
	}{
		"ClusterAWSSecretsManager": {[]string{"${namespace}/*", "common/db"}, ns + "/db", map[string]operatortest.Escape{
			"Foreign":     operatortest.Key("The name of the other namespace's secret is denied.", "bank/db"),
			"ARN":         operatortest.Key("The ARN of the other namespace's secret is denied.", foreign),
			"PartialARN":  operatortest.Key("The ARN without its random suffix is denied.", arn+"bank/db"),
			"CommonARN":   operatortest.Key("The ARN of an allowed secret is denied, because only its name is allowed.", arn+"common/db"),
			"ARNCase":     operatortest.Key("The ARN of an allowed secret is denied without its random suffix, too.", "ARN"+foreign[3:]),
			"Suffix":      operatortest.Key("An allowed name with the random suffix of an ARN is denied.", "common/db"+foreign[len(arn+"bank/db"):]),
			"BankSuffix":  operatortest.Key("The name of the other namespace's secret with such a suffix is denied.", foreign[len(arn):]),
			"Stage":       operatortest.Key("An allowed key with an appended stage is denied.", "common/db:AWSCURRENT"),
			"Version":     operatortest.Key("An allowed key with an appended version is denied.", "common/db#AWSPREVIOUS"),
			"StageOfBank": {Why: "A stage in the version field does not change the denial.", Ref: common.RemoteRef{Key: "bank/db", Version: "AWSCURRENT"}},
			"Everything":  operatortest.Find("A find without a path is denied.", ""),
		}},
		"ClusterAWSParameterStore": {[]string{"/${namespace}/*", "/common/db"}, "/" + ns + "/db", map[string]operatortest.Escape{
			"Foreign":    operatortest.Key("The name of the other namespace's parameter is denied.", "/bank/db"),
			"ARN":        operatortest.Key("The ARN of the other namespace's parameter is denied.", "arn:aws:ssm:us-east-1:000000000000:parameter/bank/db"),
			"CommonARN":  operatortest.Key("The ARN of an allowed parameter is denied, because only its name is allowed.", "arn:aws:ssm:us-east-1:000000000000:parameter/common/db"),
			"NoSlash":    operatortest.Key("A key without the leading slash is denied.", "bank/db"),
			"OwnNoSlash": operatortest.Key("A key of the own namespace without the leading slash is denied.", ns+"/db"),
			"Detour":     operatortest.Key("A key with two slashes in the middle is denied.", "/"+ns+"//bank/db"),
			"Number":     operatortest.Key("An allowed key with an appended version number is denied.", "/common/db:1"),
			"Label":      operatortest.Key("An allowed key with an appended label is denied.", "/common/db:prod"),
			"NumberBank": operatortest.Key("A key of the other namespace with an appended version number is denied.", "/bank/db:1"),
			"Version":    {Why: "The version field does not change the denial.", Ref: common.RemoteRef{Key: "/bank/db", Version: "1"}},
			"TwoNumbers": {Why: "A version that contains a key is rejected as invalid.", Ref: common.RemoteRef{Key: "/common/db", Version: "1:../bank/db"}, Invalid: true},
			"Secret":     operatortest.Key("A reference to Secrets Manager is denied.", "/aws/reference/secretsmanager/bank/db"),
			"Everything": operatortest.Find("A find without a path is denied.", ""),
			"Root":       operatortest.Find("A find from the root is denied.", "/"),
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			s := clusterStores[kind](spec, common.ClusterStoreSpec{Conditions: []common.StoreCondition{{AllowedKeys: of.allowed}}})
			s.SetName("escapes")
			suite.Escapes(t, ns, s, of.own, of.cases, calls(srv))
		})
	}

	srv = startEmulator(t) // The other emulator records only the calls of this test.
	spec.Endpoint = srv.URL()
	for kind, make := range stores {
		t.Run(kind, func(t *testing.T) { // The credentials that these stores refer to exist.
			suite.BadStores(t, ns, map[string]operatortest.BadStore{
				"Namespace": {Why: "A namespaced store reads only Secrets in its own namespace.", Store: make(ns, spec), Want: common.ReasonStoreInvalidSpec, Message: "spec.auth.secretRef.accessKeyIDSecretRef: Secret aws must not name a namespace"},
			}, calls(srv))
		})
	}
	if all := calls(srv)(); len(all) > 0 {
		t.Errorf("stores that name a namespace made calls: %v", all)
	}
}
