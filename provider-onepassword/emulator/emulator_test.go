package emulator

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
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

// TestCalls makes calls that no client of the provider makes. The tests of the client show the others.
func TestCalls(t *testing.T) {
	srv := started(t, WithVault("bank"))
	srv.AddToken("bank-only", "bank")
	v := srv.VaultID(DefaultVault)
	items := "/v1/vaults/" + v + "/items"
	id := srv.Add(DefaultVault, Item{Title: "Db", Tags: []string{"prod"}, Fields: []Field{{ID: "password", Value: "x"}}, Files: []File{{ID: "f", Name: "a", Content: []byte("data")}}})
	cases := []struct {
		reason, method, path, token, body string
		status                            int
		want                              string // a part of the body
	}{
		{"One vault is read.", "GET", "/v1/vaults/" + v, DefaultToken, "", 200, `"name":"shop"`},
		{"A token for another vault is refused.", "GET", items, "bank-only", "", 403, `"status":403`},
		{"Files are listed.", "GET", items + "/" + id + "/files", DefaultToken, "", 200, `"size":4`},
		{"A file is read.", "GET", items + "/" + id + "/files/f", DefaultToken, "", 200, `"name":"a"`},
		{"A missing file is not found.", "GET", items + "/" + id + "/files/none/content", DefaultToken, "", 404, `"message":"file none not found"`},
		{"An item without a category is refused.", "POST", items, DefaultToken, `{"title":"new","vault":{"id":"` + v + `"}}`, 400, `"status":400`},
		{"A missing field is refused, and nothing is written.", "PATCH", items + "/" + id, DefaultToken, `[{"op":"replace","path":"/tags","value":[]},{"op":"remove","path":"/fields/none"}]`, 400, `"status":400`},
		{"Another operation is refused.", "PATCH", items + "/" + id, DefaultToken, `[{"op":"test","path":"/tags","value":[]}]`, 400, `"status":400`},
		{"An item is replaced.", "PUT", items + "/" + id, DefaultToken, `{"id":"` + id + `","title":"Db","category":"PASSWORD","vault":{"id":"` + v + `"},"fields":[{"id":"a","value":"y"}]}`, 200, `"version":2`},
		{"The ID of an item does not change.", "PUT", items + "/" + id, DefaultToken, `{"id":"other","vault":{"id":"` + v + `"}}`, 400, `"status":400`},
		{"The files of a replaced item remain.", "GET", items + "/" + id, DefaultToken, "", 200, `"fields":[{"id":"a","value":"y"}],"files":[{"id":"f"`},
	}
	for _, tc := range cases {
		status, body := call(t, srv, tc.method, tc.path, tc.token, tc.body)
		if status != tc.status || !strings.Contains(body, tc.want) {
			t.Errorf("%s\n%s %s: got %d %s, want %d %s", tc.reason, tc.method, tc.path, status, body, tc.status, tc.want)
		}
	}
	defer srv.Inject(Fault{Status: 429, RetryAfter: 7 * time.Second})()
	w := httptest.NewRecorder()
	srv.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", items, http.NoBody))
	if got := w.Header().Get("Retry-After"); got != "7" {
		t.Errorf("Retry-After is %q", got)
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
