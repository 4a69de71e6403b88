package referrers

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// indexedReader is a cache of ExternalSecrets with readIndex. It counts the objects that it returns, each of which is examined.
type indexedReader struct {
	client.Reader

	referrers *Referrers
	objects   []v1alpha1.ExternalSecret
	examined  int
}

func (c *indexedReader) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	list, ok := into.(*v1alpha1.ExternalSecretList)
	if !ok {
		return fmt.Errorf("unexpected %T", into)
	}
	for _, es := range c.objects {
		key, exact := o.FieldSelector.RequiresExactMatch(readIndex)
		if exact && slices.Contains(c.referrers.readKeys(&es), key) && (o.Namespace == "" || o.Namespace == es.Namespace) {
			list.Items = append(list.Items, es)
		}
	}
	c.examined += len(list.Items)
	return nil
}

// TestReading has a source report a secret that one object reads and one finds, next to 500 objects that find secrets of stores with the same
// name in other namespaces. Those are not examined.
func TestReading(t *testing.T) {
	r := fakeReferrers(t)
	c := &indexedReader{referrers: r}
	r.cache = c
	add := func(namespace, name string, from v1alpha1.ExternalSecretSpec) {
		from.StoreRef = &v1alpha1.StoreRef{Kind: "FakeStore", Name: "store"}
		c.objects = append(c.objects, v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}, Spec: from})
	}
	reads := v1alpha1.ExternalSecretSpec{Data: []v1alpha1.DataEntry{{SecretKey: "k", RemoteRef: v1alpha1.RemoteRef{Key: "db"}}}}
	finds := v1alpha1.ExternalSecretSpec{DataFrom: []v1alpha1.DataFromEntry{{Find: &v1alpha1.Find{Name: &v1alpha1.FindName{RegExp: "d.*"}}}}}
	add("shop", "reads", reads)
	add("shop", "finds", finds)
	for i := range 500 {
		add(fmt.Sprint("elsewhere-", i%5), fmt.Sprint("finds-", i), finds)
	}
	i := slices.IndexFunc(r.Kinds, func(k resolve.Route) bool { return k.GVK.Kind == "FakeStore" })
	for name, tc := range map[string]struct{ reason, namespace string }{
		"Namespaced": {"A source of the namespace reaches only its objects.", "shop"},
		"Cluster":    {"A cluster source examines the objects that read the key, and those that search a store of the change.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.examined = 0
			var got []string
			for _, es := range r.Reading(t.Context(), r.Kinds[i], &refresh.Change{
				Kind: r.Kinds[i].Kind, Secrets: []refresh.Secret{{Keys: []string{"db"}, MayBeOf: func(string) bool { return true }}},
				Stores: map[types.NamespacedName]bool{{Namespace: "shop", Name: "store"}: true}, Namespace: tc.namespace, Admits: func(string) bool { return true },
			}) {
				got = append(got, string(es.UID))
			}
			slices.Sort(got)
			if diff := cmp.Diff([]any{[]string{"shop/finds", "shop/reads"}, 2}, []any{got, c.examined}); diff != "" {
				t.Errorf("%s\nobjects to compare, and the number of those examined: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
