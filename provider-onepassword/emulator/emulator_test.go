package emulator

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// call makes a request, and returns the status and the body.
func call(t *testing.T, srv *Server, method, path, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, srv.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.Body.Close() != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(raw))
}

func started(t *testing.T, opts ...Option) *Server {
	t.Helper()
	srv, err := Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

func TestCalls(t *testing.T) {
	at := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	srv := started(t, WithVault("bank"), WithClock(func() time.Time { return at }))
	srv.AddToken("bank-only", "bank")
	v := srv.VaultID(DefaultVault)
	items := "/v1/vaults/" + v + "/items"
	id := srv.Add(DefaultVault, Item{Title: "Db", Tags: []string{"prod"}, Fields: []Field{{ID: "password", Value: "x"}}, Files: []File{{ID: "f", Name: "a", Content: []byte("data")}}})
	filter := func(f string) string { return items + "?filter=" + url.QueryEscape(f) }
	cases := []struct {
		reason, method, path, token, body string
		status                            int
		want                              string // a part of the body
	}{
		{"Vaults are listed.", "GET", "/v1/vaults", DefaultToken, "", 200, `"name":"shop","items":1},{`},
		{"A token sees its vaults.", "GET", "/v1/vaults", "bank-only", "", 200, `[{"id":"00000000000000000000000002","name":"bank","items":0}]`},
		{"Vaults are filtered by name.", "GET", "/v1/vaults?filter=" + url.QueryEscape(`name eq "bank"`), DefaultToken, "", 200, `[{"id":"00000000000000000000000002"`},
		{"One vault is read.", "GET", "/v1/vaults/" + v, DefaultToken, "", 200, `"name":"shop"`},
		{"An unknown token is refused.", "GET", "/v1/vaults", "none", "", 401, `"status":401`},
		{"A token for another vault is refused.", "GET", items, "bank-only", "", 403, `"status":403`},
		{"A missing vault is not found.", "GET", "/v1/vaults/none/items", DefaultToken, "", 404, `"message":"vault none not found"`},
		{"A filter ignores case, and a list has no fields.", "GET", filter(`title eq "DB"`), DefaultToken, "", 200, `[{"id":"` + id + `","title":"Db","vault":{"id":"` + v + `"},"category":"","tags":["prod"],"version":1,"createdAt":"2026-11-27T00:00:00Z","updatedAt":"2026-11-27T00:00:00Z"}]`},
		{"A filter can select nothing.", "GET", filter(`title eq "x"`), DefaultToken, "", 200, `[]`},
		{"A filter can select a tag.", "GET", filter(`tag eq "prod"`), DefaultToken, "", 200, id},
		{"A missing item is not found.", "GET", items + "/none", DefaultToken, "", 404, `"message":"item none not found"`},
		{"Files are listed.", "GET", items + "/" + id + "/files", DefaultToken, "", 200, `"size":4`},
		{"The content of a file is not JSON.", "GET", items + "/" + id + "/files/f/content", DefaultToken, "", 200, `data`},
		{"A file is read.", "GET", items + "/" + id + "/files/f", DefaultToken, "", 200, `"name":"a"`},
		{"A missing file is not found.", "GET", items + "/" + id + "/files/none/content", DefaultToken, "", 404, `"message":"file none not found"`},
		{"An item without a category is refused.", "POST", items, DefaultToken, `{"title":"new"}`, 400, `"status":400`},
		{"An item is created.", "POST", items, DefaultToken, `{"title":"new","category":"PASSWORD","vault":{"id":"` + v + `"}}`, 200, `"version":1`},
		{"A field is appended and another one written, with the tags.", "PATCH", items + "/" + id, DefaultToken, `[{"op":"add","path":"/fields","value":{"label":"n","value":"z"}},{"op":"add","path":"/fields/password/value","value":"y"},{"op":"replace","path":"/tags","value":["new"]}]`, 200, `"tags":["new"],"version":2,"createdAt":"2026-11-27T00:00:00Z","updatedAt":"2026-11-27T00:00:00Z","fields":[{"id":"password","value":"y"},{"id":"0`},
		{"A field is removed.", "PATCH", items + "/" + id, DefaultToken, `[{"op":"remove","path":"/fields/password"}]`, 200, `"version":3`},
		{"A missing field is refused, and nothing is written.", "PATCH", items + "/" + id, DefaultToken, `[{"op":"replace","path":"/tags","value":[]},{"op":"remove","path":"/fields/none"}]`, 400, `"status":400`},
		{"Another operation is refused.", "PATCH", items + "/" + id, DefaultToken, `[{"op":"test","path":"/tags","value":[]}]`, 400, `"status":400`},
		{"An item is replaced.", "PUT", items + "/" + id, DefaultToken, `{"id":"` + id + `","title":"Db","category":"PASSWORD","vault":{"id":"` + v + `"},"fields":[{"id":"a","value":"y"}]}`, 200, `"version":4`},
		{"The ID of an item does not change.", "PUT", items + "/" + id, DefaultToken, `{"id":"other","vault":{"id":"` + v + `"}}`, 400, `"status":400`},
		{"The files of a replaced item remain.", "GET", items + "/" + id, DefaultToken, "", 200, `"fields":[{"id":"a","value":"y"}],"files":[{"id":"f"`},
		{"An item is deleted.", "DELETE", items + "/" + id, DefaultToken, "", 204, ``},
		{"It then does not exist.", "GET", items + "/" + id, DefaultToken, "", 404, `"status":404`},
	}
	for _, tc := range cases {
		status, body := call(t, srv, tc.method, tc.path, tc.token, tc.body)
		if status != tc.status || !strings.Contains(body, tc.want) {
			t.Errorf("%s\n%s %s: got %d %s, want %d %s", tc.reason, tc.method, tc.path, status, body, tc.status, tc.want)
		}
	}
	want := map[string]int{"ListVaults": 4, "GetVault": 1, "ListItems": 5, "GetItem": 3, "ListFiles": 1, "GetFile": 1, "GetFileContent": 2, "CreateItem": 2, "PatchItem": 4, "ReplaceItem": 2, "DeleteItem": 1}
	if diff := cmp.Diff(want, srv.Counts()); diff != "" {
		t.Errorf("calls: -want, +got:\n%s", diff)
	}
	srv.RevokeToken(DefaultToken)
	if status, _ := call(t, srv, "GET", "/v1/vaults", DefaultToken, ""); status != 401 {
		t.Errorf("a revoked token got %d", status)
	}
}

func TestFaults(t *testing.T) {
	srv := started(t)
	path := "/v1/vaults/" + srv.VaultID(DefaultVault) + "/items/" + srv.Add(DefaultVault, Item{Title: "db"})
	cases := map[string]struct {
		reason string
		fault  Fault
		status int
		want   string
	}{
		"Status": {"A call fails.", Fault{Status: 503}, 503, `{"message":"Service Unavailable","status":503}`},
		"Key":    {"The fault of another item has no effect.", Fault{Key: "other", Status: 503}, 200, `"title":"db"`},
		"Title":  {"A fault selects by title.", Fault{Key: "db", Status: 403}, 403, `"status":403`},
		"Call":   {"The fault of another call has no effect.", Fault{Call: "ListItems", Status: 503}, 200, `"title":"db"`},
		"Empty":  {"An answer can lack everything.", Fault{Empty: true}, 200, `{}`},
		"Body":   {"An answer can have another body.", Fault{Body: []byte("x")}, 200, `x`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			defer srv.Inject(tc.fault)()
			if status, body := call(t, srv, "GET", path, DefaultToken, ""); status != tc.status || !strings.Contains(body, tc.want) {
				t.Errorf("%s\ngot %d %s, want %d %s", tc.reason, status, body, tc.status, tc.want)
			}
		})
	}
	t.Run("RetryAfter", func(t *testing.T) {
		defer srv.Inject(Fault{Status: 429, RetryAfter: 7 * time.Second})()
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, http.NoBody))
		if got := w.Header().Get("Retry-After"); got != "7" {
			t.Errorf("Retry-After is %q", got)
		}
	})
}

