package memory

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestObjects(t *testing.T) {
	var dropped []*int
	o := &Objects[int]{Drop: func(m *int) { dropped = append(dropped, m) }}
	key := types.NamespacedName{Namespace: "shop", Name: "db"}
	o.Forget(key)
	if o.Peek(key) != nil {
		t.Error("Peek(): an object that nobody asked for")
	}
	first, replaced := o.Get(key, "one")
	if again, _ := o.Get(key, "one"); again != first || o.Peek(key) != first || replaced {
		t.Error("Get(): the memory of an object is not kept")
	}
	second, replaced := o.Get(key, "two")
	if second == first || !replaced {
		t.Error("Get(): an object that was made anew begins with the memory of the old one")
	}
	*second = 2
	if got := o.Keys(func(m *int) bool { return *m == 2 }); len(got) != 1 || got[0] != key || o.Keys(func(m *int) bool { return *m == 1 }) != nil {
		t.Errorf("Keys(): %v, want those whose memory is as asked", got)
	}
	o.Forget(key)
	o.Forget(key)
	if o.Peek(key) != nil {
		t.Error("Peek(): an object that was forgotten")
	}
	if len(dropped) != 2 || dropped[0] != first || dropped[1] != second {
		t.Errorf("Drop was called with %d memories, want the first and the second", len(dropped))
	}
}
