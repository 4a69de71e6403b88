package scenarios

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	passwordv1 "github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// TestMixed changes the contribution of each of three modules to one object, in each way in which changes
// arrive.
func TestMixed(t *testing.T) {
	t.Parallel()
	m := newMix(t, "mixed")
	m.put("es", 1)
	m.create("es")
	m.run(mixedModules...)
	data := m.waitUntilInSync("es", "es", 1, 1)
	if v, ok := data[optionalKey]; ok {
		t.Errorf("an optional entry that is missing in Vault has the value %q", v)
	}

	// other waits until the password is another one. why describes the expected cause.
	other := func(why string) {
		t.Helper()
		was := data[passwordKey]
		eventually(t, func() string {
			if data = newVersion(getSecret(t, m.ns, "es"), false).Data; data[passwordKey] == was {
				return "the password is the same: " + why
			}
			return half(data)
		})
	}
	setPassword := func(spec string) {
		t.Helper()
		p := &passwordv1.Password{}
		p.Namespace, p.Name = m.ns, pw.Name
		must(t, shared.Admin.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))))
	}

	m.putAWS("es", 2)
	m.refresh("es")
	m.waitUntilInSync("es", "es", 2, 1)
	other("a refresh was requested")
	m.putVault("es", 2)
	m.refresh("es")
	m.waitUntilInSync("es", "es", 2, 2)
	other("a refresh was requested")

	m.put("other", 7)
	m.change("es", func(es *v1alpha1.ExternalSecretSpec) { m.read(es, "other") })
	if is := m.waitUntilInSync("es", "other", 7, 7); is[passwordKey] != data[passwordKey] {
		t.Error("a change of the spec made another password")
	}
	setPassword(`{"length":30}`)
	other("its spec has changed")
	if n := len(data[passwordKey]); n != 30 {
		t.Errorf("the password has %d characters, want 30", n)
	}

	m.change("es", often)
	m.putAWS("other", 8)
	m.waitUntilInSync("es", "other", 8, 7)
	m.putVault("other", 8)
	data = m.waitUntilInSync("es", "other", 8, 8)
	setPassword(`{"rotationInterval":"1s"}`)
	other("the interval has passed")
	setPassword(`{"rotationInterval":null}`)
	m.change("es", func(es *v1alpha1.ExternalSecretSpec) { es.RefreshInterval = "" })

	m.vault.Do(http.MethodPost, vaultMount+"/data/"+m.key("other-"+optionalKey), vaulttest.M{"data": vaulttest.M{"password": "now"}})
	m.refresh("es")
	if is := m.waitUntilInSync("es", "other", 8, 8)[optionalKey]; is != "now" {
		t.Errorf("an optional entry that was added in Vault has the value %q", is)
	}
	m.forget("other-" + optionalKey)
	m.refresh("es")
	if is, ok := m.waitUntilInSync("es", "other", 8, 8)[optionalKey]; ok {
		t.Errorf("an optional entry that was removed in Vault has the value %q", is)
	}
	m.history.end(t, m.ns)
	m.whole("es")
}

// storesOnly removes the generator and the template.
func storesOnly(es *v1alpha1.ExternalSecretSpec) { es.DataFrom, es.Target.Template = nil, nil }

// TestMixedDeleted denies and deletes secrets in Vault. The object of another module reports the error, and keeps
// or removes the keys.
func TestMixedDeleted(t *testing.T) {
	t.Parallel()
	m := newMix(t, "mixed-gone")
	deletes := func(es *v1alpha1.ExternalSecretSpec) {
		storesOnly(es)
		es.Target.DeletionPolicy = v1alpha1.DeletionDelete
	}
	generates := func(es *v1alpha1.ExternalSecretSpec) {
		es.Target.Template, es.Target.DeletionPolicy = nil, v1alpha1.DeletionDelete
	}
	m.put("retain", 1)
	m.put("delete", 1)
	m.put("generate", 1)
	m.create("retain")
	m.create("delete", deletes)
	m.create("generate", generates)
	m.run(mixedModules...)
	names := []string{"retain", "delete", "generate"}
	before := map[string]*corev1.Secret{}
	for _, name := range names {
		wantReady(t, m.ns, name, v1alpha1.ReasonSecretSynced)
		before[name] = getSecret(t, m.ns, name)
	}
	unchanged := func(why, name string) {
		t.Helper()
		if diff := cmp.Diff(before[name].Data, getSecret(t, m.ns, name).Data); diff != "" {
			t.Errorf("%s: %s: the Secret has changed: -before, +now:\n%s", why, name, diff)
		}
	}

	for _, name := range names {
		// The other secret changes, so that a write despite the error is detected.
		m.putAWS(name, 2)
		admit := m.vault.Inject(vaulttest.On(vaultMount+"/data/"+m.key(name)), vaulttest.Refuse(http.StatusForbidden))
		m.refresh(name)
		m.wantFailed(name, v1alpha1.ReasonSecretSyncedError, "Denied: ", m.key(name), `VaultKV "vault"`)
		unchanged("Vault refuses", name)
		admit()
	}
	for _, name := range names {
		wantValue(t, m.ns, name, awsKey, awsValue(name, 2))
		wantReady(t, m.ns, name, v1alpha1.ReasonSecretSynced)
		before[name] = getSecret(t, m.ns, name)
	}

	for _, name := range names {
		m.putAWS(name, 3)
		m.forget(name)
		m.refresh(name)
	}
	m.wantFailed("retain", v1alpha1.ReasonSecretSyncedError, "NotFound: ", m.key("retain"), `VaultKV "vault"`)
	unchanged("the secret is deleted in Vault", "retain")
	holds := func(name string, keys ...string) {
		t.Helper()
		eventually(t, func() string {
			s := getSecret(t, m.ns, name)
			if s == nil {
				return name + ": there is no Secret"
			}
			want, got := map[string]bool{}, map[string]bool{}
			for _, k := range keys {
				want[k] = true
			}
			for k := range s.Data {
				got[k] = true
			}
			return cmp.Diff(want, got) + ready(m.get(name))
		})
	}
	holds("delete", awsKey)
	holds("generate", awsKey, passwordKey)
	wantValue(t, m.ns, "delete", awsKey, awsValue("delete", 3))

	for _, name := range names {
		shared.AWS.Delete(m.key(name))
		m.refresh(name)
	}
	wantReady(t, m.ns, "delete", v1alpha1.ReasonSecretDeleted)
	waitUntilDeleted(t, &corev1.Secret{}, m.ns, "delete")
	holds("generate", passwordKey)
	m.wantFailed("retain", v1alpha1.ReasonSecretSyncedError, "NotFound: ", m.key("retain"))
	unchanged("the secrets are deleted in both stores", "retain")

	for _, name := range names {
		m.put(name, 4)
		m.refresh(name)
	}
	m.waitUntilInSync("retain", "retain", 4, 4)
	holds("delete", awsKey, vaultKey)
	holds("generate", awsKey, vaultKey, passwordKey)
	m.history.end(t, m.ns)
	m.whole("retain")
}
