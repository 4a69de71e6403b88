package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commoncrds "github.com/direct-secrets/direct-secrets/common/apis/crds"
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/controlplane"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/crds"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/config"
	"github.com/direct-secrets/direct-secrets/provider-vault/examples"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

var (
	cluster *controlplane.ControlPlane
	api     client.Client
)

func TestMain(m *testing.M) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) error {
		ctrl.SetLogger(logr.Discard())
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, common.AddToScheme, v1alpha1.AddToScheme} {
			if err := add(scheme); err != nil {
				return err
			}
		}
		var err error
		cluster = c
		api, err = client.New(c.Config(), client.Options{Scheme: scheme})
		return err
	}, controlplane.WithCRDs(append(crds.All(), commoncrds.ExternalSecrets)...))
}

func create(t *testing.T, o client.Object) {
	t.Helper()
	if err := api.Create(t.Context(), o); err != nil {
		t.Fatalf("create %T %s: %s", o, o.GetName(), err)
	}
}

func ref(name, key string) common.SecretKeySelector {
	return common.SecretKeySelector{Name: name, Key: key}
}

func TestCRD(t *testing.T) {
	type auth = v1alpha1.VaultAuth
	token := new(ref("vault", "token"))
	account := &common.ServiceAccountSelector{Name: "default"}
	const one = "set exactly one of tokenSecretRef"
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.VaultKVSpec)
		want   string // part of the rejection
	}{
		"Least":    {"Where and what is enough for the API server.", func(*v1alpha1.VaultKVSpec) {}, ""},
		"NoServer": {"There is no default server.", func(s *v1alpha1.VaultKVSpec) { s.Server = "" }, "spec.server"},
		"NoPath":   {"There is no default mount.", func(s *v1alpha1.VaultKVSpec) { s.Path = "" }, "spec.path"},
		"Version":  {"KV has two versions.", func(s *v1alpha1.VaultKVSpec) { s.Version = "v3" }, "spec.version"},
		"V1":       {"This is one.", func(s *v1alpha1.VaultKVSpec) { s.Version = "v1" }, ""},
		"NoAuth":   {"An auth that names nobody is a mistake.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{} }, one},
		"TwoAuths": {"Which of two would win?", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{TokenSecretRef: token, Cert: &v1alpha1.CertAuth{}} }, one},
		"Token":    {"A token is enough.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{TokenSecretRef: token} }, ""},
		"RoleTwice": {"Which of two would win?", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{AppRole: &v1alpha1.AppRoleAuth{RoleID: "r", RoleRef: token}}
		}, "set either roleId or roleRef"},
		"KubeNothing": {"The operator's own token is sent for nobody.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{Kubernetes: &v1alpha1.KubernetesAuth{Role: "r"}} }, "set either serviceAccountRef or secretRef"},
		"Kube": {"This is how most log in.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{Kubernetes: &v1alpha1.KubernetesAuth{Role: "r", ServiceAccountRef: account}}
		}, ""},
		"JWTNothing": {"There must be a JWT.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{JWT: &v1alpha1.JWTAuth{}} }, "set either secretRef or kubernetesServiceAccountToken"},
		"IAMNothing": {"There must be an identity.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{IAM: &v1alpha1.IAMAuth{Role: "r"}} }, "set either secretRef or jwt"},
		"IAMNoRole": {"A token is good for assuming a role only.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{IAM: &v1alpha1.IAMAuth{Role: "r", JWT: &v1alpha1.IAMJWT{ServiceAccountRef: *account}}}
		}, "jwt needs a role"},
		"ConfigMap": {"It could not be read.", func(s *v1alpha1.VaultKVSpec) { s.CAProvider = &v1alpha1.CAProvider{Type: "ConfigMap"} }, "only type Secret can be read"},
		"CASecret": {"This can.", func(s *v1alpha1.VaultKVSpec) {
			s.CAProvider = &v1alpha1.CAProvider{Type: "Secret", SecretKeySelector: *token}
		}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.VaultKVSpec{Server: "https://vault.example", Path: "secret"}
			tc.change(&spec)
			for _, o := range []client.Object{
				&v1alpha1.VaultKV{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: strings.ToLower(name)}, Spec: spec},
				&v1alpha1.ClusterVaultKV{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(name)}, Spec: v1alpha1.ClusterVaultKVSpec{VaultKVSpec: spec}},
			} {
				err := api.Create(t.Context(), o, client.DryRunAll)
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("%s\n%T: error %v, want %q", tc.reason, o, err, tc.want)
				}
			}
		})
	}
}

