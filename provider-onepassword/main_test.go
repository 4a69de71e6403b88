package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/emulator"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/manifests"
)

var suite operatortest.Suite

func TestMain(m *testing.M) { suite.Main(m, v1alpha1.AddToScheme, manifests.CRDs) }

func TestCRDs(t *testing.T) { operatortest.CheckCRDs(t, manifests.CRDs) }

func TestExamples(t *testing.T) {
	for _, name := range []string{"onepasswordconnect.yaml", "push.yaml"} {
		suite.Examples(t, operatortest.Example(t, manifests.Examples, name))
	}
}

type spec = v1alpha1.OnePasswordConnectSpec

// specFor returns the spec of a store whose token is in a namespace; empty for that of the store.
func specFor(url, namespace string, vaults ...string) spec {
	s := spec{ConnectHost: url, Vaults: vaults}
	s.Auth.SecretRef.ConnectTokenSecretRef = common.SecretKeySelector{Namespace: namespace, Name: "onepassword", Key: "token"}
	return s
}

func newStore(namespace, name string, s spec) *v1alpha1.OnePasswordConnect {
	return &v1alpha1.OnePasswordConnect{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: s}
}

func newClusterStore(name string, s spec, c common.ClusterStoreSpec) *v1alpha1.ClusterOnePasswordConnect {
	return &v1alpha1.ClusterOnePasswordConnect{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterOnePasswordConnectSpec{OnePasswordConnectSpec: s, ClusterStoreSpec: c}}
}

func start(t testing.TB, opts ...emulator.Option) *emulator.Server {
	t.Helper()
	srv, err := emulator.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// callsOf returns the calls of a server so far.
func callsOf(srv *emulator.Server) func() []string {
	return func() []string {
		all := []string{}
		for _, c := range srv.Calls() {
			if c.Method != "ListVaults" { // That is the check of a store.
				all = append(all, c.Method+" "+c.Name)
			}
		}
		return all
	}
}

func TestCRD(t *testing.T) {
	const host = "https://connect.example"
	many := slices.Repeat([]string{"a"}, 33)
	for i := range many {
		many[i] += strings.Repeat("a", i)
	}
	cases := map[string]struct {
		reason string
		spec   spec
		want   string // part of the error
	}{
		"Minimal":   {"An address, a vault and a token are enough.", specFor(host, "", "shop"), ""},
		"Scheme":    {"An address without a scheme is rejected.", specFor("connect.example", "", "shop"), "connectHost must be a URL"},
		"NoHost":    {"A missing address is rejected.", specFor("", "", "shop"), "spec.connectHost"},
		"NoVaults":  {"A store without vaults is rejected.", specFor(host, "", []string{}...), "spec.vaults"},
		"Many":      {"Too many vaults are rejected, because each is searched.", specFor(host, "", many...), "spec.vaults"},
		"Twice":     {"A vault is named once.", specFor(host, "", "a", "a"), "spec.vaults"},
		"Empty":     {"An empty name is rejected.", specFor(host, "", "a", ""), "spec.vaults[1]"},
		"LongName":  {"A name that is too long is rejected.", specFor(host, "", strings.Repeat("a", 257)), "spec.vaults[0]"},
		"LongVault": {"A host that is too long is rejected.", specFor(host+"/"+strings.Repeat("a", 2048), "", "a"), "spec.connectHost"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, o := range []client.Object{newStore("default", strings.ToLower(name), tc.spec), newClusterStore(strings.ToLower(name), tc.spec, common.ClusterStoreSpec{})} {
				suite.Accepts(t, tc.reason, o, tc.want)
			}
		})
	}
}

// TestRotatedToken replaces the token of a store.
func TestRotatedToken(t *testing.T) {
	const ns = "rotated"
	srv := start(t)
	srv.AddToken("second")
	srv.Put(emulator.DefaultVault, "db", map[string]string{"password": "a"}, nil)
	c := suite.For(t)
	c.Namespace(ns, nil)
	here := c.In(ns)
	source := here.Source("onepassword", map[string]string{"token": emulator.DefaultToken})
	suite.Start(t, "provider-onepassword", manifests.Permissions, newOperator)
	here.Create(newStore(ns, "rotated", specFor(srv.URL(), "", emulator.DefaultVault)))
	es := operatortest.ExternalSecret(ns, "db", "OnePasswordConnect", "rotated", "db", "password")
	here.Create(es)
	here.WantSecret("db", "password", "a")
	srv.RevokeToken(emulator.DefaultToken)
	srv.Put(emulator.DefaultVault, "db", map[string]string{"password": "b"}, nil)
	here.Update(source, func() { source.Data = map[string][]byte{"token": []byte("second")} })
	here.Refresh(es, "2")
	here.WantSecret("db", "password", "b")
}

