package awsconfig

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestUnreadAnswers has answers that wait for memory, so nothing reads them, of a server with HTTP/2.
func TestUnreadAnswers(t *testing.T) {
	var sent atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 16<<10)
		for range (4 << 20) / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
			sent.Add(int64(len(chunk)))
		}
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	transport := newTransport()
	defer transport.CloseIdleConnections()
	transport.TLSClientConfig.RootCAs = srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	const answers = 32 // A tenant can have 128.
	for range answers {
		resp, err := (&http.Client{Transport: transport}).Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
	}
	for was := int64(-1); was != sent.Load(); time.Sleep(200 * time.Millisecond) {
		was = sent.Load()
	}
	if most := int64(answers * 256 << 10); sent.Load() > most {
		t.Errorf("the operator has %d MiB of %d answers that nothing reads, want at most %d", sent.Load()>>20, answers, most>>20)
	}
}
