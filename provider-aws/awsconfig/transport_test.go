package awsconfig

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHTTPClient(t *testing.T) {
	followed := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/elsewhere":
			followed = true
		default:
			chunk := make([]byte, 1<<20)
			for range 2 * maxAnswer / len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return // the client has had enough
				}
			}
		}
	}))
	defer srv.Close()
	c := newHTTPClient(newTransport())

	resp, err := c.Get(srv.URL + "/redirect")
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	if followed || resp.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("A signed request is sent nowhere but to the endpoint: status %d", resp.StatusCode)
	}

	resp, err = c.Get(srv.URL + "/large")
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || n != maxAnswer {
		t.Errorf("An endless answer must not fill the memory: read %d bytes, error %v", n, err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
}
