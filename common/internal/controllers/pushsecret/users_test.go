package pushsecret

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// counting lists the stores of a namespace, and PushSecrets, and counts how often.
type counting struct {
	stored

	objects []v1alpha1.PushSecret
	lists   int
}

func (c *counting) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	switch l := into.(type) {
	case *v1alpha1.PushSecretList:
		l.Items = c.objects
	case *metav1.PartialObjectMetadataList:
		c.lists++
		for _, s := range c.stored {
			if s.Namespace == o.Namespace {
				l.Items = append(l.Items, metav1.PartialObjectMetadata{ObjectMeta: s.ObjectMeta})
			}
		}
	}
	return nil
}

// TestUsersListOnce removes many remote secrets while others push to stores that labels choose. Those stores are listed once.
func TestUsersListOnce(t *testing.T) {
	own := storeOf("n", "store", "b")
	reader := &counting{stored: stored{own}}
	const secrets = 20
	for i := range 10 {
		ps := v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))}}
		ps.Spec.Selector.Secret = &v1alpha1.PushSecretSelector{Name: "source"}
		ps.Spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "FakeStore", LabelSelector: &metav1.LabelSelector{}}}
		for n := range secrets {
			ps.Spec.Data = append(ps.Spec.Data, v1alpha1.PushData{Match: v1alpha1.PushMatch{SecretKey: "k", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: fmt.Sprint(n)}}})
		}
		reader.objects = append(reader.objects, ps)
	}
	routes, err := resolve.NewResolver(reader, simulation.Scheme(), fake.NewServer().Kinds(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	k, ok := routes.Serves(&v1alpha1.StoreRef{Kind: "FakeStore", Name: "store"})
	if !ok {
		t.Fatal("the Kind is not served")
	}
	u := users{stores: storeReader{client: reader, routes: routes}, cache: reader, memory: &memory{}, places: &places{}}
	d := &destination{route: k, store: own, status: v1alpha1.PushStoreStatus{APIVersion: fakev1.Group + "/v1alpha1", Kind: "FakeStore", Name: "store"}}
	going := &reader.objects[0]
	others := u.others(going, d, d.backend("n"))
	want := make([]push.Use, 1)
	for n := range secrets {
		used, err := others.InUse(t.Context(), fmt.Sprint(n), "id")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, used); diff != "" {
			t.Errorf("%d is used: -want, +got:\n%s", n, diff)
		}
	}
	if reader.lists != 1 {
		t.Errorf("%d lists of stores, want 1", reader.lists)
	}
}