// TestEscapes tries to read items of namespace bank from namespace market, with a token for all vaults.
func TestEscapes(t *testing.T) {
	const ns = "market"
	srv := start(t, emulator.WithVault("other"))
	var foreign string
	for _, title := range []string{"common", ns + "-db", "bank-db"} {
		foreign = srv.Add(emulator.DefaultVault, emulator.Item{Title: title, Fields: []emulator.Field{{ID: "password", Label: "password", Value: "x"}}})
	}
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("onepassword", map[string]string{"token": emulator.DefaultToken})
	suite.Start(t, "provider-onepassword", manifests.Permissions, newOperator)
	s := newClusterStore("escapes", specFor(srv.URL(), ns, emulator.DefaultVault), common.ClusterStoreSpec{Conditions: []common.StoreCondition{{AllowedKeys: []string{"${namespace}-*", "common"}}}})
	suite.Escapes(t, ns, s, ns+"-db", map[string]operatortest.Escape{
		"Foreign":    operatortest.Key("The title of the other namespace's item is denied.", "bank-db"),
		"ID":         operatortest.Key("The ID of that item is denied, because only titles are allowed.", foreign),
		"Path":       operatortest.Key("A path to an item is denied.", "vaults/"+srv.VaultID(emulator.DefaultVault)+"/items/"+foreign),
		"Reference":  operatortest.Key("A secret reference of 1Password is denied.", "op://shop/bank-db/password"),
		"Quote":      operatortest.Key("A title with the end of a filter is denied.", `common" or title eq "bank-db`),
		"Everything": operatortest.Find("A find without a path is denied.", ""),
	}, callsOf(srv))
}

// TestBadStores creates stores that use the token of another namespace, or send one to another server.
func TestBadStores(t *testing.T) {
	const ns, other = "shop-bad", "bank-bad"
	srv := start(t)
	c := suite.For(t)
	c.Namespace(ns, nil)
	c.Namespace(other, nil)
	c.In(ns).Source("onepassword", map[string]string{"token": "wrong"})
	c.In(other).Source("onepassword", map[string]string{"token": emulator.DefaultToken})
	suite.Start(t, "provider-onepassword", manifests.Permissions, newOperator)
	const invalid = common.ReasonStoreInvalidSpec
	suite.BadStores(t, ns, map[string]operatortest.BadStore{
		"Namespace": {Why: "A namespaced store reads only Secrets in its own namespace.", Store: newStore(ns, "", specFor(srv.URL(), other, "shop")), Want: invalid, Message: "spec.auth.secretRef.connectTokenSecretRef: Secret onepassword must not name a namespace"},
		"HTTP":      {Why: "A token is not sent without TLS.", Store: newStore(ns, "", specFor("http://connect.example", "", "shop")), Want: invalid, Message: "spec.connectHost: plain http"},
		"User":      {Why: "An address cannot hide another host.", Store: newStore(ns, "", specFor("https://connect.example@127.0.0.1:1", "", "shop")), Want: invalid, Message: "spec.connectHost: must have no user"},
		"Token":     {Why: "The server refuses the token.", Store: newStore(ns, "", specFor(srv.URL(), "", "shop")), Want: common.ReasonStoreAuthFailed, Message: "spec.auth.secretRef.connectTokenSecretRef: the Connect server does not accept the token"},
	}, callsOf(srv))
	if diff := cmp.Diff([]string{}, callsOf(srv)()); diff != "" {
		t.Errorf("calls of stores that are not ready: -want, +got:\n%s", diff)
	}
	for _, call := range srv.Calls() {
		if call.Accepted {
			t.Errorf("the token of another namespace was sent: %+v", call)
		}
	}
}

// TestPush pushes two keys of a Secret to an item, reads it again, and deletes the PushSecret.
func TestPush(t *testing.T) {
	const ns = "push"
	srv := start(t)
	c := suite.For(t)
	c.Namespace(ns, nil)
	here := c.In(ns)
	here.Source("onepassword", map[string]string{"token": emulator.DefaultToken})
	here.Source("db", map[string]string{"user": "ada", "password": "s3cret"})
	suite.Start(t, "provider-onepassword", manifests.Permissions, newOperator)
	here.Create(newStore(ns, "prod", specFor(srv.URL(), "", emulator.DefaultVault)))

	ps := &common.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"}}
	ps.Spec.StoreRefs = []common.PushStoreRef{{Kind: "OnePasswordConnect", Name: "prod"}}
	ps.Spec.Selector.Secret = &common.PushSecretSelector{Name: "db"}
	ps.Spec.DeletionPolicy = common.PushDeletionDelete
	for _, key := range []string{"user", "password"} {
		ps.Spec.Data = append(ps.Spec.Data, common.PushData{Match: common.PushMatch{SecretKey: key, RemoteRef: common.PushRemoteRef{RemoteKey: "Database", Property: key}}})
	}
	here.Create(ps)
	items := func(want ...string) {
		t.Helper()
		here.Eventually(func() string {
			got := []string{}
			for _, i := range srv.Items(emulator.DefaultVault) {
				for _, f := range i.Fields {
					got = append(got, i.Title+" "+f.Label+"="+f.Value)
				}
			}
			return cmp.Diff(want, got, cmpopts.EquateEmpty())
		})
	}
	items("Database password=s3cret", "Database user=ada", "Database notesPlain=")
	if tags := srv.Items(emulator.DefaultVault)[0].Tags; len(tags) != 1 || tags[0] != "direct-secrets.io_created-by="+string(ps.UID) {
		t.Errorf("the item has the tags %q", tags)
	}
	here.Create(operatortest.ExternalSecret(ns, "copy", "OnePasswordConnect", "prod", "Database", "user"))
	here.WantSecret("copy", "user", "ada")

	here.Delete(ps)
	items()
}
