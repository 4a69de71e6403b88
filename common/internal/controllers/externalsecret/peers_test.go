package externalsecret

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// TestPeersAreBounded reads a Secret that carries the maximum number of marks, all of ExternalSecrets that do not
// exist, and thousands of field managers.
func TestPeersAreBounded(t *testing.T) {
	asked := 0
	none := &test.MockClient{MockGet: func(context.Context, client.ObjectKey, client.Object) error { return kerrors.NewNotFound(secrets, "x") }}
	live := &test.MockClient{MockGet: func(context.Context, client.ObjectKey, client.Object) error {
		asked++
		return kerrors.NewNotFound(secrets, "x")
	}}
	secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "db", Annotations: map[string]string{}}}
	for i := range target.MaxMarks {
		name := fmt.Sprint("m", i)
		mark, err := json.Marshal(policy.Mark{Name: name, UID: "u"})
		if err != nil {
			t.Fatal(err)
		}
		secret.Annotations[target.MarkKey(name)] = string(mark)
	}
	c := &peers{cache: none, live: live, es: externalSecret()}
	self := target.Identity{Name: "db", UID: "uid", Exclusive: true}
	if got := target.Observe(t.Context(), secret, self, c); got.OtherWriter != "" {
		t.Errorf("Observe(): the rival %q does not exist", got.OtherWriter)
	}
	others, deleted := c.others(t.Context(), secret), 0
	for i := range 4000 {
		if others.ManagerDeleted(target.Manager(fmt.Sprint("x", i))) {
			deleted++
		}
	}
	if want := max(0, maxLookups-target.MaxMarks); deleted != want {
		t.Errorf("%d count as dead, want %d: an ExternalSecret that may exist must keep its keys", deleted, want)
	}
	if asked > maxLookups {
		t.Errorf("%d requests to the API server in one pass, want at most %d", asked, maxLookups)
	}
}
