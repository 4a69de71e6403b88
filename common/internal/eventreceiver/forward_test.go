package eventreceiver

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

// standby returns the handler of a standby replica that forwards to an address, with a certificate if certDir is set.
func standby(leader, certDir string, log io.Writer) *Handler {
	h := NewHandler()
	h.Forwarder = NewForwarder(func(context.Context) (netip.AddrPort, error) { return netip.ParseAddrPort(leader) }, certDir, slog.New(slog.NewTextHandler(log, nil)))
	return h
}

// addressOf returns the address of a server that runs until the test ends.
func addressOf(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// TestForward sends requests to a standby replica whose leader verifies them.
func TestForward(t *testing.T) {
	cases := map[string]struct {
		reason string
		with   *http.Request
		want   string
	}{
		"Signed":    {"The leader accepts a signed request.", signed(path, `{"keys":["a"]}`, key, time.Now()), accepted},
		"OtherKey":  {"The leader refuses another key.", signed(path, `{"keys":["a"]}`, absent, time.Now()), "401 map[] "},
		"OtherPath": {"The leader refuses another path.", signed(path+"/%2e?x#y", `{"keys":["a"]}`, key, time.Now()), "401 map[] "},
		"Malformed": {"The sender of a malformed body is shown the form.", signed(path, `{}`, key, time.Now()), "400 map[Content-Type:[text/plain; charset=utf-8]] " + expected},
		"Get":       {"Only POST is accepted.", httptest.NewRequest(http.MethodGet, path, nil), "401 map[] "},
		"Large":     {"A body of more than 64 KiB is refused.", signed(path, strings.Repeat(" ", maxBody+1), key, time.Now()), "413 map[] "},
		"Full":      {"A body of 64 KiB is forwarded.", signed(path, `{"keys":["a"]}`+strings.Repeat(" ", maxBody-14), key, time.Now()), accepted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, e := newHandler(t)
			acknowledge(t, e)
			if diff := cmp.Diff(tc.want, answer(standby(serve(t, &Server{Handler: h}), "", io.Discard), tc.with)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestForwardedRequest checks what the leader gets of a request.
func TestForwardedRequest(t *testing.T) {
	var got string
	leader := addressOf(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		r.Header.Del("User-Agent")
		got = fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Header, " ", string(body), err)
	})
	r := httptest.NewRequest(http.MethodPost, "http://example.com/events/a%20b/c?query", strings.NewReader("body"))
	for _, name := range []string{TimestampHeader, SignatureHeader, "Content-Type", "Authorization", "Cookie", "X-Forwarded-For", "Ce-Subject"} {
		r.Header.Set(name, "its value")
	}
	if got := answer(standby(leader, "", io.Discard), r); got != "200 map[] " {
		t.Errorf("answer %s", got)
	}
	want := "POST /events/a%20b/c map[Content-Length:[4] Content-Type:[its value] X-Direct-Secrets-Forwarded:[true] X-Direct-Secrets-Signature:[its value] X-Direct-Secrets-Timestamp:[its value]] body<nil>"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the leader gets what it needs to verify a request: -want, +got:\n%s", diff)
	}
}

// TestForwardStatus passes the answers of a leader on.
func TestForwardStatus(t *testing.T) {
	cases := map[string]struct {
		reason string
		of     int
		want   string
	}{
		"OK":          {reason: "An answer of a receiver is passed on.", of: 200, want: "200 map[] "},
		"Accepted":    {reason: "An answer of a receiver is passed on.", of: 202, want: "202 map[] "},
		"BadRequest":  {reason: "The text is that of this replica.", of: 400, want: "400 map[Content-Type:[text/plain; charset=utf-8]] " + expected},
		"Refused":     {reason: "An answer of a receiver is passed on.", of: 401, want: "401 map[] "},
		"TooLarge":    {reason: "An answer of a receiver is passed on.", of: 413, want: "413 map[] "},
		"TooMany":     {reason: "An answer of a receiver is passed on.", of: 429, want: "429 map[Retry-After:[1]] "},
		"Unavailable": {reason: "An answer of a receiver is passed on.", of: 503, want: "503 map[Retry-After:[1]] "},
		"NotFound":    {reason: "No receiver answers so.", of: 404, want: "503 map[Retry-After:[1]] "},
		"Error":       {reason: "No receiver answers so.", of: 500, want: "503 map[Retry-After:[1]] "},
		"NoContent":   {reason: "No receiver answers so.", of: 204, want: "503 map[Retry-After:[1]] "},
		"Redirect":    {reason: "A redirect is not followed.", of: 307, want: "503 map[Retry-After:[1]] "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			leader := addressOf(t, func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.of)
				_, _ = io.WriteString(w, "text of the leader") // Some statuses have no content.
			})
			if diff := cmp.Diff(tc.want, answer(standby(leader, "", io.Discard), signed(path, "{}", key, time.Now()))); diff != "" || calls.Load() != 1 {
				t.Errorf("%s\n%d requests; -want, +got:\n%s", tc.reason, calls.Load(), diff)
			}
		})
	}
}

