package refresh

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestPublish(t *testing.T) {
	b, got := &Bus{}, [2][]string{}
	On(b, func(_ context.Context, e Event) { got[0] = append(got[0], e.Store.Name) })
	On(b, func(_ context.Context, m Missed) { got[1] = append(got[1], m.By) })
	for _, e := range []any{Event{Store: types.NamespacedName{Name: "a"}}, Missed{By: "b"}, Event{Store: types.NamespacedName{Name: "c"}}} {
		b.Publish(t.Context(), e)
	}
	if diff := cmp.Diff([2][]string{{"a", "c"}, {"b"}}, got); diff != "" {
		t.Errorf("Publish(): each subscriber gets what it wants, in order: -want, +got:\n%s", diff)
	}
}
