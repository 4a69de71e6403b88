package kit

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestMemory(t *testing.T) {
	var dropped []*int
	o := &Memory[types.NamespacedName, int]{Drop: func(m *int) { dropped = append(dropped, m) }}
	key := types.NamespacedName{Namespace: "shop", Name: "db"}
	o.Forget(key)
	if o.Peek(key) != nil {
		t.Error("Peek(): a memory of an object without a Get")
	}
	first, replaced := o.Get(key, "one")
	if again, _ := o.Get(key, "one"); again != first || o.Peek(key) != first || replaced {
		t.Error("Get(): the memory of an object is not kept")
	}
	second, replaced := o.Get(key, "two")
	if second == first || !replaced {
		t.Error("Get(): a recreated object has the memory of its predecessor")
	}
	*second = 2
	if got := o.Keys(func(m *int) bool { return *m == 2 }); len(got) != 1 || got[0] != key || o.Keys(func(m *int) bool { return *m == 1 }) != nil {
		t.Errorf("Keys(): %v, want those that match", got)
	}
	o.Forget(key)
	o.Forget(key)
	if o.Peek(key) != nil {
		t.Error("Peek(): a memory of a forgotten object")
	}
	if len(dropped) != 2 || dropped[0] != first || dropped[1] != second {
		t.Errorf("Drop was called with %d memories, want the first and the second", len(dropped))
	}
}

func TestMemoryNew(t *testing.T) {
	m := &Memory[string, int]{New: func(_ types.UID, old *int) *int {
		if old != nil {
			return old
		}
		return new(7)
	}}
	first, _ := m.Get("db", "one")
	if again, replaced := m.Get("db", "two"); *first != 7 || again != first || !replaced {
		t.Errorf("Get(): New decides what an object that was created again remembers; got %d, replaced %t", *again, replaced)
	}
	if keys := m.Keys(nil); len(keys) != 1 {
		t.Errorf("Keys(nil): %v, want all", keys)
	}
}
