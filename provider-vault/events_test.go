package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-vault/manifests"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// TestEvents applies examples/eventreceiver.yaml, changes a secret in Vault, and sends a request about it.
func TestEvents(t *testing.T) {
	srv := vaulttest.Start(t)
	srv.Mount("secret", "2")
	srv.Policy("orchard", `path "secret/data/orchard/*" { capabilities = ["read"] }`)
	put := func(value string) {
		srv.Do(http.MethodPost, "secret/data/orchard/press", vaulttest.M{"data": vaulttest.M{"password": value}})
	}
	put("one")
	token := srv.Token(vaulttest.M{"policies": []string{"orchard"}})
	suite.Apply(t, operatortest.Example(t, manifests.Examples, "eventreceiver.yaml"), func(o *unstructured.Unstructured) {
		var err error
		switch o.GetKind() {
		case "Secret":
			err = unstructured.SetNestedField(o.Object, token, "stringData", "token")
		case "VaultKV":
			err = unstructured.SetNestedField(o.Object, srv.URL, "spec", "server")
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	ports, err := controlplane.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	suite.StartAlone(t, "provider-vault", manifests.Permissions, func(opts ...operator.Option) *operator.Operator {
		return newOperator(append(opts, operator.WithFlags(func(f *operator.Flags) { f.EventReceiverAddress = "127.0.0.1:" + ports[0] }))...)
	})
	controlplane.Eventually(t, func() string { return cmp.Diff("one", suite.For(t).In("orchard").Data("press")["password"]) })
	controlplane.Eventually(t, func() string {
		return cmp.Diff("True Valid", suite.For(t).Ready(&common.EventReceiver{ObjectMeta: metav1.ObjectMeta{Namespace: "orchard", Name: "ci"}}))
	})

	put("two")
	body, stamp := `{"keys":["orchard/press"]}`, strconv.FormatInt(time.Now().Unix(), 10)
	sum := hmac.New(sha256.New, []byte("7d2f0c3b9e6a4d1f8b5c2e9a7d4f1c6b"))
	sum.Write([]byte(stamp + "." + body))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+ports[0]+"/events/orchard/ci", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Direct-Secrets-Timestamp", stamp)
	r.Header.Set("X-Direct-Secrets-Signature", "sha256="+hex.EncodeToString(sum.Sum(nil)))
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Body.Close(); err != nil {
		t.Error(err)
	}
	if a.StatusCode != http.StatusOK {
		t.Errorf("status %d, want 200", a.StatusCode)
	}
	if diff := cmp.Diff("two", suite.For(t).In("orchard").Data("press")["password"]); diff != "" {
		t.Errorf("at the answer, the Secret has the new value: -want, +got:\n%s", diff)
	}
}
