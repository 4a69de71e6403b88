package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/manifests"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

type dynamicSpec = v1alpha1.VaultDynamicSecretSpec

func newDynamic(namespace, name string, s dynamicSpec) *v1alpha1.VaultDynamicSecret {
	return &v1alpha1.VaultDynamicSecret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: s}
}

func newClusterDynamic(name string, s dynamicSpec, conditions ...common.NamespaceCondition) *v1alpha1.ClusterVaultDynamicSecret {
	g := &v1alpha1.ClusterVaultDynamicSecret{Spec: v1alpha1.ClusterVaultDynamicSecretSpec{VaultDynamicSecretSpec: s}}
	g.Name, g.Spec.Conditions = name, conditions
	return g
}

// These policies are needed in addition to Vault's default policy, which allows renewing leases.
const (
	toMake   = `path "accounts/creds/*" { capabilities = ["read"] }` + "\n" + `path "auth/token/create/*" { capabilities = ["update"] }` + "\n"
	toRevoke = `path "sys/leases/revoke" { capabilities = ["update"] }` + "\n" + `path "auth/token/revoke-accessor" { capabilities = ["update"] }` + "\n"
	toKeep   = `path "auth/token/renew-accessor" { capabilities = ["update"] }` + "\n"
)

// accounts starts a server with a secrets engine that creates accounts. Those of the role app live for one hour
// unless they are renewed, those of the role short for seconds.
func accounts(t *testing.T) *vaulttest.Server {
	t.Helper()
	srv := vaulttest.Start(t)
	srv.MountAccounts("accounts")
	srv.AccountRole("accounts", "app", vaulttest.M{"ttl": 3600, "max_ttl": 86400})
	srv.Policy("maker", toMake+toRevoke)
	srv.Enable("approle")
	return srv
}

// appRole creates an AppRole with a policy, and a Secret with its credentials in a namespace. It returns an
// auth that logs in with them.
func appRole(t *testing.T, srv *vaulttest.Server, ns, name, policy string) *v1alpha1.VaultAuth {
	t.Helper()
	srv.Do(http.MethodPost, "auth/approle/role/"+name, vaulttest.M{"token_policies": policy, "token_ttl": "1h"})
	secret := "approle-" + name
	suite.For(t).In(ns).Source(secret, map[string]string{
		"role":   srv.Do(http.MethodGet, "auth/approle/role/"+name+"/role-id", nil)["role_id"].(string),
		"secret": srv.Do(http.MethodPost, "auth/approle/role/"+name+"/secret-id", nil)["secret_id"].(string),
	})
	return &v1alpha1.VaultAuth{AppRole: &v1alpha1.AppRoleAuth{RoleRef: new(ref(secret, "role")), SecretRef: ref(secret, "secret")}}
}

func asks(srv *vaulttest.Server, path string, a *v1alpha1.VaultAuth) dynamicSpec {
	return dynamicSpec{VaultServer: v1alpha1.VaultServer{Server: srv.URL, Auth: a}, Path: path}
}

// wantAccounts waits until exactly these accounts are valid.
func wantAccounts(t *testing.T, srv *vaulttest.Server, want ...string) {
	t.Helper()
	slices.Sort(want)
	controlplane.Eventually(t, func() string {
		got := srv.Accounts("accounts")
		slices.Sort(got)
		return cmp.Diff(strings.Join(want, " "), strings.Join(got, " "))
	})
}