func TestCRDSize(t *testing.T) {
	for _, crd := range crds.All() {
		if len(crd) > 60_000 {
			t.Errorf("A CRD is at most 60 KB: %d bytes", len(crd))
		}
		if bytes.Contains(crd, []byte(" default: ")) {
			t.Error("A default of the API server shows as drift")
		}
	}
}

// TestExamples applies the manifests as they are. Unknown fields are errors.
func TestExamples(t *testing.T) {
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(examples.VaultKV), 4096)
	strict := client.WithFieldValidation(api, metav1.FieldValidationStrict)
	for {
		o := &unstructured.Unstructured{}
		if err := d.Decode(o); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if o.GetNamespace() != "" {
			o.SetNamespace("default")
		}
		if err := strict.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("%s %s: %s", o.GetKind(), o.GetName(), err)
		}
	}
}

// grant makes the roles of config/rbac.yaml and binds them to a ServiceAccount, as which the
// configuration that it returns acts.
func grant(t *testing.T, namespace, name string) *rest.Config {
	t.Helper()
	kubeconfig, err := cluster.ServiceAccountKubeconfig(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	account, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for doc := range bytes.SplitSeq(config.RBAC, []byte("\n---\n")) {
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(doc, role); err != nil {
			t.Fatal(err)
		}
		create(t, role)
		create(t, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		})
	}
	return account
}

func run(t *testing.T, opts ...operator.Option) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- provider(opts...).Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("operator: %s", err)
		}
	})
}

// TestProvider runs the whole module: a store with an AppRole, and one whose credentials are wrong until
// they are mended.
func TestProvider(t *testing.T) {
	srv := vaulttest.Start(t)
	srv.Mount("secret", "2")
	srv.Policy("reader", `path "secret/data/shop/*" { capabilities = ["read"] }`)
	srv.Do(http.MethodPost, "secret/data/shop/db", vaulttest.M{"data": vaulttest.M{"password": "one"}})
	srv.Enable("approle")
	srv.Do(http.MethodPost, "auth/approle/role/shop", vaulttest.M{"token_policies": "reader"})
	roleID := srv.Do(http.MethodGet, "auth/approle/role/shop/role-id", nil)["role_id"].(string)
	secretID := srv.Do(http.MethodPost, "auth/approle/role/shop/secret-id", nil)["secret_id"].(string)

	account := grant(t, "vault-system", "provider-vault")
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "vault"}, Data: map[string][]byte{"secretId": []byte(secretID)}})
	broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "broken"}, Data: map[string][]byte{"secretId": []byte("wrong")}}
	create(t, broken)
	for name, secret := range map[string]string{"good": "vault", "bad": "broken"} {
		create(t, &v1alpha1.VaultKV{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: v1alpha1.VaultKVSpec{Server: srv.URL, Path: "secret", Auth: &v1alpha1.VaultAuth{
				AppRole: &v1alpha1.AppRoleAuth{RoleID: roleID, SecretRef: ref(secret, "secretId")},
			}},
		})
	}

	run(t, operator.WithConfig(account), operator.WithFlags(func(f *operator.Flags) {
		f.MetricsAddress, f.ProbeAddress, f.LeaderElectNamespace = "0", "0", "vault-system"
	}))
	for _, s := range []string{"good", "bad"} {
		create(t, &common.ExternalSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: s},
			Spec: common.ExternalSecretSpec{
				StoreRef: &common.StoreRef{Kind: "VaultKV", Name: s},
				Data:     []common.DataEntry{{SecretKey: "password", RemoteRef: common.RemoteRef{Key: "shop/db", Property: "password"}}},
			},
		})
	}
	controlplane.Eventually(t, func() string { return cmp.Diff("one", password(t, "good")) })
	controlplane.Eventually(t, func() string { return cmp.Diff("True Valid", ready(t, "good")) })
	controlplane.Eventually(t, func() string { return cmp.Diff("False AuthFailed", ready(t, "bad")) })

	broken.Data["secretId"] = []byte(secretID)
	if err := api.Update(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() string { return cmp.Diff("True Valid", ready(t, "bad")) })
	controlplane.Eventually(t, func() string { return cmp.Diff("one", password(t, "bad")) })
}

func password(t *testing.T, name string) string {
	t.Helper()
	s := &corev1.Secret{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, s); err != nil {
		return err.Error()
	}
	return string(s.Data["password"])
}

func ready(t *testing.T, name string) string {
	t.Helper()
	s := &v1alpha1.VaultKV{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, s); err != nil {
		return err.Error()
	}
	c := meta.FindStatusCondition(s.Status.Conditions, common.ConditionReady)
	if c == nil {
		return "no condition"
	}
	return string(c.Status) + " " + c.Reason
}