// TestNotForwarded checks which requests reach no other replica.
func TestNotForwarded(t *testing.T) {
	alter := func(change func(*http.Request)) *http.Request {
		r := signed(path, "{}", key, time.Now())
		change(r)
		return r
	}
	cases := map[string]struct {
		reason string
		with   *http.Request
		set    func(*Handler)
		want   int
	}{
		"Forwarded": {"Two replicas that take each other for the leader do not send a request back.", alter(func(r *http.Request) { r.Header.Set(ForwardedHeader, "true") }), nil, http.StatusServiceUnavailable},
		"Large":     {"A large body is refused.", alter(func(r *http.Request) { r.ContentLength = maxBody + 1 }), nil, http.StatusRequestEntityTooLarge},
		"LargeChunked": {"A large body without a length is refused.", alter(func(r *http.Request) {
			r.ContentLength, r.Body = -1, io.NopCloser(strings.NewReader(strings.Repeat(" ", maxBody+1)))
		}), nil, http.StatusRequestEntityTooLarge},
		"Method": {"Only POST is forwarded.", alter(func(r *http.Request) { r.Method = http.MethodPut }), nil, http.StatusUnauthorized},
		"Full":   {"The requests that are read and forwarded at the same time are limited.", alter(func(*http.Request) {}), func(h *Handler) { h.receivers.TryHold(namespaceOf(path), 2*quota.Own) }, http.StatusTooManyRequests},
		"Alone":  {"There are no other replicas.", alter(func(*http.Request) {}), func(h *Handler) { h.Forwarder = nil }, http.StatusServiceUnavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := standby(addressOf(t, func(http.ResponseWriter, *http.Request) { t.Errorf("%s\nThe request is forwarded.", tc.reason) }), "", io.Discard)
			if tc.set != nil {
				tc.set(h)
			}
			if status := h.status(tc.with); status != tc.want {
				t.Errorf("%s\nstatus %d, want %d", tc.reason, status, tc.want)
			}
			if n := h.senders.Used(); n != 0 {
				t.Errorf("%d bytes count after the answer", n)
			}
		})
	}
}

// TestForwardNowhere sends requests while no leader answers. The log has the cause once, and nothing of the requests.
func TestForwardNowhere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It does not wait.
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ reason, leader, log string }{
		"NoLeader": {"There is no leader.", "no address", "not an ip:port"},
		"Closed":   {"The leader has stopped.", l.Addr().String(), "connection refused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			h := standby(tc.leader, "", &log)
			for range 2 {
				if got := answer(h, signed(path, "a body", key, time.Now())); got != "503 map[Retry-After:[1]] " {
					t.Errorf("%s\nanswer %s", tc.reason, got)
				}
			}
			if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, tc.log) || strings.Contains(got, "body") || strings.Contains(got, path) {
				t.Errorf("%s\nlog %s", tc.reason, got)
			}
		})
	}
}

// TestForwardGivenUp ends a request while the leader has not answered it.
func TestForwardGivenUp(t *testing.T) {
	h, e := newHandler(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	status := make(chan int)
	var log strings.Builder
	from := standby(serve(t, &Server{Handler: h}), "", &log)
	go func() { status <- from.status(signed(path, `{"keys":["a"]}`, key, time.Now()).WithContext(ctx)) }()
	e.Receive(t.Context(), 1)
	cancel()
	if got := <-status; got != http.StatusServiceUnavailable || log.Len() > 0 {
		t.Errorf("status %d, log %q", got, log.String())
	}
	until(t, func() string {
		e.at.mu.Lock()
		defer e.at.mu.Unlock()
		if n := len(e.at.waiting); n > 0 {
			return fmt.Sprintf("%d requests wait at the leader", n)
		}
		return ""
	})
}

// certify writes a certificate for a name into a new folder.
func certify(t *testing.T, name string, key crypto.Signer) (dir string) {
	t.Helper()
	of := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for file, b := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: certificate}, "tls.key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestForwardTLS forwards a request to leaders with several certificates.
func TestForwardTLS(t *testing.T) {
	var keys [2]*ecdsa.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	own := certify(t, "events.svc", keys[0])
	cases := map[string]struct {
		reason, leader, standby string
		want                    int
		log                     string
	}{
		"Same":    {"All replicas mount the same Secret.", own, own, http.StatusOK, ""},
		"Renewed": {"A renewed certificate can have the same key.", certify(t, "new.svc", keys[0]), own, http.StatusOK, ""},
		"Other":   {"A certificate for the same name with another key is that of another server.", certify(t, "events.svc", keys[1]), own, http.StatusServiceUnavailable, "with another key"},
		"Plain":   {"A leader without TLS is another server.", "", own, http.StatusServiceUnavailable, "does not look like a TLS handshake"},
		"Removed": {"Nothing is sent without the own certificate.", own, t.TempDir(), http.StatusServiceUnavailable, "cannot load the own certificate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, e := newHandler(t)
			acknowledge(t, e)
			var log strings.Builder
			from := standby(serve(t, &Server{Handler: h, CertDir: tc.leader}), tc.standby, &log)
			if status := from.status(signed(path, `{"keys":["a"]}`, key, time.Now())); status != tc.want {
				t.Errorf("%s\nstatus %d, want %d", tc.reason, status, tc.want)
			}
			if got := log.String(); (tc.log == "") != (got == "") || !strings.Contains(got, tc.log) {
				t.Errorf("%s\nlog %q, want %q", tc.reason, got, tc.log)
			}
			from.Forwarder.transport.CloseIdleConnections()
		})
	}
}
