package pushtest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/push"
	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/common/store/storetest"
)

// Properties changes one property of ten, and then all of them at the same time as other writers change
// theirs. versions says how many versions a secret has.
func Properties(t *testing.T, h storetest.Harness, versions func(key string) int) {
	t.Helper()
	c, err := h.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(c) }() // Nothing depends on its end.
	w, err := store.AsWriter(c)
	if err != nil {
		t.Fatal(err)
	}
	key := store.Target{Key: h.Key("push-properties/ten")}
	defer func() { _ = h.Delete(context.WithoutCancel(t.Context()), key.Key) }() // Nothing depends on its end.
	apply := func(mark string, values map[string]string) error {
		p := push.Pusher{Kind: "test", Writer: w, Policies: push.Policies{Mark: mark, Features: w.Features()}}
		var want []push.Value
		for name, v := range values {
			want = append(want, push.Value{Property: name, Data: []byte(v)})
		}
		return p.Apply(t.Context(), key, want, nil).Err
	}
	all := map[string]string{}
	for i := range 10 {
		all[fmt.Sprint("p", i)] = "first"
	}
	if err := apply("00000000-0000-4000-8000-000000000001", all); err != nil {
		t.Fatal(err)
	}
	before := versions(key.Key)
	all["p3"] = "second"
	for range 2 {
		if err := apply("00000000-0000-4000-8000-000000000001", all); err != nil {
			t.Fatal(err)
		}
	}
	if n := versions(key.Key) - before; n != 1 {
		t.Errorf("one changed property of ten made %d versions, and the same again none", n)
	}
	wantObject(t, w, key, all)

	const writers, rounds = 8, 6
	var done sync.WaitGroup
	errs := make(chan error, writers*rounds)
	for i := range writers {
		done.Go(func() {
			for r := range rounds {
				own := map[string]string{fmt.Sprintf("w%d-%d", i, r): "theirs"}
				// Whoever keeps losing the race tells so, and is called again, as the loop does.
				err := apply(fmt.Sprintf("00000000-0000-4000-8000-%012d", i), own)
				for tries := 0; err != nil && store.ClassOf(err) == store.Conflict && tries < 100; tries++ {
					err = apply(fmt.Sprintf("00000000-0000-4000-8000-%012d", i), own)
				}
				errs <- err
			}
		})
	}
	done.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Errorf("a writer gave up: %v", err)
		}
	}
	for i := range writers {
		for r := range rounds {
			all[fmt.Sprintf("w%d-%d", i, r)] = "theirs"
		}
	}
	wantObject(t, w, key, all)
}

func wantObject(t *testing.T, w store.Writer, key store.Target, want map[string]string) {
	t.Helper()
	o, err := w.Observe(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	if err := json.Unmarshal(o.Data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("properties: -want, +got:\n%s", diff)
	}
}
