package main

import (
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-gcp/manifests"
)

// TestEscapes tries to read secrets of namespace bank from namespace market, with a service account that can
// read the whole project.
func TestEscapes(t *testing.T) {
	const ns, project = "market", "projects/" + emulator.DefaultProject
	srv := startEmulator(t)
	for _, id := range []string{ns + "-db", "bank-db", "common"} {
		srv.Put(id, []byte(`{"password":"x"}`))
	}
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("gcp", map[string]string{"key.json": string(srv.Key(reader))})
	suite.Start(t, "provider-gcp", manifests.Permissions, newOperator)
	callsOf := func(srv *emulator.Server) func() []string {
		return func() []string {
			all := []string{}
			for _, c := range srv.Calls() {
				all = append(all, c.Method+" "+c.Name)
			}
			return all
		}
	}

	spec := v1alpha1.GCPSpec{ProjectID: emulator.DefaultProject, Endpoint: srv.URL(), Auth: byKey(ns)}
	t.Run("ClusterGCPSecretManager", func(t *testing.T) {
		s := newClusterStore(spec, common.ClusterStoreSpec{Conditions: []common.StoreCondition{{AllowedKeys: []string{"${namespace}-*", "common"}}}})
		s.Name = "escapes"
		suite.Escapes(t, ns, s, ns+"-db", map[string]operatortest.Escape{
			"Foreign":      operatortest.Key("The id of the other namespace's secret is denied.", "bank-db"),
			"FullName":     operatortest.Key("The full name of the other namespace's secret is denied.", project+"/secrets/bank-db"),
			"OwnFullName":  operatortest.Key("The full name of an allowed secret is denied, because only its id is allowed.", project+"/secrets/common"),
			"OtherProject": operatortest.Key("The full name of a secret in another project is denied.", "projects/bank/secrets/market-db"),
			"FullNameCase": operatortest.Key("A full name in another case is denied.", "Projects/"+emulator.DefaultProject+"/secrets/bank-db"),
			"AbsoluteName": operatortest.Key("A full name in the form of a URL is denied.", "//secretmanager.googleapis.com/"+project+"/secrets/bank-db"),
			"Secrets":      operatortest.Key("A part of the full name is denied.", "secrets/bank-db"),
			"ForeignLast":  operatortest.Key("The other namespace's id with an appended version is denied.", "bank-db/versions/1"),
			"CommonLast":   operatortest.Key("An allowed id with an appended version is denied.", "common/versions/1"),
			"OwnLast":      {Why: "An id that matches a pattern, with an appended version, is rejected as invalid.", Ref: common.RemoteRef{Key: "market-db/versions/1"}, Invalid: true},
			"Below":        {Why: "A path that matches a pattern is rejected as invalid.", Ref: common.RemoteRef{Key: "market-/secrets/bank-db"}, Invalid: true},
			"Version":      {Why: "The version field does not change the denial.", Ref: common.RemoteRef{Key: "bank-db", Version: "1"}},
			"VersionUp":    {Why: "A version that contains a path is rejected as invalid.", Ref: common.RemoteRef{Key: "common", Version: "1/../../../bank-db/versions/1"}, Invalid: true},
			"Hyphen":       {Why: "A character that looks like a hyphen is rejected as invalid.", Ref: common.RemoteRef{Key: "market-db‐x"}, Invalid: true},
			"Everything":   operatortest.Find("A find without a path is denied.", ""),
		}, callsOf(srv))
	})
	t.Run("GCPSecretManager", func(t *testing.T) { // The credentials that the store refers to exist.
		other := startEmulator(t) // The other emulator records only the calls of this test.
		calls := callsOf(other)
		spec := spec
		spec.Endpoint = other.URL()
		suite.BadStores(t, ns, map[string]operatortest.BadStore{
			"Namespace": {Why: "A namespaced store reads only Secrets in its own namespace.", Store: newStore(ns, "", spec), Want: common.ReasonStoreInvalidSpec, Message: "spec.auth.secretRef.secretAccessKeySecretRef: Secret gcp must not name a namespace"},
		}, calls)
		if all := calls(); len(all) > 0 {
			t.Errorf("a store that names a namespace made calls: %v", all)
		}
	})
}
