//go:build long

package scenarios

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	passwordv1 "github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
	vaultv1 "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// startVault starts a Vault for the test, and returns a token that can read the engine.
func startVault(t *testing.T) (*vaulttest.Server, string) {
	t.Helper()
	srv := vaulttest.Start(t)
	srv.Mount(vaultMount, "2")
	srv.Policy("reader", fmt.Sprintf("path %q { capabilities = [\"read\", \"list\"] }", vaultMount+"/*"))
	return srv, srv.Token(vaulttest.M{"policies": []string{"reader"}, "ttl": "1h"})
}

// vaultStore creates the VaultKV "vault" in a namespace. Retries are few and short.
func vaultStore(t *testing.T, ns, name string, srv *vaulttest.Server, token string) {
	t.Helper()
	must(t, shared.VaultStore(t.Context(), ns, name, srv.URL, vaultMount, token, func(s *vaultv1.VaultKV) {
		retries := int32(1)
		s.Spec.RetrySettings = &v1alpha1.RetrySettings{MaxRetries: &retries, RetryInterval: "10ms"}
	}))
}

// mixedModules are the modules of a mix. The first is that of the leading store.
var mixedModules = []string{stack.ProviderAWS, stack.ProviderVault, stack.GeneratorPassword}

// A mix is a namespace with the AWS store "store", the store "vault" and the Password "pw", for objects with
// values from all three.
type mix struct {
	t       *testing.T
	ns      string
	vault   *vaulttest.Server
	history *history
	// processes are the running processes by module.
	processes map[string]*stack.Process
	requests  int
}

// newMix creates a mix. No module runs yet.
func newMix(t *testing.T, ns string) *mix {
	t.Helper()
	m := &mix{t: t, ns: namespace(t, ns), processes: map[string]*stack.Process{}}
	var token string
	m.vault, token = startVault(t)
	vaultStore(t, ns, "vault", m.vault, token)
	none := int32(0)
	m.history = passwords(t, ns, func(p *passwordv1.Password) { p.Spec.Symbols = &none })
	return m
}

// run starts modules for the namespace, and for others. They know only of each other.
func (m *mix) run(modules ...string) {
	m.t.Helper()
	for _, module := range modules {
		m.processes[module] = startModule(m.t, module, m.ns, m.flags()...)
	}
}

func (m *mix) flags() []string { return []string{"--presence-namespace=" + m.ns} }

// kill kills modules.
func (m *mix) kill(modules ...string) {
	m.t.Helper()
	for _, module := range modules {
		must(m.t, m.processes[module].Kill())
		delete(m.processes, module)
	}
}

// These return the values of an object. No value is a part of another.
func awsValue(name string, n int) string   { return fmt.Sprintf("from-aws-%s-%04d", name, n) }
func vaultValue(name string, n int) string { return fmt.Sprintf("from-vault-%s-%04d", name, n) }

func (m *mix) key(name string) string { return m.ns + "/" + name }

// putAWS gives the secret with a name its nth value.
func (m *mix) putAWS(name string, n int) {
	shared.AWS.Put(m.key(name), []byte(awsValue(name, n)))
}

// putVault does the same in Vault.
func (m *mix) putVault(name string, n int) {
	m.t.Helper()
	m.vault.Do(http.MethodPost, vaultMount+"/data/"+m.key(name), vaulttest.M{"data": vaulttest.M{"password": vaultValue(name, n)}})
}

func (m *mix) put(name string, n int) {
	m.t.Helper()
	m.putAWS(name, n)
	m.putVault(name, n)
}

// forget deletes a secret of Vault with all its versions.
func (m *mix) forget(name string) {
	m.t.Helper()
	m.vault.Do(http.MethodDelete, vaultMount+"/metadata/"+m.key(name), nil)
}

// vaultRef refers to the store of Vault.
var vaultRef = &v1alpha1.DataSourceRef{StoreRef: v1alpha1.StoreRef{Kind: "VaultKV", Name: "vault"}}

// These are the keys of an object's Secret.
const (
	awsKey, vaultKey, passwordKey = "aws", "vault", "password"
	optionalKey                   = "extra"
	shapedKey, literalKey         = "all", "joined"
)

// object returns an object with values from all three modules, whose remote secrets have its name.
func (m *mix) object(name string, change ...specChange) *v1alpha1.ExternalSecret {
	es := generated(m.ns, name)
	es.Spec.StoreRef = &v1alpha1.StoreRef{Kind: "AWSSecretsManager", Name: "store"}
	m.read(&es.Spec, name)
	literal := "joined: {{ .aws }}/{{ .vault }}/{{ .password }}"
	es.Spec.Target.Template = &v1alpha1.Template{
		MergePolicy:  "Merge",
		Data:         map[string]string{shapedKey: "{{ .password }} {{ .vault }} {{ .aws }}"},
		TemplateFrom: []v1alpha1.TemplateFrom{{Literal: &literal}},
	}
	for _, f := range change {
		f(&es.Spec)
	}
	return es
}