// TestGenerates generates credentials for objects, from the first value to the deletion, when they are revoked.
func TestGenerates(t *testing.T) {
	const ns = "generates"
	srv := accounts(t)
	enableKubernetes(t, srv)
	srv.Do(http.MethodPost, "auth/kubernetes/role/shop", vaulttest.M{
		"bound_service_account_names": "default", "bound_service_account_namespaces": ns, "token_policies": "maker", "token_ttl": "1h",
	})
	srv.Do(http.MethodPost, "auth/token/roles/app", vaulttest.M{})
	suite.For(t).Namespace(ns, nil)
	byRole := appRole(t, srv, ns, "shop", "maker")
	suite.For(t).In(ns).Source("vault", map[string]string{"token": srv.Token(vaulttest.M{"policies": []string{"maker"}, "ttl": "2h"})})
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)

	byToken := &v1alpha1.VaultAuth{TokenSecretRef: new(ref("vault", "token"))}
	byAccount := &v1alpha1.VaultAuth{Kubernetes: &v1alpha1.KubernetesAuth{Role: "shop", ServiceAccountRef: &common.ServiceAccountSelector{Name: "default"}}}
	clusterRole, clusterToken, clusterAccount := byRole.DeepCopy(), byToken.DeepCopy(), byAccount.DeepCopy()
	clusterRole.AppRole.RoleRef.Namespace, clusterRole.AppRole.SecretRef.Namespace = ns, ns
	clusterToken.TokenSecretRef.Namespace = ns
	clusterAccount.Kubernetes.ServiceAccountRef.Namespace = ns
	const app = "accounts/creds/app"
	tokens := func(a *v1alpha1.VaultAuth) dynamicSpec {
		s := asks(srv, "auth/token/create/app", a)
		s.Method, s.ResultType = v1alpha1.MethodPost, v1alpha1.ResultAuth
		s.Parameters = &runtime.RawExtension{Raw: []byte(`{"policies":["default"],"ttl":"30m"}`)}
		return s
	}
	account := operatortest.Generation{Secrets: []string{"username", "password"}, Plain: []string{"limits", "groups", "note"}}
	token := operatortest.Generation{Secrets: []string{"client_token"}, Plain: []string{
		"accessor", "entity_id", "lease_duration", "metadata", "mfa_requirement", "num_uses", "orphan", "policies", "renewable", "token_policies", "token_type",
	}}
	cases := map[string]struct {
		generator provider.GeneratorObject
		makes     operatortest.Generation
	}{
		"AppRole":           {newDynamic(ns, "role", asks(srv, app, byRole)), account},
		"Token":             {newDynamic(ns, "token", asks(srv, app, byToken)), account},
		"Kubernetes":        {newDynamic(ns, "kubernetes", asks(srv, app, byAccount)), account},
		"Auth":              {newDynamic(ns, "auth", tokens(byRole)), token},
		"ClusterAppRole":    {newClusterDynamic("role", asks(srv, app, clusterRole)), account},
		"ClusterToken":      {newClusterDynamic("token", asks(srv, app, clusterToken)), account},
		"ClusterKubernetes": {newClusterDynamic("kubernetes", asks(srv, app, clusterAccount)), account},
		"ClusterAuth":       {newClusterDynamic("auth", tokens(clusterAccount)), token},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.makes.Generator, tc.makes.Namespace, tc.makes.Service = tc.generator, ns, srv.Version()
			suite.Generates(t, tc.makes)
			es := operatortest.Generated(ns, "another", suite.For(t).Kind(tc.generator), tc.generator.GetName())
			suite.For(t).Create(es)
			data := suite.For(t).Synced(es)
			accountExists := func() bool {
				if accessor := data["accessor"]; accessor != "" {
					return srv.IsTokenValid(accessor)
				}
				return slices.Contains(srv.Accounts("accounts"), data["username"])
			}
			if !accountExists() {
				t.Error("the account in the Secret is not valid")
			}
			suite.For(t).End(es)
			if accountExists() {
				t.Error("the object is deleted, but its account is still valid")
			}
			wantAccounts(t, srv)
		})
	}
}

