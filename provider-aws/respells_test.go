package main

import (
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/manifests"
)

// TestRespelled pushes by the name and the ARN of a secret, and by all spellings of its properties.
func TestRespelled(t *testing.T) {
	const ns = "respelled"
	srv := startEmulator(t)
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("aws", accessKey)
	suite.Start(t, "provider-aws", manifests.Permissions, newOperator)
	spec := v1alpha1.AWSSpec{Region: "us-east-1", Endpoint: srv.URL(), Auth: byKey()}
	shared := v1alpha1.AWSSpec{Region: "us-east-1", Endpoint: srv.URL(), Auth: byKey()}
	shared.Auth.SecretRef.AccessKeyIDSecretRef.Namespace, shared.Auth.SecretRef.SecretAccessKeySecretRef.Namespace = ns, ns
	arn := func(name, id string) []string { return []string{name, id, id[:len(id)-len("-abcdef")]} }
	places := map[string]map[string]operatortest.Spellings{
		"AWSSecretsManager": {
			"whole":    {Keys: arn, Properties: []string{""}},
			"property": {Keys: arn, Properties: []string{`tls\.crt`, "tls.crt", `t\ls\.crt`}},
			"nested":   {Keys: arn, Properties: []string{"a.0", `a.\0`, `\a.0`}},
		},
		"AWSParameterStore": {"parameter": {Properties: []string{"a.0", `a.\0`, `\a.0`}}},
	}
	for kind, at := range places {
		t.Run(kind, func(t *testing.T) {
			one, two := stores[kind](ns, spec), clusterStores["Cluster"+kind](shared, common.ClusterStoreSpec{})
			one.SetName("prod")
			two.SetName("respelled")
			suite.Respells(t, ns, []provider.Object{one, two}, at)
		})
	}
}
