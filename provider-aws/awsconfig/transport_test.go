package awsconfig

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
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
			for range 2 * provider.MaxListing / len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return // The client has stopped reading.
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
		t.Errorf("a signed request must be sent to the endpoint only: status %d", resp.StatusCode)
	}

	for target, most := range map[string]int64{
		"": provider.MaxAnswer, "secretsmanager.GetSecretValue": provider.MaxAnswer, "AmazonSSM.GetParameters": provider.MaxAnswer,
		"secretsmanager.BatchGetSecretValue": provider.MaxListing, "AmazonSSM.DescribeParameters": provider.MaxListing,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/large", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Amz-Target", target)
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if provider.ClassOf(err) != provider.Unavailable || err == nil || n != most {
			t.Errorf("the size of an answer to %q must be limited: read %d bytes, want %d, error %v", target, n, most, err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestRequestBody checks that net/http cannot see the WriteTo of a request's body: the SDK's WriteTo fails once
// there is an answer.
func TestRequestBody(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://aws.example", io.NopCloser(strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := req.Body.(io.WriterTo); !ok {
		t.Fatal("the original body has no WriteTo")
	}
	sent := ""
	resp, err := readBody{roundTripper(func(r *http.Request) (*http.Response, error) {
		if _, ok := r.Body.(io.WriterTo); ok {
			t.Error("RoundTrip: the body has WriteTo")
		}
		b, err := io.ReadAll(r.Body)
		sent = string(b)
		return &http.Response{Body: http.NoBody}, err
	})}.RoundTrip(req)
	if err != nil || sent != "{}" {
		t.Errorf("RoundTrip: sent %q, %v", sent, err)
	}
	_ = resp.Body.Close()
}
