//go:build long

package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	passwordv1 "github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	vaultv1 "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// drillModules are the modules of the drill.
var drillModules = []string{stack.ProviderAWS, stack.ProviderVault, stack.GeneratorPassword}

// drillKeys are the remote secrets that the drill's PushSecrets create.
var drillKeys = []string{"drill/plain", "drill/object"}

// TestDrill copies a cluster with etcd's data, starts operators with --no-remote-changes on the copy, and deletes
// everything there. All objects of the copy must be deleted, and production must lose nothing.
func TestDrill(t *testing.T) {
	t.Parallel()
	const ns = "drill"
	production, err := stack.Start(t.Context(), stack.Options{Modules: drillModules})
	must(t, err)
	t.Cleanup(func() { must(t, production.Stop()) })
	vault := vaulttest.Start(t)
	vault.MountAccounts("accounts")
	vault.AccountRole("accounts", "app", vaulttest.M{"ttl": 3600, "max_ttl": 86400})
	startOn(t, production)
	fillDrill(t, production, vault, ns)
	before := stateOf(t, production, vault, ns)

	copied, err := stack.Start(t.Context(), stack.Options{
		Modules: drillModules, Bare: true, ControlPlane: []controlplane.Option{controlplane.WithDataOf(production.ControlPlane)},
	})
	must(t, err)
	t.Cleanup(func() { must(t, copied.Stop()) })
	startOn(t, copied, "--no-remote-changes")
	wantConditions(t, copied, ns, map[string]string{"plain": v1alpha1.ReasonNoRemoteChanges, "object": v1alpha1.ReasonNoRemoteChanges})
	deleteDrill(t, copied, ns)

	if diff := cmp.Diff(before, stateOf(t, production, vault, ns)); diff != "" {
		t.Errorf("production changed: -before, +after the drill:\n%s", diff)
	}
}

// startOn runs the modules of the drill on a stack until the test ends.
func startOn(t *testing.T, s *stack.Stack, flags ...string) {
	t.Helper()
	for _, m := range drillModules {
		p, err := s.StartModule(t.Context(), m, flags...)
		must(t, err)
		t.Cleanup(func() {
			must(t, p.Stop())
			if t.Failed() {
				t.Log(p.Log())
			}
		})
	}
}

// fillDrill creates pushes, a credential of Vault and a password in a namespace, and waits for them.
func fillDrill(t *testing.T, s *stack.Stack, vault *vaulttest.Server, ns string) {
	t.Helper()
	ctx := t.Context()
	must(t, s.CreateNamespace(ctx, ns))
	must(t, s.AWSStore(ctx, ns, "store"))
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	dynamic := &vaultv1.VaultDynamicSecret{ObjectMeta: named("dynamic")}
	dynamic.Spec.Server, dynamic.Spec.Path = vault.URL, "accounts/creds/app"
	dynamic.Spec.Auth = &vaultv1.VaultAuth{TokenSecretRef: &v1alpha1.SecretKeySelector{Name: "vault-token", Key: "token"}}
	push := func(name string, properties ...string) *v1alpha1.PushSecret {
		ps := &v1alpha1.PushSecret{ObjectMeta: named(name), Spec: v1alpha1.PushSecretSpec{
			DeletionPolicy: v1alpha1.PushDeletionDelete,
			StoreRefs:      []v1alpha1.PushStoreRef{{Kind: "AWSSecretsManager", Name: "store"}},
			Selector:       v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: "source"}},
		}}
		for _, p := range properties {
			ps.Spec.Data = append(ps.Spec.Data, v1alpha1.PushData{Match: v1alpha1.PushMatch{
				SecretKey: "password", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: "drill/" + name, Property: p},
			}})
		}
		return ps
	}
	from := func(name, kind, generator string) *v1alpha1.ExternalSecret {
		return &v1alpha1.ExternalSecret{ObjectMeta: named(name), Spec: v1alpha1.ExternalSecretSpec{
			DataFrom: []v1alpha1.DataFromEntry{{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: kind, Name: generator}}}},
		}}
	}
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: named("vault-token"), StringData: map[string]string{"token": vault.RootToken}},
		&corev1.Secret{ObjectMeta: named("source"), StringData: map[string]string{"password": "production"}},
		dynamic, &passwordv1.Password{ObjectMeta: named("pw")},
		push("plain", ""), push("object", "a", "b"), from("account", "VaultDynamicSecret", "dynamic"), from("password", "Password", "pw"),
	} {
		must(t, s.Admin.Create(ctx, o))
	}
	wantConditions(t, s, ns, map[string]string{
		"plain": v1alpha1.ReasonSecretSynced, "object": v1alpha1.ReasonSecretSynced, "account": v1alpha1.ReasonSecretSynced, "password": v1alpha1.ReasonSecretSynced,
	})
}

