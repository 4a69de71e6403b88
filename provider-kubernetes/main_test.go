package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-kubernetes/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-kubernetes/manifests"
)

var suite operatortest.Suite

func TestMain(m *testing.M) { suite.Main(m, v1alpha1.AddToScheme, manifests.CRDs) }

func TestCRDs(t *testing.T) { operatortest.CheckCRDs(t, manifests.CRDs) }

func TestExamples(t *testing.T) {
	suite.Examples(t, operatortest.Example(t, manifests.Examples, "kubernetessecrets.yaml"))
}

type spec = v1alpha1.KubernetesSecretsSpec

func newStore(namespace, name string, s spec) *v1alpha1.KubernetesSecrets {
	return &v1alpha1.KubernetesSecrets{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: s}
}

func newClusterStore(name string, s spec, c common.ClusterStoreSpec) *v1alpha1.ClusterKubernetesSecrets {
	return &v1alpha1.ClusterKubernetesSecrets{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterKubernetesSecretsSpec{KubernetesSecretsSpec: s, ClusterStoreSpec: c}}
}

func byAccount(name string) *v1alpha1.KubernetesAuth {
	return &v1alpha1.KubernetesAuth{ServiceAccount: &common.ServiceAccountSelector{Name: name}}
}

func byToken(namespace, name string) *v1alpha1.KubernetesAuth {
	return &v1alpha1.KubernetesAuth{Token: &v1alpha1.KubernetesToken{BearerToken: common.SecretKeySelector{Namespace: namespace, Name: name, Key: "token"}}}
}

func TestCRD(t *testing.T) {
	kubeconfig := &common.SecretKeySelector{Name: "hub", Key: "kubeconfig"}
	both := byAccount("reader")
	both.Token = byToken("", "kube").Token
	const one = "set exactly one of serviceAccount, token and cert"
	cases := map[string]struct {
		reason string
		spec   spec
		want   string // part of the error
	}{
		"Account":     {"A ServiceAccount of this cluster is enough.", spec{RemoteNamespace: "shared", Auth: byAccount("reader")}, ""},
		"Kubeconfig":  {"A kubeconfig is enough.", spec{RemoteNamespace: "shared", AuthRef: kubeconfig}, ""},
		"Server":      {"Another cluster has an address.", spec{RemoteNamespace: "shared", Server: &v1alpha1.KubernetesServer{URL: "https://10.0.0.1:6443"}, Auth: byToken("", "kube")}, ""},
		"Audience":    {"A token for this cluster is not sent to another one.", spec{RemoteNamespace: "shared", Server: &v1alpha1.KubernetesServer{URL: "https://10.0.0.1"}, Auth: byAccount("reader")}, "audiences is required with server"},
		"NoAuth":      {"A store needs a login, because the operator's own identity is never used.", spec{RemoteNamespace: "shared"}, "set either auth or authRef"},
		"EmptyAuth":   {"An empty auth is rejected.", spec{RemoteNamespace: "shared", Auth: &v1alpha1.KubernetesAuth{}}, one},
		"TwoAuths":    {"Two logins are rejected.", spec{RemoteNamespace: "shared", Auth: both}, one},
		"BothAuths":   {"A kubeconfig contains the login.", spec{RemoteNamespace: "shared", Auth: byAccount("reader"), AuthRef: kubeconfig}, "set either auth or authRef"},
		"BothServers": {"A kubeconfig contains the server.", spec{RemoteNamespace: "shared", Server: &v1alpha1.KubernetesServer{URL: "https://10.0.0.1"}, AuthRef: kubeconfig}, "remove server"},
		"NoNamespace": {"A store is for one namespace.", spec{Auth: byAccount("reader")}, "spec.remoteNamespace"},
		"Path":        {"A namespace is a part of a path, so it has no other characters.", spec{RemoteNamespace: "shared/secrets", Auth: byAccount("reader")}, "spec.remoteNamespace"},
		"Host":        {"An address without a scheme is rejected.", spec{RemoteNamespace: "shared", Server: &v1alpha1.KubernetesServer{URL: "10.0.0.1"}, Auth: byToken("", "kube")}, "url must be a URL"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, o := range []client.Object{newStore("default", strings.ToLower(name), tc.spec), newClusterStore(strings.ToLower(name), tc.spec, common.ClusterStoreSpec{})} {
				suite.Accepts(t, tc.reason, o, tc.want)
			}
		})
	}
}

// TestTwoClusters reads from another real control plane and pushes to it, with a kubeconfig.
func TestTwoClusters(t *testing.T) {
	const ns = "shop-two"
	hub, err := controlplane.Start(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, hub.Stop()) })
	there := clientOf(t, hub)
	must(t, there.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	must(t, there.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Labels: map[string]string{"team": "shop"}},
		Data: map[string][]byte{"password": []byte("s3cret"), "keystore.jks": {0, 0xff, 0xfe}}}))
	grant(t, there, "shop", "operator", "shop", "get", "list", "create", "patch", "delete")
	kubeconfig, err := hub.ServiceAccountKubeconfig(t.Context(), "shop", "operator")
	must(t, err)

	c := suite.For(t)
	c.Namespace(ns, nil)
	here := c.In(ns)
	here.Source("hub", map[string]string{"kubeconfig": string(kubeconfig)})
	suite.Start(t, "provider-kubernetes", manifests.Permissions, newOperator)
	s := newStore(ns, "hub", spec{RemoteNamespace: "shop", AuthRef: &common.SecretKeySelector{Name: "hub", Key: "kubeconfig"}})
	here.Create(s)
	here.Want(s, common.ReasonStoreValid)

	es := operatortest.ExternalSecret(ns, "db", "KubernetesSecrets", "hub", "db")
	es.Spec.Data = nil
	es.Spec.DataFrom = []common.DataFromEntry{{Extract: &common.RemoteRef{Key: "db"}}}
	here.Create(es)
	here.WantSecret("db", "password", "s3cret")
	here.WantSecret("db", "keystore.jks", "\x00\xff\xfe")

	here.Source("pushed", map[string]string{"a": "1"})
	ps := &common.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "push"}}
	ps.Spec.StoreRefs = []common.PushStoreRef{{Kind: "KubernetesSecrets", Name: "hub"}}
	ps.Spec.Selector.Secret = &common.PushSecretSelector{Name: "pushed"}
	ps.Spec.Data = []common.PushData{{Match: common.PushMatch{SecretKey: "a", RemoteRef: common.PushRemoteRef{RemoteKey: "pushed", Property: "a"}}}}
	here.Create(ps)
	controlplane.Eventually(t, func() string {
		got := &corev1.Secret{}
		if err := there.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "pushed"}, got); err != nil {
			return err.Error()
		}
		if string(got.Data["a"]) != "1" || got.Annotations["direct-secrets.io/created-by"] == "" {
			return "pushed: " + got.String()
		}
		return ""
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// grant creates a ServiceAccount that has the verbs on Secrets of a namespace.
func grant(t testing.TB, c client.Client, namespace, name, in string, verbs ...string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: in, Name: namespace + "-" + name}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs}}},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}}},
	} {
		must(t, c.Create(t.Context(), o))
	}
}

func clientOf(t testing.TB, c *controlplane.ControlPlane) client.Client {
	t.Helper()
	there, err := client.New(c.Config(), client.Options{})
	must(t, err)
	return there
}