// TestRevokedLast replaces a credential twice while the Secret cannot be written. The account in the Secret
// stays valid until the Secret has another one, and is then revoked.
func TestRevokedLast(t *testing.T) {
	t.Parallel()
	const ns = "revoked-last"
	srv := accounts(t)
	suite.For(t).Namespace(ns, nil)
	s := asks(srv, "accounts/creds/app", appRole(t, srv, ns, "shop", "maker"))
	s.RevocationDelay = "0s"
	suite.For(t).Create(newDynamic(ns, "db", s))
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "other"}}
	suite.For(t).Create(other)
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)
	es := operatortest.Generated(ns, "db", "VaultDynamicSecret", "db")
	suite.For(t).Create(es)
	first := suite.For(t).Synced(es)["username"]
	wantAccounts(t, srv, first)

	owned := func(refs []metav1.OwnerReference) {
		t.Helper()
		secret := &corev1.Secret{}
		if err := suite.API.Get(t.Context(), client.ObjectKeyFromObject(es), secret); err != nil {
			t.Fatal(err)
		}
		before := secret.DeepCopy()
		secret.OwnerReferences = refs
		if err := suite.API.Patch(t.Context(), secret, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	owned([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: other.Name, UID: other.UID, Controller: new(true)}})
	controlplane.Eventually(t, func() string { return cmp.Diff("False Conflict", suite.For(t).Ready(es)) })
	for made := 2; made <= 3; made++ {
		suite.For(t).Refresh(es, fmt.Sprint(made))
		controlplane.Eventually(t, func() string {
			if got := srv.Accounts("accounts"); len(got) != made || !slices.Contains(got, first) {
				return fmt.Sprintf("%d accounts live, %q among them: %t; want %d", len(got), first, slices.Contains(got, first), made)
			}
			// The new account is stored by now, so the controller has handled the one that it replaced.
			if parts := suite.For(t).Parts(es); len(parts) != 1 || !strings.Contains(parts[0].Annotations[common.PartAnnotation], fmt.Sprintf(`"request":"%d"`, made)) {
				return "the part does not record the refresh"
			}
			return ""
		})
		if got := suite.For(t).In(ns).Data("db")["username"]; got != first {
			t.Fatalf("the Secret of the other owner holds %q, want %q", got, first)
		}
	}

	owned(nil)
	controlplane.Eventually(t, func() string {
		last := suite.For(t).In(ns).Data("db")["username"]
		if got := srv.Accounts("accounts"); last == first && !slices.Contains(got, first) && suite.For(t).In(ns).Data("db")["username"] == first {
			t.Fatal("the account in the Secret is not valid")
		} else if last == first {
			return "the Secret holds the first account"
		}
		return ""
	})
	wantAccounts(t, srv, suite.For(t).Synced(es)["username"])
	suite.For(t).End(es)
	wantAccounts(t, srv)
}

// TestRevokeDenied uses a policy that does not allow revoking. The operator reports it, nothing is lost, and
// credentials that cannot be revoked keep the part until their lease expires.
func TestRevokeDenied(t *testing.T) {
	t.Parallel()
	const ns = "revoke-denied"
	srv := accounts(t)
	srv.AccountRole("accounts", "short", vaulttest.M{"ttl": 15, "max_ttl": 86400})
	srv.Policy("maker", toMake)
	suite.For(t).Namespace(ns, nil)
	s := asks(srv, "accounts/creds/short", appRole(t, srv, ns, "shop", "maker"))
	s.RevocationDelay = "0s"
	suite.For(t).Create(newDynamic(ns, "db", s))
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)
	es := operatortest.Generated(ns, "db", "VaultDynamicSecret", "db")
	suite.For(t).Create(es)
	first := suite.For(t).Synced(es)["username"]
	suite.For(t).Refresh(es, "1")
	if second := suite.For(t).Synced(es)["username"]; second == first {
		t.Error("a refresh has replaced nothing")
	}
	const wantMessage = `VaultDynamicSecret "db": cannot revoke a replaced credential, retrying: Denied: revoking: access denied; allow update on "sys/leases/revoke" in a policy`
	controlplane.Eventually(t, func() string {
		events := &corev1.EventList{}
		if err := suite.API.List(t.Context(), events, client.InNamespace(ns)); err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, e := range events.Items {
			if e.Reason == "LeftBehind" {
				got = append(got, e.Type+" "+e.Message)
			}
		}
		if !slices.Contains(got, "Warning "+wantMessage) {
			return fmt.Sprintf("events %q, want %q", got, wantMessage)
		}
		return ""
	})
	suite.For(t).End(es)
	wantAccounts(t, srv)
}

