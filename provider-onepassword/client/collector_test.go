package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A collector is a host that records the requests that it gets.
type collector struct {
	*httptest.Server

	mu  sync.Mutex
	got []string
}

// collect starts a collector, which answers by path.
func collect(t *testing.T, answers map[string]string) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.got = append(c.got, fmt.Sprintf("%s %s %s cookie=%q", r.Method, r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("Cookie")))
		answer, ok := answers[r.URL.Path]
		switch location, redirects := strings.CutPrefix(answer, "to "); {
		case redirects:
			http.Redirect(w, r, location, http.StatusTemporaryRedirect)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Header().Set("Set-Cookie", "session=c4n4ry")
			_, _ = w.Write([]byte(answer)) // The client might have closed the connection.
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// requests returns what the collector got.
func (c *collector) requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.got...)
}

// TestCollector connects to a host that tries to get the token sent to another host, and records what each of them gets.
func TestCollector(t *testing.T) {
	vaultID, itemID, fileID := strings.Repeat("v", 26), strings.Repeat("i", 26), strings.Repeat("f", 26)
	const vaults = "/v1/vaults"
	items := vaults + "/" + vaultID + "/items"
	item := items + "/" + itemID
	content := item + "/files/" + fileID + "/content"
	with := func(more map[string]string) map[string]string {
		all := map[string]string{vaults: `[{"id":"` + vaultID + `","name":"` + vaultName + `"}]`, items: `[{"id":"` + itemID + `","title":"db"}]`}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	get := func(path string) string { return "GET " + path + ` Bearer test-token cookie=""` }
	cases := map[string]struct {
		reason  string
		answers func(other string) map[string]string
		want    []string
		ok      bool
	}{
		"Redirect": {"A redirect to another host is not followed.", func(other string) map[string]string { return map[string]string{vaults: "to " + other + vaults} },
			[]string{get(vaults)}, false},
		"RedirectItem": {"This holds for an item, too.", func(other string) map[string]string { return with(map[string]string{item: "to " + other + item}) },
			[]string{get(vaults), get(items), get(item)}, false},
		"ContentPath": {"The content of a file is read from the host of the store, and not from the path in the answer.", func(other string) map[string]string {
			return with(map[string]string{
				item:    `{"id":"` + itemID + `","title":"db","version":1,"vault":{"id":"` + vaultID + `"},"files":[{"id":"` + fileID + `","name":"a","size":1,"content_path":"` + other + `/x"}]}`,
				content: "x",
			})
		}, []string{get(vaults), get(items), get(item), get(content)}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			other := collect(t, nil)
			host := collect(t, tc.answers(other.URL))
			c, err := Connect(t.Context(), storeOf(host.URL), credentials)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = provider.Close(c) }) // The hosts have closed the connections.
			if _, err := c.Get(soon(t), provider.Ref{Key: "db"}); (err == nil) != tc.ok {
				t.Errorf("%s\nthe error is %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, host.requests()); diff != "" {
				t.Errorf("%s\nrequests: -want, +got:\n%s", tc.reason, diff)
			}
			if got := other.requests(); len(got) > 0 {
				t.Errorf("%s\nanother host got %v", tc.reason, got)
			}
		})
	}
}
