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

// calls returns all that an emulator was asked for.
func calls(srv *emulator.Server) func() []string {
	return func() []string {
		all := []string{}
		for _, c := range srv.CallLog() {
			all = append(all, c.Operation)
		}
		return all
	}
}

// TestEscapes tries to get from namespace shop at secrets of bank. The store has no prefix, so that a
// key is all that stands between them.
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
	suite.Namespace(t, ns, nil)
	suite.Secret(t, ns, "aws", accessKey)
	suite.Start(t, "provider-aws", manifests.Rights, newOperator)

	auth := byKey()
	auth.SecretRef.AccessKeyIDSecretRef.Namespace, auth.SecretRef.SecretAccessKeySecretRef.Namespace = ns, ns
	spec := v1alpha1.AWSSpec{Region: "us-east-1", Endpoint: srv.URL(), Auth: auth}
	for kind, of := range map[string]struct {
		allowed []string
		own     string
		cases   map[string]operatortest.Escape
	}{
		"ClusterAWSSecretsManager": {[]string{"${namespace}/*", "common/db"}, ns + "/db", map[string]operatortest.Escape{
			"Foreign":     operatortest.Key("The name itself.", "bank/db"),
			"ARN":         operatortest.Key("An ARN names a secret anywhere.", foreign),
			"PartialARN":  operatortest.Key("So does one without the characters at its end.", arn+"bank/db"),
			"CommonARN":   operatortest.Key("What is allowed by name is not by ARN.", arn+"common/db"),
			"ARNCase":     operatortest.Key("However it is spelled.", "ARN"+foreign[3:]),
			"Suffix":      operatortest.Key("AWS puts six characters behind a name, and knows it without them.", "common/db"+foreign[len(arn+"bank/db"):]),
			"BankSuffix":  operatortest.Key("Also of others.", foreign[len(arn):]),
			"Up":          operatortest.Key("No way up.", ns+"/../bank/db"),
			"UpFirst":     operatortest.Key("Nor at the beginning.", "../bank/db"),
			"Here":        operatortest.Key("Nor a detour.", ns+"/./../bank/db"),
			"Encoded":     operatortest.Key("Nor an encoded one.", ns+"/%2e%2e/bank/db"),
			"Case":        operatortest.Key("Letters are as they are.", "Common/db"),
			"CaseOwn":     operatortest.Key("Those of the namespace, too.", "Shop-escapes/db"),
			"LookAlike":   operatortest.Key("A letter that looks alike is another one.", "соmmon/db"),
			"FullWidth":   operatortest.Key("So is a slash.", ns+"／db"),
			"Longer":      operatortest.Key("A namespace that begins so is another one.", ns+"-2/db"),
			"Stage":       operatortest.Key("A stage behind the key makes another key of it.", "common/db:AWSCURRENT"),
			"Version":     operatortest.Key("So does a version.", "common/db#AWSPREVIOUS"),
			"StageOfBank": {Why: "A stage beside the key makes no difference.", Ref: common.RemoteRef{Key: "bank/db", Version: "AWSCURRENT"}},
			"Everything":  operatortest.Find("A find without a path looks at all.", ""),
			"Beginning":   operatortest.Find("The name of the namespace begins that of others.", ns),
			"FindUp":      operatortest.Find("No way up.", ns+"/../"),
			"FindTags":    {Why: "Others set the tags.", Find: &common.Find{Tags: map[string]string{"team": "shop"}}},
		}},
		"ClusterAWSParameterStore": {[]string{"/${namespace}/*", "/common/db"}, "/" + ns + "/db", map[string]operatortest.Escape{
			"Foreign":    operatortest.Key("The name itself.", "/bank/db"),
			"ARN":        operatortest.Key("An ARN names a parameter anywhere.", "arn:aws:ssm:us-east-1:000000000000:parameter/bank/db"),
			"CommonARN":  operatortest.Key("What is allowed by name is not by ARN.", "arn:aws:ssm:us-east-1:000000000000:parameter/common/db"),
			"Up":         operatortest.Key("No way up.", "/"+ns+"/../bank/db"),
			"NoSlash":    operatortest.Key("Without the slash it is another name.", "bank/db"),
			"OwnNoSlash": operatortest.Key("Also for the namespace's own.", ns+"/db"),
			"TwoSlashes": operatortest.Key("With two it is one, too.", "//bank/db"),
			"Detour":     operatortest.Key("Wherever they are.", "/"+ns+"//bank/db"),
			"Number":     operatortest.Key("A number behind the key makes another key of it.", "/common/db:1"),
			"Label":      operatortest.Key("So does a label.", "/common/db:prod"),
			"NumberBank": operatortest.Key("Also of others.", "/bank/db:1"),
			"Version":    {Why: "A version beside the key makes no difference.", Ref: common.RemoteRef{Key: "/bank/db", Version: "1"}},
			"TwoNumbers": {Why: "What is no version is none.", Ref: common.RemoteRef{Key: "/common/db", Version: "1:../bank/db"}, Invalid: true},
			"Case":       operatortest.Key("Letters are as they are.", "/Common/db"),
			"LookAlike":  operatortest.Key("A letter that looks alike is another one.", "/соmmon/db"),
			"FullWidth":  operatortest.Key("So is a slash.", "/"+ns+"／db"),
			"Secret":     operatortest.Key("A path of AWS's own leads to Secrets Manager.", "/aws/reference/secretsmanager/bank/db"),
			"Everything": operatortest.Find("A find without a path looks at all.", ""),
			"Root":       operatortest.Find("So does one from the root.", "/"),
			"Beginning":  operatortest.Find("The name of the namespace begins that of others.", "/"+ns),
			"FindUp":     operatortest.Find("No way up.", "/"+ns+"/../"),
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			s := clusterStores[kind](spec, common.ClusterStoreSpec{Conditions: []common.StoreCondition{{AllowedKeys: of.allowed}}})
			s.SetName("escapes")
			suite.Escapes(t, ns, s, of.own, of.cases, calls(srv))
		})
	}

	srv = startEmulator(t) // Nobody else reads it.
	spec.Endpoint = srv.URL()
	for kind, make := range stores {
		t.Run(kind, func(t *testing.T) { // The credentials that they name exist.
			suite.BadStores(t, ns, map[string]operatortest.BadStore{
				"Namespace": {Why: "A namespaced store reads beside itself.", Store: make(ns, spec), Want: common.ReasonStoreInvalidSpec, Says: "spec.auth.secretRef.accessKeyIDSecretRef: Secret aws must not name a namespace"},
			}, calls(srv))
		})
	}
	if all := calls(srv)(); len(all) > 0 {
		t.Errorf("stores that name a namespace made calls: %v", all)
	}
}
