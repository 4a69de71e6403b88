package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/generator-keys/manifests"
)

// byOperator is the service in tables of results, because the module calls none.
const byOperator = "the operator itself"

// pair is an object of a Kind and one of its cluster Kind.
type pair struct {
	own    provider.GeneratorObject
	shared provider.ClusterGeneratorObject
	// secret and plain are the keys of the values.
	secret, plain []string
}

// pairs returns a valid pair of each Kind.
func pairs(namespace string) map[string]pair {
	key, clusterKey := sshKeys(namespace, "key", v1alpha1.SSHKeySettings{Comment: "me@shop"})
	id, clusterID := uuids(namespace, "id", common.GeneratorSpec{})
	login, clusterLogin := basicAuths(namespace, "login", v1alpha1.BasicAuthSettings{Username: "shop-admin"})
	tls, clusterTLS := certificates(namespace, "tls", v1alpha1.TLSCertificateSettings{DNSNames: []string{"shop.example.com"}})
	return map[string]pair{
		"BasicAuth":      {own: login, shared: clusterLogin, secret: []string{"password", "auth"}, plain: []string{"username"}},
		"TLSCertificate": {own: tls, shared: clusterTLS, secret: []string{"tls.crt", "tls.key", "ca.crt"}},
		"SSHKey":         {own: key, shared: clusterKey, secret: []string{"privateKey", "publicKey"}},
		"UUID":           {own: id, shared: clusterID, secret: []string{"uuid"}},
	}
}

// TestGenerates generates values of each Kind for objects, from the first value to the deletion.
func TestGenerates(t *testing.T) {
	const ns = "generates"
	suite.For(t).Namespace(ns, nil)
	suite.Start(t, "generator-keys", manifests.Permissions, newOperator)
	for kind, p := range pairs(ns) {
		t.Run(kind, func(t *testing.T) {
			suite.Generates(t, operatortest.Generation{Generator: p.own, Namespace: ns, Service: byOperator, Secrets: p.secret, Plain: p.plain})
			suite.Generates(t, operatortest.Generation{Generator: p.shared, Namespace: ns, Service: byOperator, Secrets: p.secret, Plain: p.plain})
		})
	}
	t.Run("Excluded", func(t *testing.T) {
		_, g := uuids(ns, "elsewhere", common.GeneratorSpec{})
		g.Spec.Conditions = []common.NamespaceCondition{{Namespaces: []string{"elsewhere"}}}
		suite.Excludes(t, ns, g)
	})
}

// TestKeepPrevious keeps the previous value of each key next to the present one.
func TestKeepPrevious(t *testing.T) {
	const ns = "keep-previous"
	suite.For(t).Namespace(ns, nil)
	suite.Start(t, "generator-keys", manifests.Permissions, newOperator)
	for kind, p := range pairs(ns) {
		t.Run(kind, func(t *testing.T) {
			p.own.GeneratorSpec().KeepPrevious = true
			suite.For(t).Create(p.own)
			es := operatortest.Generated(ns, p.own.GetName(), kind, p.own.GetName())
			suite.For(t).Create(es)
			was := suite.For(t).Synced(es)
			suite.For(t).Refresh(es, "1")
			is := suite.For(t).Synced(es)
			want := map[string]string{}
			for _, key := range slices.Concat(p.secret, p.plain) {
				want[key], want[key+"-previous"] = is[key], was[key]
			}
			if diff := cmp.Diff(want, is); diff != "" {
				t.Errorf("the Secret after a refresh: -want, +got:\n%s", diff)
			}
			for _, key := range p.secret {
				if is[key] == was[key] {
					t.Errorf("%s is not replaced", key)
				}
			}
			suite.For(t).End(es)
		})
	}
}

// TestRotationInterval replaces a value again and again, without a request.
func TestRotationInterval(t *testing.T) {
	const ns = "rotation-interval"
	suite.For(t).Namespace(ns, nil)
	suite.Start(t, "generator-keys", manifests.Permissions, newOperator)
	g, _ := uuids(ns, "id", common.GeneratorSpec{RotationInterval: "2s"})
	suite.For(t).Create(g)
	es := operatortest.Generated(ns, "id", "UUID", "id")
	suite.For(t).Create(es)
	seen := map[string]bool{suite.For(t).Synced(es)["uuid"]: true}
	controlplane.Eventually(t, func() string {
		seen[suite.For(t).In(ns).Data("id")["uuid"]] = true
		if len(seen) < 3 {
			return "three values: " + cmp.Diff(3, len(slices.Collect(maps.Keys(seen))))
		}
		return ""
	})
	suite.For(t).End(es)
}
