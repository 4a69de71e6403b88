package eventreceiver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/time/rate"
)

const (
	// ForwardedHeader marks a request that a standby replica has forwarded. A standby replica never forwards it again.
	ForwardedHeader = "X-Direct-Secrets-Forwarded"

	// idle is the maximum number of connections that are kept for other requests.
	idle = 128
	// connectWithin is the timeout for a connection, and for its TLS handshake.
	connectWithin = 3 * time.Second
	// forwardWithin is the timeout for the answer of the leader, which can take answerWithin.
	forwardWithin = answerWithin + 5*time.Second
	// reuseWithin is how long a connection is kept for another request: less than the leader keeps it.
	reuseWithin = idleWithin / 2
	// logEvery is the minimum time between two log lines about failures.
	logEvery = time.Minute
)

// forwarded are the headers that the leader needs, and passed the statuses that a sender gets from the leader.
var (
	forwarded = []string{TimestampHeader, SignatureHeader, "Content-Type"}
	passed    = []int{
		http.StatusOK, http.StatusAccepted, http.StatusBadRequest, http.StatusUnauthorized, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests,
	}
)

// A Forwarder sends the requests that a standby replica receives to the leader. It does not verify them, because a standby replica
// has no keys: the leader verifies them.
type Forwarder struct {
	leader    func(context.Context) (netip.AddrPort, error)
	scheme    string
	transport *http.Transport
	log       *slog.Logger
	sometimes rate.Sometimes
}

// NewForwarder returns a Forwarder to the address that leader returns. certDir is that of the Server, which is the same in all
// replicas.
func NewForwarder(leader func(context.Context) (netip.AddrPort, error), certDir string, log *slog.Logger) *Forwarder {
	f := &Forwarder{
		leader: leader, scheme: "http", log: log, sometimes: rate.Sometimes{Interval: logEvery},
		transport: &http.Transport{ // Without Proxy: a proxy does not reach pods.
			DialContext:         (&net.Dialer{Timeout: connectWithin}).DialContext,
			TLSHandshakeTimeout: connectWithin, ResponseHeaderTimeout: forwardWithin, IdleConnTimeout: reuseWithin,
			MaxIdleConnsPerHost: idle, MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
		},
	}
	if certDir != "" {
		f.scheme, f.transport.TLSClientConfig = "https", sameKey(certDir)
	}
	return f
}

// sameKey returns the configuration of a client that accepts only a server with the key of the certificate in a folder. The
// certificate names the Service, not the IP addresses of pods, and its CA is unknown here. But all replicas mount the same Secret, and
// the handshake proves that the server has the private key. An expired certificate proves that, too. While the kubelets replace a
// key, replicas can differ for a minute or two. Then the handshake fails, and the answer is 503.
func sameKey(certDir string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // G402: VerifyConnection compares the key instead.
		VerifyConnection: func(s tls.ConnectionState) error {
			own, err := tls.LoadX509KeyPair(filepath.Join(certDir, "tls.crt"), filepath.Join(certDir, "tls.key"))
			if err != nil {
				return errors.Wrap(err, "cannot load the own certificate")
			}
			if !bytes.Equal(own.Leaf.RawSubjectPublicKeyInfo, s.PeerCertificates[0].RawSubjectPublicKeyInfo) {
				return errors.New("the leader has a certificate with another key than this replica")
			}
			return nil
		},
	}
}

// forward sends a request with its body to the leader, and returns its answer. It is 503 without a leader that answers.
func (f *Forwarder) forward(r *http.Request, body []byte) (status int, matches *Matches) {
	status, matches, err := f.send(r, body)
	if err != nil && r.Context().Err() == nil {
		f.sometimes.Do(func() {
			f.log.Warn("cannot forward a request about events to the leader; the sender got 503", "error", err)
		})
	}
	if !slices.Contains(passed, status) {
		return http.StatusServiceUnavailable, nil
	}
	return status, matches
}

// send sends a request with its body to the leader. It follows no redirects. Of the content of the answer, only Matches are used.
func (f *Forwarder) send(r *http.Request, body []byte) (status int, matches *Matches, err error) {
	leader, err := f.leader(r.Context())
	if err != nil {
		return 0, nil, err
	}
	to := url.URL{Scheme: f.scheme, Host: leader.String(), Path: r.URL.Path}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, to.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, errors.New("the request cannot be forwarded") // The error would have the path.
	}
	out.Header.Set(ForwardedHeader, "true")
	for _, name := range forwarded {
		if v := r.Header.Get(name); v != "" {
			out.Header.Set(name, v)
		}
	}
	answer, err := f.transport.RoundTrip(out)
	if err != nil {
		return 0, nil, errors.Wrapf(err, "no answer from %s", leader)
	}
	content, _ := io.ReadAll(io.LimitReader(answer.Body, maxHeader)) // The connection can be used again then.
	if answer.StatusCode == http.StatusOK && json.Unmarshal(content, &matches) != nil {
		matches = nil // The leader is an earlier version.
	}
	return answer.StatusCode, matches, errors.Wrap(answer.Body.Close(), "cannot close the answer")
}
