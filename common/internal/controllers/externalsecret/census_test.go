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

// TestCensusIsBounded looks at a Secret on which somebody has put thousands of marks of objects that do not exist.
func TestCensusIsBounded(t *testing.T) {
	asked := 0
	none := &test.MockClient{MockGet: func(context.Context, client.ObjectKey, client.Object) error { return kerrors.NewNotFound(secrets, "x") }}
	live := &test.MockClient{MockGet: func(context.Context, client.ObjectKey, client.Object) error {
		asked++
		return kerrors.NewNotFound(secrets, "x")
	}}
	secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "db", Annotations: map[string]string{}}}
	for i := range 4000 {
		name := fmt.Sprint("m", i)
		mark, err := json.Marshal(policy.Mark{Name: name, UID: "u"})
		if err != nil {
			t.Fatal(err)
		}
		secret.Annotations[target.MarkKey(name)] = string(mark)
	}
	c := &census{cache: none, live: live, es: externalSecret()}
	self := target.Identity{Name: "db", UID: "uid", Exclusive: true}
	if got := target.Observe(t.Context(), secret, self, c); got.Rival == "" {
		t.Error("Observe(): no rival, though not all could be asked for: nothing is taken from who may be alive")
	}
	contest := c.contest(t.Context(), secret)
	for name := range target.Marks(secret.Annotations) {
		contest.Dead(target.Manager(name))
	}
	if asked > maxLookups {
		t.Errorf("%d requests to the API server in one pass, want at most %d", asked, maxLookups)
	}
}
