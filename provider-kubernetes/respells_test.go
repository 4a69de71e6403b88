package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-kubernetes/manifests"
)

// TestRespelled pushes by all spellings of a key of a Secret.
func TestRespelled(t *testing.T) {
	const ns, shared = "respelled", "respelled-shared"
	c := suite.For(t)
	c.Namespace(ns, nil)
	c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shared}})
	grant(t, c.API, shared, "pusher", shared, "get", "list", "create", "patch", "delete")
	kubeconfig, err := suite.Cluster.ServiceAccountKubeconfig(t.Context(), shared, "pusher")
	must(t, err)
	c.In(ns).Source("pusher", map[string]string{"kubeconfig": string(kubeconfig)})
	suite.Start(t, "provider-kubernetes", manifests.Permissions, newOperator)
	by := func(namespace string) spec {
		return spec{RemoteNamespace: shared, AuthRef: &common.SecretKeySelector{Namespace: namespace, Name: "pusher", Key: "kubeconfig"}}
	}
	stores := []provider.Object{newStore(ns, "prod", by("")), newClusterStore("respelled", by(ns), common.ClusterStoreSpec{})}
	suite.Respells(t, ns, stores, map[string]operatortest.Spellings{"property": {Properties: []string{`tls\.crt`, "tls.crt", `t\ls\.crt`}}})
}
