package awstest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/push"
	"github.com/direct-secrets/direct-secrets/common/store"
)

// RunPush has eight objects push fifty properties each to one secret, all at the same time and a few in each
// write. None may be lost.
func RunPush(t *testing.T, c store.Client, target store.Target) {
	t.Helper()
	const objects, properties = 8, 50
	w, err := store.AsWriter(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	want := map[string]string{}
	var all sync.WaitGroup
	for i := range objects {
		p := push.Pusher{Kind: "stress", Writer: w, Policies: push.Policies{
			Update: common.UpdateReplace, Adoption: common.AdoptionAdopt, Mark: fmt.Sprint("object-", i), Features: w.Features(),
		}}
		var values []push.Value
		for j := range properties {
			name := fmt.Sprintf("%d-%02d", i, j)
			want[name] = fmt.Sprint(i * j)
			values = append(values, push.Value{Property: name, Data: []byte(want[name])})
		}
		all.Go(func() {
			for some := range slices.Chunk(values, 5) {
				if err := inStep(ctx, &p, target, some); err != nil {
					t.Errorf("properties from %s on: %v", some[0].Property, err)
				}
			}
		})
	}
	all.Wait()

	o, err := w.Observe(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	if err := json.Unmarshal(o.Data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Of many objects that write properties of one secret at the same time, none loses one: -want, +got:\n%s", diff)
	}
}

// inStep pushes properties until they are written, as a controller would do it.
func inStep(ctx context.Context, p *push.Pusher, t store.Target, want []push.Value) error {
	for {
		out := p.Apply(ctx, t, want, nil)
		if store.ClassOf(out.Err) != store.Conflict || ctx.Err() != nil || out.Err == nil {
			return out.Err
		}
	}
}
