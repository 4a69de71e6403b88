package refresh

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestPublish(t *testing.T) {
	b := &Bus{}
	Source[string](b, func(e Event) bool { return e.Namespace == "" }, nil)
	Source[string](b, func(e Event) bool { return e.Namespace != "" }, nil)
	for _, e := range []Event{{Store: types.NamespacedName{Name: "a"}}, {Store: types.NamespacedName{Name: "b"}, Namespace: "shop"}, {Store: types.NamespacedName{Name: "c"}}} {
		b.Publish(e)
	}
	var got [][]string
	for _, s := range b.subs {
		close(s.events)
		var names []string
		for e := range s.events {
			names = append(names, e.Object.Store.Name)
		}
		got = append(got, names)
	}
	if diff := cmp.Diff([][]string{{"a", "c"}, {"b"}}, got); diff != "" {
		t.Errorf("Publish(): each controller gets what it wants, in order: -want, +got:\n%s", diff)
	}
}
