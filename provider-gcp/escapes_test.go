package main

import (
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-gcp/manifests"
)

// TestEscapes tries to get from namespace market at secrets of bank, as a service account that may read
// all of the project.
func TestEscapes(t *testing.T) {
	const ns, project = "market", "projects/" + emulator.DefaultProject
	srv := startEmulator(t)
	for _, id := range []string{ns + "-db", "bank-db", "common"} {
		srv.Put(id, []byte(`{"password":"x"}`))
	}
	suite.Namespace(t, ns, nil)
	suite.Secret(t, ns, "gcp", map[string]string{"key.json": string(srv.Key(reader))})
	suite.Start(t, "provider-gcp", manifests.Rights, newOperator)
	callsOf := func(srv *emulator.Server) func() []string {
		return func() []string {
			all := []string{}
			for _, c := range srv.CallLog() {
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
			"Foreign":      operatortest.Key("The id itself.", "bank-db"),
			"FullName":     operatortest.Key("A full name names a secret anywhere.", project+"/secrets/bank-db"),
			"OwnFullName":  operatortest.Key("What is allowed by id is not by its full name.", project+"/secrets/common"),
			"OtherProject": operatortest.Key("Nor is that of another project.", "projects/bank/secrets/market-db"),
			"FullNameCase": operatortest.Key("However it is spelled.", "Projects/"+emulator.DefaultProject+"/secrets/bank-db"),
			"AbsoluteName": operatortest.Key("Also as a URL has it.", "//secretmanager.googleapis.com/"+project+"/secrets/bank-db"),
			"Secrets":      operatortest.Key("Nor a part of it.", "secrets/bank-db"),
			"Up":           operatortest.Key("No way up.", "market-db/../bank-db"),
			"UpFirst":      operatortest.Key("Nor at the beginning.", "../bank/secrets/market-db"),
			"Encoded":      operatortest.Key("Nor an encoded one.", "market-db%2f..%2fbank-db"),
			"ForeignLast":  operatortest.Key("A version behind the id makes no difference.", "bank-db/versions/1"),
			"CommonLast":   operatortest.Key("It makes another key of the one that is allowed.", "common/versions/1"),
			"OwnLast":      {Why: "Below a pattern it is no id.", Ref: common.RemoteRef{Key: "market-db/versions/1"}, Invalid: true},
			"Below":        {Why: "Nor is anything else there.", Ref: common.RemoteRef{Key: "market-/secrets/bank-db"}, Invalid: true},
			"Version":      {Why: "A version beside the key makes no difference.", Ref: common.RemoteRef{Key: "bank-db", Version: "1"}},
			"VersionUp":    {Why: "What is no version is none.", Ref: common.RemoteRef{Key: "common", Version: "1/../../../bank-db/versions/1"}, Invalid: true},
			"Case":         operatortest.Key("Letters are as they are.", "Market-db"),
			"FullWidth":    operatortest.Key("A letter that looks alike is another one.", "ｍarket-db"),
			"LookAlike":    operatortest.Key("In any script.", "mаrket-db"),
			"Hyphen":       {Why: "A hyphen that looks alike is no part of an id.", Ref: common.RemoteRef{Key: "market-db‐x"}, Invalid: true},
			"Everything":   operatortest.Find("A find without a path looks at all.", ""),
			"Beginning":    operatortest.Find("The name of the namespace begins that of others.", ns),
			"FindTags":     {Why: "Others set the labels.", Find: &common.Find{Tags: map[string]string{"team": ns}}},
		}, callsOf(srv))
	})
	t.Run("GCPSecretManager", func(t *testing.T) { // The credentials that it names exist.
		other := startEmulator(t) // Nobody else reads it.
		calls := callsOf(other)
		spec := spec
		spec.Endpoint = other.URL()
		suite.BadStores(t, ns, map[string]operatortest.BadStore{
			"Namespace": {Why: "A namespaced store reads beside itself.", Store: newStore(ns, "", spec), Want: common.ReasonStoreInvalidSpec, Says: "spec.auth.secretRef.secretAccessKeySecretRef: Secret gcp must not name a namespace"},
		}, calls)
		if all := calls(); len(all) > 0 {
			t.Errorf("a store that names a namespace made calls: %v", all)
		}
	})
}
