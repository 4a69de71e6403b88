package kv

import (
	"strconv"
	"testing"

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

func TestPushProperties(t *testing.T) {
	h := harness(t)
	pushtest.Properties(t, h, func(key string) int {
		c, err := h.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close(c) }() // Nothing depends on its end.
		v, err := c.Get(t.Context(), store.Ref{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(v.Version) // KV v2 counts them.
		if err != nil {
			t.Fatal(err)
		}
		return n
	})
}
