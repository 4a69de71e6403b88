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
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// counting serves the stores of a namespace, and PushSecrets, and counts the lists.
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

// TestStoresAreListedOnce removes many remote secrets while other objects push to stores selected by labels. The stores must
// be listed once.
func TestStoresAreListedOnce(t *testing.T) {
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
	others := u.others(going, d, d.backend("n"), false)
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

// TestSuccessors checks which objects may take a remote secret over.
func TestSuccessors(t *testing.T) {
	own, elsewhere := storeOf("n", "store", "b"), storeOf("n", "elsewhere", "c")
	reader := &counting{stored: stored{own, elsewhere}}
	object := func(name, store, property string, policy v1alpha1.PushDeletionPolicy, entry *v1alpha1.PushEntryStatus) {
		ps := v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
		ps.Spec.Selector.Secret = &v1alpha1.PushSecretSelector{Name: "source"}
		ps.Spec.DeletionPolicy = policy
		ps.Spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "FakeStore", Name: store}}
		ps.Spec.Data = []v1alpha1.PushData{{Match: v1alpha1.PushMatch{SecretKey: "k", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: "db", Property: property}}}}
		if entry != nil {
			entry.RemoteKey, entry.Property = "db", property
			ps.Status.Stores = []v1alpha1.PushStoreStatus{{APIVersion: fakev1.Group + "/v1alpha1", Kind: "FakeStore", Name: store, Entries: []v1alpha1.PushEntryStatus{*entry}}}
		}
		reader.objects = append(reader.objects, ps)
	}
	const deletes, none = v1alpha1.PushDeletionDelete, v1alpha1.PushDeletionNone
	seen := func(id string) *v1alpha1.PushEntryStatus { return &v1alpha1.PushEntryStatus{ID: id, Owner: "going"} }
	object("going", "store", "", deletes, seen("id"))
	object("wishes", "store", "w", deletes, nil)
	object("seen", "store", "s", deletes, seen("id"))
	object("keeps", "store", "k", none, seen("id"))
	object("own-server", "elsewhere", "o", deletes, seen("id"))
	routes, err := resolve.NewResolver(reader, simulation.Scheme(), fake.NewServer().Kinds(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	k, ok := routes.Serves(&v1alpha1.StoreRef{Kind: "FakeStore", Name: "store"})
	if !ok {
		t.Fatal("the Kind is not served")
	}
	identities := &places{}
	u := users{stores: storeReader{client: reader, routes: routes}, cache: reader, memory: &memory{}, places: identities}
	d := &destination{route: k, store: own, status: v1alpha1.PushStoreStatus{APIVersion: fakev1.Group + "/v1alpha1", Kind: "FakeStore", Name: "store"}}
	others := u.others(&reader.objects[0], d, d.backend("n"), false)
	check := func(reason string, want ...push.Use) {
		t.Helper()
		used, err := others.InUse(t.Context(), "db", "id")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, used); diff != "" {
			t.Errorf("%s\nInUse(...): -want, +got:\n%s", reason, diff)
		}
	}
	check("Objects that have pushed there come first. A tenant's own server can report any ID: its use keeps the secret, but does not take it over.",
		push.Use{Property: "s", Successor: "seen"}, push.Use{Property: "k"}, push.Use{Property: "o"}, push.Use{Property: "w"})
	for _, s := range []*fakev1.FakeStore{own, elsewhere} {
		identities.learn(t.Context(), s, "n", &somewhere{is: provider.Identity{Place: "here"}})
	}
	check("It takes the secret over after its client has reported the same identity.",
		push.Use{Property: "s", Successor: "seen"}, push.Use{Property: "k"}, push.Use{Property: "o", Successor: "own-server"}, push.Use{Property: "w"})
}