// TestRefusedPaths uses paths that only Vault can reject. The validation creates nothing, so the ExternalSecret
// reports the error.
func TestRefusedPaths(t *testing.T) {
	t.Parallel()
	const ns = "refused-paths"
	srv := accounts(t)
	srv.Policy("maker", toMake+`path "other/*" { capabilities = ["read"] }`)
	suite.For(t).Namespace(ns, nil)
	auth := appRole(t, srv, ns, "shop", "maker")
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)
	cases := map[string]struct{ why, path, wantMessage string }{
		"Denied":  {"A missing capability is reported.", "secret/creds/app", `Denied: VaultDynamicSecret "denied": spec.path: access denied; allow read on "secret/creds/app" in a policy`},
		"Role":    {"A missing role is reported.", "accounts/creds/none", `Invalid: VaultDynamicSecret "role": spec.path: Vault rejects the request to "accounts/creds/none"`},
		"Nothing": {"A missing engine is reported.", "other/creds/app", `Invalid: VaultDynamicSecret "nothing": spec.path: "other/creds/app" does not exist at Vault`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := newDynamic(ns, strings.ToLower(name), asks(srv, tc.path, auth))
			suite.For(t).Create(g)
			es := operatortest.Generated(ns, g.Name, "VaultDynamicSecret", g.Name)
			suite.For(t).Create(es)
			controlplane.Eventually(t, func() string {
				if condition := suite.For(t).Condition(es); !strings.HasPrefix(condition, "False SecretSyncedError "+tc.wantMessage) {
					return fmt.Sprintf("%s\nReady is %q, want %q", tc.why, condition, tc.wantMessage)
				}
				return cmp.Diff("True Valid", suite.For(t).Ready(g))
			})
		})
	}
	wantAccounts(t, srv)
}

// TestBadGenerators checks that objects wait, and that their condition names the fix.
func TestBadGenerators(t *testing.T) {
	const (
		ns      = "bad-generators"
		invalid = common.ReasonStoreInvalidSpec
		failed  = common.ReasonStoreAuthFailed
		app     = "accounts/creds/app"
	)
	srv := accounts(t)
	suite.For(t).Namespace(ns, nil)
	good := appRole(t, srv, ns, "shop", "maker")
	suite.For(t).In(ns).Source("vault", map[string]string{"token": "hvs.c4n4ry"})
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)

	wrong := good.DeepCopy()
	wrong.AppRole.SecretRef = ref("vault", "token")
	elsewhere := ref("vault", "token")
	elsewhere.Namespace = "bank"
	by := func(sel common.SecretKeySelector) *v1alpha1.VaultAuth {
		return &v1alpha1.VaultAuth{TokenSecretRef: &sel}
	}
	asksAt := func(server string) dynamicSpec {
		s := asks(srv, app, good)
		s.Server = server
		return s
	}
	made := func() []string {
		return suite.Made(t, &v1alpha1.VaultDynamicSecret{}, &v1alpha1.ClusterVaultDynamicSecret{})
	}
	bad := map[string]operatortest.BadStore{}
	for name, tc := range map[string]struct {
		why               string
		spec              dynamicSpec
		want, wantMessage string
	}{
		"Path":        {"A path that starts with v1 is rejected.", asks(srv, "v1/"+app, good), invalid, "spec.path: must not begin with v1"},
		"NoSecret":    {"The Secret of the token does not exist.", asks(srv, app, by(ref("none", "token"))), invalid, "spec.auth.tokenSecretRef: Secret bad-generators/none does not exist"},
		"SecretID":    {"The secret id is wrong.", asks(srv, app, wrong), failed, "spec.auth.appRole"},
		"Elsewhere":   {"A namespaced generator reads only Secrets in its own namespace.", asks(srv, app, by(elsewhere)), invalid, "spec.auth.tokenSecretRef: Secret vault must not name a namespace"},
		"Unreachable": {"A server that does not run is reported.", asksAt("http://127.0.0.1:1"), common.ReasonStoreUnreachable, ""},
	} {
		bad[name] = operatortest.BadStore{Why: tc.why, Store: newDynamic(ns, "", tc.spec), Want: tc.want, Message: tc.wantMessage}
	}
	t.Run("VaultDynamicSecret", func(t *testing.T) { suite.BadStores(t, ns, bad, made) })

	// Vault locks an AppRole after wrong secret ids, so this test uses another one.
	shared := appRole(t, srv, ns, "other", "maker")
	shared.AppRole.RoleRef.Namespace, shared.AppRole.SecretRef.Namespace = ns, ns
	bad = map[string]operatortest.BadStore{
		"NoNamespace": {Why: "Which namespace?", Store: newClusterDynamic("", asks(srv, app, good)), Want: invalid, Message: "spec.auth.appRole"},
	}
	t.Run("ClusterVaultDynamicSecret", func(t *testing.T) { suite.BadStores(t, ns, bad, made) })
	t.Run("Ungated", func(t *testing.T) {
		suite.Ungated(t, ns, newDynamic(ns, "ungated", asks(srv, app, wrong)), `Denied: VaultDynamicSecret "ungated": spec.auth.appRole`)
	})
	t.Run("Excluded", func(t *testing.T) {
		suite.Excludes(t, ns, newClusterDynamic("elsewhere", asks(srv, app, shared), common.NamespaceCondition{Namespaces: []string{"elsewhere"}}))
	})
	wantAccounts(t, srv)
}

