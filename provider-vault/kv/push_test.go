package kv

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/push"
	"github.com/direct-secrets/direct-secrets/common/push/pushtest"
	"github.com/direct-secrets/direct-secrets/common/store"
)

func TestPushModel(t *testing.T) { pushtest.Model(t, harness(t)) }

func TestPushModelV1(t *testing.T) { pushtest.Model(t, harnessV1(t)) }

// What is in step is not written again, whatever Vault makes of its spelling.
func TestPushAgain(t *testing.T) {
	srv, secrets := writable(t, "secret/*")
	c := connect(t, appRole(srv.URL), secrets)
	p := push.Pusher{Kind: "VaultKV", Writer: c, Policies: push.Policies{Mark: mark, Features: c.Features()}}
	cases := map[string]struct {
		reason string
		want   push.Value
	}{
		"Whole":    {"Vault escapes what HTML does.", push.Value{Data: []byte(`{"a":"<&>żółć𝕏","b":"x\n"}`)}},
		"Property": {"And in properties.", push.Value{Property: "p", Data: []byte("<&>\u2028\"\\")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			target := store.Target{Key: name}
			first := p.Apply(t.Context(), target, []push.Value{tc.want}, nil)
			again := p.Apply(t.Context(), target, []push.Value{tc.want}, first.Entries)
			if first.Err != nil || !first.Wrote || again.Err != nil || again.Wrote {
				t.Errorf("%s first %+v, then %+v", tc.reason, first, again)
			}
		})
	}
}

// Eight objects push to one secret at the same time, as eight workers do: who comes too late is tried again.
func TestPushersShareOneSecret(t *testing.T) {
	const pushers, each = 8, 50
	srv, secrets := writable(t, "secret/*")
	c := connect(t, appRole(srv.URL), secrets)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	want := M{}
	var all sync.WaitGroup
	var late atomic.Int64
	for i := range pushers {
		for n := range each {
			want[fmt.Sprintf("p%d-%d", i, n)] = fmt.Sprint(i, n)
		}
		p := push.Pusher{Kind: "VaultKV", Writer: c, Policies: push.Policies{Mark: fmt.Sprint("pusher-", i), Features: c.Features()}}
		all.Go(func() {
			for n := range each {
				v := push.Value{Property: fmt.Sprintf("p%d-%d", i, n), Data: []byte(fmt.Sprint(i, n))}
				o := p.Apply(ctx, shopDB, []push.Value{v}, nil)
				for ; store.ClassOf(o.Err) == store.Conflict && o.Err != nil; late.Add(1) {
					o = p.Apply(ctx, shopDB, []push.Value{v}, nil)
				}
				if o.Err != nil {
					t.Errorf("%s: %v", v.Property, o.Err)
				}
			}
		})
	}
	all.Wait()
	d := srv.Do(http.MethodGet, "secret/data/shop/db", nil)
	if diff := cmp.Diff(want, d["data"]); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if v := d["metadata"].(M)["version"]; v != float64(pushers*each) {
		t.Errorf("%v versions, want one for each of the %d properties", v, pushers*each)
	}
	t.Logf("%d were tried again by the caller", late.Load())
}
