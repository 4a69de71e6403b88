package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-kubernetes/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-kubernetes/manifests"
)

// TestEscapes tries to read the Secrets of other namespaces, and of the operator, from namespace shop.
func TestEscapes(t *testing.T) {
	const ns, shared = "shop-escapes", "shared-escapes"
	hub, err := controlplane.Start(t.Context(), controlplane.WithAuditLog())
	must(t, err)
	t.Cleanup(func() { must(t, hub.Stop()) })
	there := clientOf(t, hub)
	for _, n := range []string{shared, "bank"} {
		must(t, there.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}))
		for _, name := range []string{ns + ".db", "bank.db", "common.db"} {
			must(t, there.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: name}, Data: map[string][]byte{"password": []byte("x")}}))
		}
	}
	grant(t, there, shared, "reader", shared, "get", "list")
	kubeconfig, err := hub.ServiceAccountKubeconfig(t.Context(), shared, "reader")
	must(t, err)
	c := suite.For(t)
	c.Namespace(ns, nil)
	c.In(ns).Source("hub", map[string]string{"kubeconfig": string(kubeconfig)})
	suite.Start(t, "provider-kubernetes", manifests.Permissions, newOperator)
	start := time.Now()
	calls := func() []string {
		events, err := hub.ReadAuditLog(start)
		must(t, err)
		all := []string{}
		for _, e := range events {
			if strings.HasSuffix(e.User.Username, ":reader") && strings.Contains(e.RequestURI, "/namespaces/") {
				all = append(all, fmt.Sprint(e.Verb, " ", e.RequestURI))
			}
		}
		return all
	}

	s := newClusterStore("escapes", spec{RemoteNamespace: shared, AuthRef: &common.SecretKeySelector{Namespace: ns, Name: "hub", Key: "kubeconfig"}},
		common.ClusterStoreSpec{Conditions: []common.StoreCondition{{AllowedKeys: []string{"${namespace}.*", "common.db"}}}})
	suite.Escapes(t, ns, s, ns+".db", map[string]operatortest.Escape{
		"Foreign":    operatortest.Key("The key of the other namespace's secret is denied.", "bank.db"),
		"Namespace":  operatortest.Key("A key is not a path to another namespace.", "../../bank/secrets/bank.db"),
		"ConfigMap":  operatortest.Key("A ConfigMap is denied like a Secret.", "configmap/bank.db"),
		"Everything": operatortest.Find("A find without a path is denied.", ""),
	}, calls)
}

// TestBadStores creates stores that would use other identities than their own.
func TestBadStores(t *testing.T) {
	const ns, other = "shop-bad", "bank-bad"
	c := suite.For(t)
	c.Namespace(ns, nil)
	c.Namespace(other, nil)
	c.In(other).Source("hub", map[string]string{"token": "x"})
	file := func(user, cluster string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
users: [{name: a, user: {%s}}], clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"%s}}]}`, user, cluster)
	}
	c.In(ns).Source("hub", map[string]string{
		"token": "x", "exec": file(`token: x, exec: {apiVersion: client.authentication.k8s.io/v1, command: id, interactiveMode: Never}`, ""),
		"plugin": file(`auth-provider: {name: gcp}`, ""), "tokenfile": file(`tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token`, ""),
		"cert": file(`client-certificate: /etc/passwd, client-key: /etc/passwd`, ""), "basic": file(`username: a, password: b`, ""),
		"as": file(`token: x, as: "system:admin"`, ""), "ca": file(`token: x`, `, certificate-authority: /etc/passwd`),
		"insecure": file(`token: x`, `, insecure-skip-tls-verify: true`), "proxy": file(`token: x`, `, proxy-url: "http://127.0.0.1:1"`),
		"nothing": file(``, ""), "garbage": "c4n4ry: [", "nocontext": "{apiVersion: v1, kind: Config}", "http": strings.ReplaceAll(file(`token: x`, ""), "https://127.0.0.1", "http://hub.example"),
	})
	suite.Start(t, "provider-kubernetes", manifests.Permissions, newOperator)
	with := func(key string) *v1alpha1.KubernetesSecrets {
		return newStore(ns, key, spec{RemoteNamespace: "shop", AuthRef: &common.SecretKeySelector{Name: "hub", Key: key}})
	}
	at := &v1alpha1.KubernetesServer{URL: "https://127.0.0.1:1"}
	const invalid = common.ReasonStoreInvalidSpec
	suite.BadStores(t, ns, map[string]operatortest.BadStore{
		"Exec":       {Why: "A kubeconfig runs no command in the operator.", Store: with("exec"), Want: invalid, Message: "spec.authRef: the kubeconfig sets exec"},
		"Plugin":     {Why: "A kubeconfig uses no plugin.", Store: with("plugin"), Want: invalid, Message: "sets auth-provider"},
		"TokenFile":  {Why: "A kubeconfig does not send the operator's own token to its server.", Store: with("tokenfile"), Want: invalid, Message: "sets tokenFile"},
		"Cert":       {Why: "A kubeconfig reads no file of the operator.", Store: with("cert"), Want: invalid, Message: "sets client-certificate"},
		"Basic":      {Why: "A password is no login of Kubernetes any more.", Store: with("basic"), Want: invalid, Message: "sets username"},
		"As":         {Why: "A kubeconfig impersonates no other user.", Store: with("as"), Want: invalid, Message: "sets as"},
		"CA":         {Why: "A kubeconfig reads no file of the operator.", Store: with("ca"), Want: invalid, Message: "sets certificate-authority"},
		"Insecure":   {Why: "A server must prove who it is.", Store: with("insecure"), Want: invalid, Message: "sets insecure-skip-tls-verify"},
		"Proxy":      {Why: "A proxy of a tenant could see the address of the operator.", Store: with("proxy"), Want: invalid, Message: "sets proxy-url"},
		"Nothing":    {Why: "A kubeconfig without a login is not anonymous.", Store: with("nothing"), Want: invalid, Message: "has neither a token nor client-certificate-data"},
		"Garbage":    {Why: "The text of a kubeconfig is not shown.", Store: with("garbage"), Want: invalid, Message: "the kubeconfig is not valid"},
		"NoContext":  {Why: "A kubeconfig needs a context.", Store: with("nocontext"), Want: invalid, Message: "has no current-context"},
		"HTTP":       {Why: "A token is not sent without TLS.", Store: with("http"), Want: invalid, Message: "plain http"},
		"Token":      {Why: "A namespaced store reads only Secrets in its own namespace.", Store: newStore(ns, "token", spec{RemoteNamespace: "shop", Server: at, Auth: byToken(other, "hub")}), Want: invalid, Message: "spec.auth.token.bearerToken: Secret hub must not name a namespace"},
		"Kubeconfig": {Why: "The same is true for a kubeconfig.", Store: newStore(ns, "kubeconfig", spec{RemoteNamespace: "shop", AuthRef: &common.SecretKeySelector{Namespace: other, Name: "hub", Key: "token"}}), Want: invalid, Message: "spec.authRef: Secret hub must not name a namespace"},
	}, func() []string { return []string{} })
}