// read makes a spec read the remote secrets with a name.
func (m *mix) read(es *v1alpha1.ExternalSecretSpec, name string) {
	es.Data = []v1alpha1.DataEntry{
		{SecretKey: awsKey, RemoteRef: v1alpha1.RemoteRef{Key: m.key(name)}},
		{SecretKey: vaultKey, RemoteRef: v1alpha1.RemoteRef{Key: m.key(name), Property: "password"}, SourceRef: vaultRef},
		{SecretKey: optionalKey, RemoteRef: v1alpha1.RemoteRef{Key: m.key(name + "-" + optionalKey), Property: "password"}, SourceRef: vaultRef, Optional: true},
	}
}

func (m *mix) create(name string, change ...specChange) *v1alpha1.ExternalSecret {
	m.t.Helper()
	es := m.object(name, change...)
	must(m.t, shared.Admin.Create(m.t.Context(), es))
	return es
}

func (m *mix) get(name string) *v1alpha1.ExternalSecret {
	m.t.Helper()
	es := &v1alpha1.ExternalSecret{}
	must(m.t, shared.Admin.Get(m.t.Context(), types.NamespacedName{Namespace: m.ns, Name: name}, es))
	return es
}

// change changes the spec of an object.
func (m *mix) change(name string, change specChange) {
	m.t.Helper()
	es := m.get(name)
	before := es.DeepCopy()
	change(&es.Spec)
	must(m.t, shared.Admin.Patch(m.t.Context(), es, client.MergeFrom(before)))
}

// refresh requests a refresh of an object.
func (m *mix) refresh(name string) {
	m.t.Helper()
	m.requests++
	refresh(m.t, m.ns, name, fmt.Sprint(m.requests))
}

// half returns which of the three values a Secret lacks, or how they do not match.
func half(data map[string]string) string {
	aws, vault, password := data[awsKey], data[vaultKey], data[passwordKey]
	want := map[string]string{
		awsKey: aws, vaultKey: vault, passwordKey: password,
		shapedKey: password + " " + vault + " " + aws, literalKey: aws + "/" + vault + "/" + password,
	}
	if v, ok := data[optionalKey]; ok {
		want[optionalKey] = v
	}
	if aws == "" || vault == "" || password == "" {
		return fmt.Sprintf("values are missing: %q, %q, %q", aws, vault, password)
	}
	return cmp.Diff(want, data)
}

// waitUntilInSync waits until an object is in sync, and its Secret has the nth values of the remote secrets with a name.
func (m *mix) waitUntilInSync(name, remote string, aws, vault int) map[string]string {
	m.t.Helper()
	var data map[string]string
	eventually(m.t, func() string {
		es, s := m.get(name), getSecret(m.t, m.ns, name)
		if missing := ready(es); missing != "" || s == nil {
			return missing + " or has no Secret"
		}
		data = newVersion(s, false).Data
		want := map[string]string{awsKey: awsValue(remote, aws), vaultKey: vaultValue(remote, vault)}
		return cmp.Diff(want, map[string]string{awsKey: data[awsKey], vaultKey: data[vaultKey]})
	})
	if h := half(data); h != "" {
		m.t.Fatalf("Secret %s: %s", name, h)
	}
	return data
}

// waitUntilDeleted waits until an object does not exist.
func waitUntilDeleted(t *testing.T, o client.Object, ns, name string) {
	t.Helper()
	eventually(t, func() string {
		if err := shared.Admin.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, o); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("%T %s is still there: %v", o, name, err)
		}
		return ""
	})
}

// end ends the history after everything written before has been recorded.
func (h *history) end(t *testing.T, ns string) {
	t.Helper()
	must(t, shared.Admin.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "end"}}))
	must(t, h.until(t.Context(), "end", "is recorded", func(v version) bool { return v.UID != "" }))
}

// whole fails the test if a version of a Secret was incomplete, or if the Secret was missing.
func (m *mix) whole(name string) {
	m.t.Helper()
	versions := m.history.of(name)
	if len(versions) == 0 {
		m.t.Errorf("Secret %s was never there", name)
	}
	for i, v := range versions {
		if v.Deleted {
			m.t.Errorf("Secret %s, version %d: it was missing", name, i)
		} else if h := half(v.Data); h != "" {
			m.t.Errorf("Secret %s, version %d: %s", name, i, h)
		}
	}
}

func often(es *v1alpha1.ExternalSecretSpec) { es.RefreshInterval = "1s" }

// ready returns what is missing until an object is in sync with its spec and with the requested refresh.
func ready(es *v1alpha1.ExternalSecret) string {
	c := meta.FindStatusCondition(es.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Status != metav1.ConditionTrue || es.Status.ObservedGeneration != es.Generation ||
		es.Status.ObservedRefreshRequest != es.Annotations[v1alpha1.RefreshRequestAnnotation] {
		return fmt.Sprintf("ExternalSecret %s of generation %d is out of sync: %+v, %+v", es.Name, es.Generation, c, es.Status)
	}
	return ""
}

// waitTimeout limits each wait.
const waitTimeout = 90 * time.Second

// until waits until ok returns true for the last version of a Secret.
func (h *history) until(ctx context.Context, secret, what string, ok func(version) bool) error {
	deadline := time.After(waitTimeout)
	for {
		h.mu.Lock()
		var last version
		if all := h.secrets[secret]; len(all) > 0 {
			last = all[len(all)-1]
		}
		changed, err := h.changed, h.err
		h.mu.Unlock()
		if err != nil || ok(last) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("the Secret never %s, but is %+v", what, last)
		}
	}
}
