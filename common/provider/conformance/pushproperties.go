package conformance

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// PushProperties changes one of ten properties, which must create one version. Then many objects push their
// properties to a secret that does not exist yet, each property once, so that no later push can restore a lost one.
// versions returns the number of versions of a secret.
func PushProperties(t *testing.T, h Harness, versions func(key string) int) {
	t.Helper()
	_, w := h.connectWriter(t)
	spell := h.Key
	if spell == nil {
		spell = func(name string) string { return name }
	}
	key, raced := provider.Target{Key: spell("push-properties/ten")}, provider.Target{Key: spell("push-properties/raced")}
	store := fake.Link("test", w)
	apply := func(key provider.Target, mark string, values map[string]string) error {
		p := push.Pusher{Store: store, Policies: push.Policies{Mark: mark, Features: w.Features()}}
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
	if err := apply(key, "00000000-0000-4000-8000-000000000001", all); err != nil {
		t.Fatal(err)
	}
	before := versions(key.Key)
	all["p3"] = "second"
	for range 2 {
		if err := apply(key, "00000000-0000-4000-8000-000000000001", all); err != nil {
			t.Fatal(err)
		}
	}
	if n := versions(key.Key) - before; n != 1 {
		t.Errorf("one changed property of ten made %d versions in two pushes, want 1", n)
	}
	wantObject(t, w, key, all)

	const writers, rounds = 8, 12
	all = map[string]string{}
	var done sync.WaitGroup
	for i := range writers {
		for r := range rounds {
			all[property(i, r)] = "theirs"
		}
		done.Go(func() {
			mark := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
			for r := range rounds {
				own := map[string]string{property(i, r): "theirs"}
				err := apply(raced, mark, own)
				for err != nil && provider.ClassOf(err) == provider.Conflict && t.Context().Err() == nil {
					err = apply(raced, mark, own) // The loser of a race gets a Conflict and pushes again, like the controller.
				}
				if err != nil {
					t.Errorf("%s: %v", property(i, r), err)
				}
			}
		})
	}
	done.Wait()
	wantObject(t, w, raced, all)
}

func property(writer, round int) string { return fmt.Sprintf("w%d-%d", writer, round) }

func wantObject(t *testing.T, w provider.Writer, key provider.Target, want map[string]string) {
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