// TestLeases checks that an operator keeps credentials valid that last only seconds, also across a restart.
// Vault revokes a lease together with the token that created it. If the policy allows it, the operator keeps
// renewing that token; otherwise it replaces the credentials in time. A Secret never holds an account that is
// not valid.
func TestLeases(t *testing.T) {
	const ns = "leases"
	srv := accounts(t)
	suite.For(t).Namespace(ns, nil)
	names := []string{"kept", "replaced"}
	policies := map[string]string{"kept": toMake + toRevoke + toKeep, "replaced": toMake + toRevoke}
	for _, name := range names {
		srv.AccountRole("accounts", name, vaulttest.M{"ttl": 24, "max_ttl": 86400})
		srv.Policy(name, policies[name])
		s := asks(srv, "accounts/creds/"+name, appRole(t, srv, ns, name, name))
		s.RevocationDelay = "0s"
		suite.For(t).Create(newDynamic(ns, name, s))
	}
	// holds returns the account in a Secret, which must be valid.
	holds := func(t *testing.T, name string) string {
		t.Helper()
		user := suite.For(t).In(ns).Data(name)["username"]
		if user != "" && !slices.Contains(srv.Accounts("accounts"), user) && suite.For(t).In(ns).Data(name)["username"] == user {
			t.Fatalf("Secret %s holds an account that is not valid", name)
		}
		return user
	}
	// renewed returns the last renewal time of an account's lease, or "".
	renewed := func(name string) string {
		for _, id := range srv.Leases("accounts/creds/" + name) {
			if at, ok := srv.Lease(id)["last_renewal"].(string); ok {
				return at
			}
		}
		return ""
	}
	users, at := map[string]string{}, map[string]string{}

	ok := t.Run("Renewed", func(t *testing.T) {
		suite.StartAlone(t, "provider-vault", manifests.Permissions, newOperator)
		for _, name := range names {
			es := operatortest.Generated(ns, name, "VaultDynamicSecret", name)
			if err := suite.API.Create(t.Context(), es); err != nil { // The object stays when this operator stops.
				t.Fatal(err)
			}
			users[name] = suite.For(t).Synced(es)["username"]
		}
		controlplane.Eventually(t, func() string {
			for _, name := range names {
				if user := holds(t, name); user != users[name] {
					t.Fatalf("Secret %s holds another account, although the lease can be renewed", name)
				}
				if at[name] = renewed(name); at[name] == "" {
					return name + ": the lease has not been renewed"
				}
			}
			return ""
		})
	})
	if !ok {
		return
	}
	for _, name := range names {
		holds(t, name) // Stopping the operator must not affect it.
	}
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)
	t.Run("Restarted", func(t *testing.T) {
		controlplane.Eventually(t, func() string {
			if user := holds(t, "kept"); user != users["kept"] {
				t.Fatal("Secret kept holds another account, although the token that created it can be renewed")
			}
			if user := holds(t, "replaced"); user == users["replaced"] {
				return "replaced: the token that created it is not renewed, and there is no other account yet"
			}
			if renewed("kept") == at["kept"] {
				return "kept: the lease has not been renewed again"
			}
			return ""
		})
		controlplane.Eventually(t, func() string {
			return cmp.Diff([]int{1, 1}, []int{len(srv.Leases("accounts/creds/kept")), len(srv.Leases("accounts/creds/replaced"))})
		})
		for _, name := range names {
			holds(t, name)
			es := operatortest.Generated(ns, name, "", "")
			suite.For(t).Synced(es)
			suite.For(t).End(es)
		}
		wantAccounts(t, srv)
	})
}
