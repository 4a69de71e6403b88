package client

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/emulator"
)

// TestTitleStored creates an item that gets another title. It would not be found, and each push would create one more.
func TestTitleStored(t *testing.T) {
	srv := start(t)
	c := client(t, srv)
	id := fmt.Sprintf("%026d", 2) // The vault has the first one.
	srv.Inject(emulator.Fault{Call: "CreateItem", Body: fmt.Appendf(nil, `{"id":%q,"title":"DB","version":1,"vault":{"id":%q}}`, id, srv.VaultID(vaultName))})
	_, err := c.Create(soon(t), db, []byte(`{"a":"1"}`), mark)
	fails(t, "The key is named.", err, provider.Invalid, `item "db": 1Password stored it with another title`)
	if diff := cmp.Diff(0, len(srv.Items(vaultName))); diff != "" {
		t.Errorf("No item is left: -want, +got:\n%s", diff)
	}
}
