package main

import (
	"slices"
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
	"github.com/direct-secrets/direct-secrets/provider-aws/manifests"
)

// TestCalls counts the reads, and the sessions of a role, that objects cause.
func TestCalls(t *testing.T) {
	const ns, role = "calls", "arn:aws:iam::000000000000:role/calls"
	srv := startEmulator(t, emulator.WithRoles(emulator.Role{ARN: role, WebIdentities: []emulator.WebIdentity{
		{Subject: "system:serviceaccount:" + ns + ":default", Audience: "sts.amazonaws.com"},
	}}))
	keys := []string{"/a", "/b", "/c"}
	for _, key := range keys {
		srv.Put(key, []byte(operatortest.TenProperties))
		srv.PutParameter(key, operatortest.TenProperties)
	}
	suite.For(t).Namespace(ns, nil)
	suite.Start(t, "provider-aws", manifests.Permissions, newOperator)

	spec := v1alpha1.AWSSpec{Region: "us-east-1", Endpoint: srv.URL(), Role: role, Auth: byToken()}
	all := map[string]provider.Object{}
	for kind, make := range stores {
		all[kind] = make(ns, spec)
	}
	spec.Auth = byToken()
	spec.Auth.ServiceAccountRef.Namespace = ns
	for kind, make := range clusterStores {
		all[kind] = make(spec, common.ClusterStoreSpec{})
	}
	for kind, s := range all {
		t.Run(kind, func(t *testing.T) {
			srv.Reset()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the calls: %+v", srv.Calls())
				}
			})
			s.SetName("calls")
			suite.Calls(t, ns, s, keys,
				func(key string) (n int) {
					for _, c := range srv.Calls() {
						if slices.Contains(c.SecretIDs, key) {
							n++
						}
					}
					return n
				},
				func() int { return srv.Count("AssumeRoleWithWebIdentity") })
		})
	}
}
