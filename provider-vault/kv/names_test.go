package kv

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// ordinary are names that Vault stores as they are. KV v1 itself refuses two dots in a row.
var ordinary = []string{
	"a.", "a...b.", "a..b", "..a", "a..", "x/..a/b", "a b", " a", "a ", "a%b", "a?b", "a#b", "a;b", "a:b", "a+b", "a&b=c", "ключ", "a[0]", `a\b`, "a*", "~a", "a@b", "a,b", `"a"`, "'a'", "<a>", "a|b", "{a}", "data/a", "metadata/a", "a%2fb", "%2e%2e%2fb",
}

// TestOrdinaryNames pushes, reads, finds and deletes names, and compares with what Vault accepts.
func TestOrdinaryNames(t *testing.T) {
	for engine, h := range map[string]conformance.Harness{"v2": harness(t), "v1": harnessV1(t)} {
		for _, name := range ordinary {
			t.Run(engine+"/"+name, func(t *testing.T) { pushesAndReads(t, h, "names/"+name) })
		}
	}
}

func pushesAndReads(t *testing.T, h conformance.Harness, key string) {
	ctx, c := t.Context(), connected(t, h)
	target := provider.Target{Key: key}
	w, err := c.Create(ctx, target, []byte(`{"a":"v"}`), "m")
	if refused := h.Put(ctx, key, []byte(`{"a":"v"}`), nil); refused != nil {
		if provider.ClassOf(err) != provider.Invalid {
			t.Errorf("Vault refuses the name (%v); Create: %v, want Invalid", refused, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("Vault accepts the name; Create: %v", err)
	}
	v, err := c.Get(ctx, provider.Ref{Key: key})
	if err != nil || string(v.Data) != `{"a":"v"}` || w.Version == "" {
		t.Errorf("Get: %s, %v", v.Data, err)
	}
	var found []string
	for v, err := range c.Find(ctx, provider.Query{Path: "names"}) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, v.Key)
	}
	if !slices.Contains(found, key) {
		t.Errorf("find has no %q: %q", key, found)
	}
	seen, err := c.Observe(ctx, target)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(ctx, target, seen); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(ctx, provider.Ref{Key: key}); !provider.IsNotFound(err) {
		t.Errorf("after Delete: %v, want NotFound", err)
	}
}

func connected(t *testing.T, h conformance.Harness) *Client {
	t.Helper()
	c, err := h.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Close(c) }) // The test does not depend on a clean stop.
	return c.(*Client)
}

// TestNamesThatCannotBeUsed lists names that no request can have. They fail only a find that selects them.
func TestNamesThatCannotBeUsed(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "good", `{"a":"v"}`)
	c := connect(t, appRole(srv.URL), secrets)
	for _, odd := range []string{"..", ".", "../", "odd\n", "odd\x00", "odd//", "odd\u200b/"} {
		t.Run(odd, func(t *testing.T) {
			list, err := json.Marshal(M{"data": M{"keys": []string{"good", odd}}})
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Inject(func(c vaulttest.Call) bool { return c.Path == "secret/metadata" || c.Path == "secret/metadata/" }, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(list) // The client checks the answer.
			})()
			got, err := findAll(t.Context(), c, provider.Query{Name: regexp.MustCompile("^good$")})
			if diff := cmp.Diff([]string{"good"}, got); diff != "" || err != nil {
				t.Errorf("a find that does not select the name: error %v; -want, +got:\n%s", err, diff)
			}
			if _, err := findAll(t.Context(), c, provider.Query{}); provider.ClassOf(err) != provider.Invalid {
				t.Errorf("a find that selects it: error %v, want Invalid", err)
			}
		})
	}
}

func findAll(ctx context.Context, c *Client, q provider.Query) (keys []string, err error) {
	for v, err := range c.Find(ctx, q) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, v.Key)
	}
	return keys, nil
}