func TestPut(t *testing.T) {
	srv := New()
	v := srv.VaultID(DefaultVault)
	read := func() (item Item) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/vaults/"+v+"/items/00000000000000000000000002", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+DefaultToken)
		srv.Handler().ServeHTTP(w, r)
		if err := json.Unmarshal(w.Body.Bytes(), &item); err != nil {
			t.Fatal(err)
		}
		return item
	}
	srv.Put(DefaultVault, "db", map[string]string{"a": "1"}, []string{"x"})
	first := read()
	srv.Put(DefaultVault, "db", map[string]string{"a": "2"}, nil)
	second := read()
	if first.Version != 1 || second.Version != 2 || first.Fields[0].Value != "1" || second.Fields[0].Value != "2" || cmp.Diff([]string{"x"}, second.Tags) != "" {
		t.Errorf("got %+v, then %+v", first, second)
	}
}

func TestStart(t *testing.T) {
	if srv, err := Start(WithAddress("0.0.0.0:0")); err == nil {
		t.Errorf("it listens on all addresses: %v", srv.Close())
	}
	plain := httptest.NewUnstartedServer(nil)
	plain.StartTLS()
	defer plain.Close()
	srv := started(t, WithTLS(&tls.Config{Certificates: plain.TLS.Certificates, MinVersion: tls.VersionTLS12}), WithLatency(time.Millisecond))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL()+"/v1/vaults", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := plain.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(srv.URL(), "https://") {
		t.Errorf("%s returned %d, %v", srv.URL(), resp.StatusCode, err)
	}
}
