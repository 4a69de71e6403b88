package referrers

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

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
	// keys are those of the index.
	keys map[types.UID][]string
}

func (c *indexedReader) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	list, ok := into.(*v1alpha1.ExternalSecretList)
	if !ok {
		return fmt.Errorf("unexpected %T", into)
	}
	for _, es := range c.objects {
		if _, known := c.keys[es.UID]; !known {
			c.keys[es.UID] = c.referrers.readKeys(&es)
		}
		key, exact := o.FieldSelector.RequiresExactMatch(readIndex)
		if exact && slices.Contains(c.keys[es.UID], key) && (o.Namespace == "" || o.Namespace == es.Namespace) {
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
	c := &indexedReader{referrers: r, keys: map[types.UID][]string{}}
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
				Stores: map[types.NamespacedName]bool{{Namespace: "shop", Name: "store"}: true}, Namespace: tc.namespace, Admits: func(string) bool { return true }, Matching: &refresh.Matching{},
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

// find is the spec of an object that searches a cluster store by several names.
func find(names ...string) v1alpha1.ExternalSecretSpec {
	spec := v1alpha1.ExternalSecretSpec{StoreRef: &v1alpha1.StoreRef{Kind: "ClusterFakeStore", Name: "store"}}
	for _, name := range names {
		spec.DataFrom = append(spec.DataFrom, v1alpha1.DataFromEntry{Find: &v1alpha1.Find{Name: &v1alpha1.FindName{RegExp: name}}})
	}
	return spec
}

// TestReadKeys checks that the index compiles no expression, while which the cache would be locked: it has objects with invalid ones.
func TestReadKeys(t *testing.T) {
	got := fakeReferrers(t).readKeys(&v1alpha1.ExternalSecret{Spec: find("(", "[")})
	if diff := cmp.Diff([]string{"ClusterFakeStore\x00\x00store"}, got); diff != "" {
		t.Errorf("readKeys() of an object with invalid expressions: -want, +got:\n%s", diff)
	}
}

// TestReadingFinds has a cluster source report secrets that objects find by name.
func TestReadingFinds(t *testing.T) {
	hostile := make([]string, 100)
	for i := range hostile {
		hostile[i] = fmt.Sprintf(`(?i)%d[Ā-\x{7fff}]`, i)
	}
	cases := map[string]struct {
		reason string
		// hostile is the number of objects of another namespace with expressions that take long.
		hostile int
		spent   string
		names   []string
		want    []bool
	}{
		"Matches":       {"Objects whose expressions match are found, others are not.", 0, "", []string{"^d", "^e"}, []bool{true, false}},
		"Invalid":       {"An object with an invalid expression is not found by it.", 0, "", []string{"("}, []bool{false}},
		"Spent":         {"If the time of the namespace is spent, no event is lost: an expression that is not compared counts as one that matches.", 0, "shop", []string{"^d", "^e"}, []bool{true, true}},
		"SpentByOthers": {"The time of another namespace does not count.", 0, "hostile", []string{"^d", "^e"}, []bool{true, false}},
		"Hostile":       {"Next to 200 objects with 100 such expressions each, an event is handled within 2 s.", 200, "", []string{"^d", "^e"}, []bool{true, false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := fakeReferrers(t)
			c := &indexedReader{referrers: r, keys: map[types.UID][]string{}}
			r.cache = c
			add := func(namespace string, i int, spec v1alpha1.ExternalSecretSpec) {
				c.objects = append(c.objects, v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(namespace, i))}, Spec: spec})
			}
			for i := range tc.hostile {
				add("hostile", i, find(hostile...))
			}
			for i, name := range tc.names {
				add("shop", i, find(name))
			}
			k := r.Kinds[slices.IndexFunc(r.Kinds, func(k resolve.Route) bool { return k.GVK.Kind == "ClusterFakeStore" })]
			change := &refresh.Change{Kind: k.Kind, Stores: map[types.NamespacedName]bool{{Name: "store"}: true}, Admits: func(string) bool { return true }, Matching: &refresh.Matching{}}
			for i := range 10 {
				change.Secrets = append(change.Secrets, refresh.Secret{Keys: []string{fmt.Sprint("db", i)}, MayBeOf: func(string) bool { return true }})
			}
			change.Matching.Spend(tc.spent, time.Minute)
			start := time.Now()
			found := r.Reading(t.Context(), k, change)
			took := time.Since(start)
			got := make([]bool, len(tc.names))
			for i := range tc.names {
				got[i] = slices.ContainsFunc(found, func(es *v1alpha1.ExternalSecret) bool { return es.UID == types.UID(fmt.Sprint("shop", i)) })
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || took > 2*time.Second {
				t.Errorf("%s\nReading(): after %s: -want, +got:\n%s", tc.reason, took, diff)
			}
			t.Logf("Reading() took %s", took)
		})
	}
}
