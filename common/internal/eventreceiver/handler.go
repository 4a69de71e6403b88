package eventreceiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

const (
	// TimestampHeader has the Unix time of a request in seconds.
	TimestampHeader = "X-Direct-Secrets-Timestamp"
	// SignatureHeader has sha256= and the HMAC-SHA256, in hexadecimal digits, of the timestamp, a dot and the body.
	SignatureHeader = "X-Direct-Secrets-Signature"

	// tolerance is the maximum difference between a timestamp and the clock.
	tolerance = 5 * time.Minute
	// maxBody is the maximum length of a body in bytes.
	//limit:events Body of a request to an EventReceiver | unit=bytes | The request is refused.
	maxBody = 64 << 10
	// answerWithin is how long a request waits for the refreshes that it causes.
	answerWithin = 25 * time.Second
	// retryAfter is in the answers that ask the sender to repeat a request, in seconds.
	retryAfter = "1"
)

// Matches are the content of the answer to a request whose refreshes have ended.
type Matches struct {
	// Matched is the number of keys that objects use, and Keys that of all keys of the request.
	Matched int `json:"matched"`
	Keys    int `json:"keys"`
}

// A Handler answers requests with a status, and with Matches or no content. An unknown path is answered like a wrong signature, after the same
// work.
type Handler struct {
	*Endpoints

	// Ready reports whether all paths are open. Until then requests are forwarded.
	Ready atomic.Bool
	// Forwarder sends the requests of a standby replica to the leader. It is nil if there are no other replicas: then the answer is 503.
	Forwarder *Forwarder
	// Refused is called for each refused request with its path, which anyone can choose, and a reason. It may be nil.
	Refused func(path, reason string)

	now    func() time.Time
	within time.Duration
	mac    func(key []byte, timestamp string, body []byte) signature
	// senders and receivers count requests whose signature is not yet checked, and waits those that wait for their refreshes.
	senders, receivers, waits quota.Quotas
}

// NewHandler returns a Handler that is not ready.
func NewHandler() *Handler {
	return &Handler{Endpoints: &Endpoints{}, now: time.Now, within: answerWithin, mac: mac}
}

// refusals are the reasons of refused requests, by the status of the answer.
var refusals = map[int]string{
	http.StatusBadRequest: "Malformed", http.StatusUnauthorized: "Unauthenticated", http.StatusRequestEntityTooLarge: "TooLarge",
	http.StatusTooManyRequests: "TooMany", http.StatusServiceUnavailable: "NotReady",
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, matches := h.handle(r)
	if reason := refusals[status]; reason != "" && h.Refused != nil {
		h.Refused(r.URL.Path, reason)
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	switch {
	case status == http.StatusBadRequest:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, expected) // The sender can have closed the connection.
	case matches != nil:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(matches)
	default:
		w.WriteHeader(status)
	}
}

// handle handles a request, and returns the status of the answer, and its content if the refreshes have ended.
func (h *Handler) handle(r *http.Request) (status int, matches *Matches) {
	if !h.Ready.Load() {
		return h.forward(r)
	}
	p, refused := h.accept(r)
	switch {
	case refused != 0:
		return refused, nil
	case p.Malformed:
		return http.StatusBadRequest, nil
	}
	defer p.at.forget(p.Receipt)
	waits, release := h.waits.TryHold(namespaceOf(r.URL.Path), perWaiting)
	defer release()
	if waits == nil {
		return http.StatusAccepted, nil
	}
	late := time.NewTimer(h.within)
	defer late.Stop()
	select {
	case n := <-p.done:
		return http.StatusOK, &Matches{n, len(p.Keys)}
	case <-late.C:
		return http.StatusAccepted, nil
	case <-p.at.closed:
		return http.StatusServiceUnavailable, nil
	case <-r.Context().Done(): // The server stops, or the sender has closed the connection.
		return http.StatusServiceUnavailable, nil
	}
}

// forward passes a request within the limits on to the leader, and returns its answer.
func (h *Handler) forward(r *http.Request) (status int, matches *Matches) {
	if h.Forwarder == nil || r.Header.Get(ForwardedHeader) != "" { // The other replica takes this one for the leader.
		return http.StatusServiceUnavailable, nil
	}
	body, release, refused := h.read(r)
	defer release()
	if refused != 0 {
		return refused, nil
	}
	return h.Forwarder.forward(r, body)
}

// accept verifies a request and queues its report, or returns the status of the refusal.
func (h *Handler) accept(r *http.Request) (p pending, refused int) {
	body, release, refused := h.read(r)
	defer release()
	if refused != 0 {
		return p, refused
	}
	now := h.now()
	at, signed, until := h.verify(r, body, now)
	if at == nil {
		return p, http.StatusUnauthorized
	}
	keys := keysOf(r.Header.Get("Content-Type"), body)
	return at.admit(Report{Keys: keys, Malformed: len(keys) == 0, At: now}, signed, until)
}

// read returns the body of a request within the limits, or the status of the refusal. The caller must call release after it has used
// the body.
func (h *Handler) read(r *http.Request) (body []byte, release func(), refused int) {
	release = func() {}
	if r.Method != http.MethodPost {
		return nil, release, http.StatusUnauthorized
	}
	n := r.ContentLength
	switch {
	case n > maxBody:
		return nil, release, http.StatusRequestEntityTooLarge
	case n < 0: // It is not known.
		n = maxBody
	}
	release, ok := h.enter(r, n)
	if !ok {
		return nil, release, http.StatusTooManyRequests
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil: // The sender is too slow, or has closed the connection.
		return nil, release, http.StatusUnauthorized
	case len(body) > maxBody:
		return nil, release, http.StatusRequestEntityTooLarge
	}
	return body, release, 0
}

// absent is the key for unknown paths. No signature by it is accepted.
var absent = make([]byte, MinKey)

// verify returns the path of a request with a right signature, the signature, and the time until which it is valid; nil for any other
// request.
func (h *Handler) verify(r *http.Request, body []byte, now time.Time) (*endpoint, signature, time.Time) {
	at, key := h.find(r.URL.Path)
	if at == nil {
		key = absent
	}
	timestamp := r.Header.Get(TimestampHeader)
	want := h.mac(key, timestamp, body)
	digits, hasPrefix := strings.CutPrefix(r.Header.Get(SignatureHeader), "sha256=")
	got, err := hex.DecodeString(digits)
	right := hmac.Equal(got, want[:])
	seconds, errTime := strconv.ParseInt(timestamp, 10, 64)
	sent := time.Unix(seconds, 0)
	if at == nil || !hasPrefix || err != nil || !right || errTime != nil || now.Sub(sent).Abs() > tolerance {
		return nil, want, sent
	}
	return at, want, sent.Add(tolerance)
}

// mac returns the signature of a request.
func mac(key []byte, timestamp string, body []byte) (s signature) {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(timestamp + "."))
	m.Write(body)
	m.Sum(s[:0])
	return s
}
