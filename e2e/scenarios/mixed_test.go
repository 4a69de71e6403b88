//go:build long

package scenarios

import (
	"net/http"
	"testing"

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