// wantConditions waits until PushSecrets and ExternalSecrets have a reason, by name.
func wantConditions(t *testing.T, s *stack.Stack, ns string, want map[string]string) {
	t.Helper()
	eventually(t, func() string {
		var pushes v1alpha1.PushSecretList
		var secrets v1alpha1.ExternalSecretList
		must(t, s.Admin.List(t.Context(), &pushes, client.InNamespace(ns)))
		must(t, s.Admin.List(t.Context(), &secrets, client.InNamespace(ns)))
		got := map[string]string{}
		note := func(name string, conditions []metav1.Condition) {
			if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); c != nil && want[name] != "" {
				got[name] = c.Reason
			}
		}
		for _, o := range pushes.Items {
			note(o.Name, o.Status.Conditions)
		}
		for _, o := range secrets.Items {
			note(o.Name, o.Status.Conditions)
		}
		return cmp.Diff(want, got)
	})
}

// deleteDrill deletes every object of a namespace, each Kind alone, and then the namespace.
func deleteDrill(t *testing.T, s *stack.Stack, ns string) {
	t.Helper()
	var parts corev1.SecretList
	must(t, s.Admin.List(t.Context(), &parts, client.InNamespace(ns)))
	for _, p := range parts.Items {
		if strings.Contains(p.Name, "-part-") {
			must(t, s.Admin.Delete(t.Context(), &p))
			eventually(t, func() string { return exists(t, s, &corev1.Secret{}, p) })
		}
	}
	for _, list := range []client.ObjectList{
		&v1alpha1.PushSecretList{}, &v1alpha1.ExternalSecretList{}, &vaultv1.VaultDynamicSecretList{}, &passwordv1.PasswordList{}, &awsv1.AWSSecretsManagerList{},
	} {
		must(t, s.Admin.List(t.Context(), list, client.InNamespace(ns)))
		objects, err := meta.ExtractList(list)
		must(t, err)
		if len(objects) == 0 {
			t.Errorf("the copy has no objects in a %T", list)
		}
		for _, o := range objects {
			must(t, s.Admin.Delete(t.Context(), o.(client.Object)))
		}
		eventually(t, func() string {
			must(t, s.Admin.List(t.Context(), list, client.InNamespace(ns)))
			if n := meta.LenList(list); n > 0 {
				return fmt.Sprintf("%d objects are left in a %T", n, list)
			}
			return ""
		})
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	must(t, s.Admin.Delete(t.Context(), namespace))
	eventually(t, func() string {
		if err := s.Admin.Get(t.Context(), types.NamespacedName{Name: ns}, namespace); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the namespace exists: %v, %+v", err, namespace.Status.Conditions)
		}
		return ""
	})
}

// exists reports whether an object with the uid of a Secret exists.
func exists(t *testing.T, s *stack.Stack, o *corev1.Secret, was corev1.Secret) string {
	t.Helper()
	err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(&was), o)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err == nil && o.UID == was.UID {
		return fmt.Sprintf("Secret %s has the finalizers %q", o.Name, o.Finalizers)
	}
	return ""
}

// A drillState is everything of production that a drill could damage.
type drillState struct {
	// Remote are the values in the emulator, and Writes its calls that change something.
	Remote map[string]string
	Writes map[string]int
	// Leases and Accounts are those of Vault.
	Leases, Accounts []string
	// Objects are the uids in the cluster, and Values the data of its Secrets.
	Objects map[string]types.UID
	Values  map[string]map[string][]byte
}

// stateOf returns the state of production.
func stateOf(t *testing.T, s *stack.Stack, vault *vaulttest.Server, ns string) drillState {
	t.Helper()
	state := drillState{
		Remote: map[string]string{}, Objects: map[string]types.UID{}, Values: map[string]map[string][]byte{},
		Leases: vault.Leases("accounts/creds/app"), Accounts: vault.Accounts("accounts"),
	}
	state.Writes = maps.Clone(s.AWS.Counts())
	maps.DeleteFunc(state.Writes, func(operation string, _ int) bool {
		return slices.ContainsFunc([]string{"Get", "BatchGet", "Describe", "List"}, func(p string) bool { return strings.HasPrefix(operation, p) })
	})
	for _, key := range drillKeys {
		value, ok := s.AWS.Get(key)
		if !ok {
			t.Errorf("there is no remote secret %s", key)
		}
		state.Remote[key] = string(value)
	}
	for _, list := range []client.ObjectList{
		&v1alpha1.PushSecretList{}, &v1alpha1.ExternalSecretList{}, &vaultv1.VaultDynamicSecretList{}, &passwordv1.PasswordList{}, &awsv1.AWSSecretsManagerList{}, &corev1.SecretList{},
	} {
		must(t, s.Admin.List(t.Context(), list, client.InNamespace(ns)))
		must(t, meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(client.Object)
			state.Objects[fmt.Sprintf("%T %s", o, o.GetName())] = o.GetUID()
			if secret, ok := o.(*corev1.Secret); ok {
				state.Values[o.GetName()] = secret.Data
			}
			return nil
		}))
	}
	if len(state.Leases) != 1 || len(state.Accounts) != 1 {
		t.Errorf("Vault has the leases %q and the accounts %q, want one each", state.Leases, state.Accounts)
	}
	return state
}
