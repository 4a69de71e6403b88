package eventreceiver

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const path = "/events/shop/changes"

var key = []byte("0123456789abcdef0123456789abcdef")

// newHandler returns a Handler that is ready, and its only path.
func newHandler(t *testing.T) (*Handler, *Endpoint) {
	t.Helper()
	h := NewHandler()
	h.Ready.Store(true)
	e := h.Open(path, key, nil)
	t.Cleanup(func() { _ = e.Close() }) // It returns no error.
	return h, e
}

// acknowledge completes every report until the test ends, and counts them by their keys.
func acknowledge(t *testing.T, e *Endpoint) (got func() []Report) {
	t.Helper()
	var mu sync.Mutex
	var all []Report
	go func() {
		for t.Context().Err() == nil {
			for _, r := range e.Receive(t.Context(), 10) {
				mu.Lock()
				all = append(all, Report{Keys: r.Keys, Malformed: r.Malformed})
				mu.Unlock()
				e.Done(r.Receipt, len(r.Keys))
			}
		}
	}()
	return func() []Report {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// signed returns a request with a right signature by a key.
func signed(to, body string, by []byte, at time.Time) *http.Request {
	r := httptest.NewRequest(http.MethodPost, to, strings.NewReader(body))
	stamp := strconv.FormatInt(at.Unix(), 10)
	sum := mac(by, stamp, []byte(body))
	r.Header.Set(TimestampHeader, stamp)
	r.Header.Set(SignatureHeader, "sha256="+hex.EncodeToString(sum[:]))
	return r
}

// status returns the status of the answer to a request.
func (h *Handler) status(r *http.Request) int {
	status, _ := h.handle(r)
	return status
}

// accepted is the answer to a request with one key, which an object uses.
const accepted = `200 map[Content-Type:[application/json]] {"matched":1,"keys":1}` + "\n"

// answer returns the answer of a handler, without the date.
func answer(h http.Handler, r *http.Request) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return fmt.Sprintf("%d %v %s", w.Code, w.Header(), w.Body)
}

// TestRefusals sends one request of each kind to a path.
func TestRefusals(t *testing.T) {
	const body = `{"keys":["shop/db"]}`
	alter := func(change func(*http.Request)) *http.Request {
		r := signed(path, body, key, time.Now())
		change(r)
		return r
	}
	refused, tooLarge := "401 map[] ", "413 map[] "
	long := strings.Repeat("k", 100)
	cases := map[string]struct {
		reason string
		with   *http.Request
		want   string
	}{
		"Signed":         {"A signed request is accepted.", signed(path, body, key, time.Now()), accepted},
		"OtherKey":       {"Another key is refused.", signed(path, body, []byte(long), time.Now()), refused},
		"UnknownPath":    {"An unknown path is answered like another key.", signed("/events/shop/other", body, key, time.Now()), refused},
		"KeyOfNone":      {"No key opens an unknown path.", signed("/events/shop/other", body, absent, time.Now()), refused},
		"OtherPath":      {"There are no other pages.", signed("/", body, key, time.Now()), refused},
		"Get":            {"Only POST is accepted.", alter(func(r *http.Request) { r.Method = http.MethodGet }), refused},
		"OtherBody":      {"The body is signed.", alter(func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"keys":["other"]}`)) }), refused},
		"Unsigned":       {"A signature is required.", alter(func(r *http.Request) { r.Header.Del(SignatureHeader) }), refused},
		"NoAlgorithm":    {"The signature names its algorithm.", alter(func(r *http.Request) { r.Header.Set(SignatureHeader, r.Header.Get(SignatureHeader)[len("sha256="):]) }), refused},
		"NotHexadecimal": {"The signature has hexadecimal digits.", alter(func(r *http.Request) { r.Header.Set(SignatureHeader, "sha256=x") }), refused},
		"NoTime":         {"A timestamp is required.", alter(func(r *http.Request) { r.Header.Del(TimestampHeader) }), refused},
		"OtherTime":      {"The timestamp is signed.", alter(func(r *http.Request) { r.Header.Set(TimestampHeader, strconv.FormatInt(time.Now().Unix()-1, 10)) }), refused},
		"Old":            {"A timestamp of more than five minutes ago is refused.", signed(path, body, key, time.Now().Add(-tolerance-2*time.Second)), refused},
		"Early":          {"A timestamp of more than five minutes ahead is refused.", signed(path, body, key, time.Now().Add(tolerance+2*time.Second)), refused},
		"Recent":         {"A clock can be some minutes slow.", signed(path, body, key, time.Now().Add(-tolerance+time.Minute)), accepted},
		"Large":          {"A body of more than 64 KiB is refused.", signed(path, strings.Repeat(" ", maxBody+1), key, time.Now()), tooLarge},
		"LargeUnknown":   {"It is refused on unknown paths, too.", signed("/events/x/y", strings.Repeat(" ", maxBody+1), key, time.Now()), tooLarge},
		"LargeChunked": {"It is refused without a length, too.", func() *http.Request {
			r := signed(path, strings.Repeat(" ", maxBody+1), key, time.Now())
			r.ContentLength = -1
			return r
		}(), tooLarge},
		"Malformed": {"The sender of a malformed body is shown the form.", signed(path, `{}`, key, time.Now()), "400 map[Content-Type:[text/plain; charset=utf-8]] " + expected},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, e := newHandler(t)
			acknowledge(t, e)
			if diff := cmp.Diff(tc.want, answer(h, tc.with)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBodies sends bodies with right signatures.
func TestBodies(t *testing.T) {
	many := func(n int) string { return `{"keys":["a"` + strings.Repeat(`,"a"`, n-1) + `]}` }
	cases := map[string]struct {
		reason, contentType, body string
		want                      []string
	}{
		"Keys":           {"Keys are listed.", "application/json", `{"keys":["b","a"]}`, []string{"a", "b"}},
		"Untyped":        {"A content type is not necessary.", "", `{"keys":["a"]}`, []string{"a"}},
		"Twice":          {"Each key counts once.", "", `{"keys":["a","a"]}`, []string{"a"}},
		"Many":           {"There can be 100 keys.", "", many(maxKeys), []string{"a"}},
		"TooMany":        {"There cannot be more.", "", many(maxKeys + 1), nil},
		"None":           {"At least one key is required.", "", `{"keys":[]}`, nil},
		"Null":           {"Null is no key.", "", `{"keys":[null]}`, nil},
		"NullKeys":       {"Null is no list.", "", `{"keys":null}`, nil},
		"LongKey":        {"A key is as long as in an object at most.", "", `{"keys":["` + strings.Repeat("k", maxKeyLength+1) + `"]}`, nil},
		"OtherMember":    {"Another member is refused.", "", `{"keys":["a"],"value":"x"}`, nil},
		"OtherCase":      {"Names count with their case.", "", `{"Keys":["a"]}`, nil},
		"TwoMembers":     {"A body has one meaning.", "", `{"keys":["a"],"keys":["b"]}`, nil},
		"Trailing":       {"Nothing follows.", "", `{"keys":["a"]} {}`, nil},
		"List":           {"A list alone is refused.", "", `["a"]`, nil},
		"Empty":          {"An empty body is refused.", "", ``, nil},
		"EventData":      {"The data of a CloudEvent can list keys.", cloudEvent + "; charset=utf-8", `{"specversion":"1.0","id":"1","source":"ci","type":"changed","subject":"x","data":{"keys":["a"]}}`, []string{"a"}},
		"EventSubject":   {"The subject of a CloudEvent can be the key.", cloudEvent, `{"specversion":"1.0","id":"1","source":"ci","type":"changed","subject":"shop/db","data":{"by":"ci"}}`, []string{"shop/db"}},
		"EventUnnamed":   {"A CloudEvent without a key is refused.", cloudEvent, `{"specversion":"1.0","id":"1","source":"ci","type":"changed"}`, nil},
		"EventUntyped":   {"A CloudEvent in structured mode has its media type.", "application/json", `{"specversion":"1.0","subject":"a"}`, nil},
		"EventNoVersion": {"A CloudEvent has a version.", cloudEvent, `{"subject":"a"}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, e := newHandler(t)
			r := signed(path, tc.body, key, time.Now())
			r.Header.Set("Content-Type", tc.contentType)
			r.Header.Set("Ce-Subject", "unsigned")
			got := acknowledge(t, e)
			want := http.StatusOK
			if tc.want == nil {
				want = http.StatusBadRequest
			}
			if status := h.status(r); status != want {
				t.Errorf("%s\nstatus %d, want %d", tc.reason, status, want)
			}
			until(t, func() string {
				return cmp.Diff([]Report{{Keys: tc.want, Malformed: tc.want == nil}}, got())
			})
		})
	}
}

// until waits until problem returns nothing.
func until(t *testing.T, problem func() string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for {
		p := problem()
		if p == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(p)
		}
	}
}

// TestReplay sends one request again, and then at the end of its time.
func TestReplay(t *testing.T) {
	h, e := newHandler(t)
	acknowledge(t, e)
	now := time.Now()
	h.now = func() time.Time { return now }
	body, at := `{"keys":["a"]}`, now.Add(tolerance-time.Second)
	send := func() int { return h.status(signed(path, body, key, at)) }
	got := []int{send(), send()}
	now = at.Add(tolerance - time.Second)
	got = append(got, send())
	if diff := cmp.Diff([]int{200, 401, 401}, got); diff != "" {
		t.Errorf("a request is accepted once: -want, +got:\n%s", diff)
	}
	now = at.Add(tolerance + sweepEvery)
	if status := h.status(signed(path, body, key, now)); status != http.StatusOK {
		t.Errorf("another request later: status %d", status)
	}
	if n := len(e.at.seen); n != 1 {
		t.Errorf("%d signatures are remembered, want only that of the last minutes", n)
	}
}

// TestRate sends more requests than a path accepts. A refused one can be sent again.
func TestRate(t *testing.T) {
	h, e := newHandler(t)
	acknowledge(t, e)
	now := time.Now()
	h.now = func() time.Time { return now }
	send := func(i int) int {
		return h.status(signed(path, fmt.Sprintf(`{"keys":["%d"]}`, i), key, now.Truncate(time.Second)))
	}
	for i := range burst {
		if status := send(i); status != http.StatusOK {
			t.Fatalf("request %d: status %d", i, status)
		}
	}
	if status := send(burst); status != http.StatusTooManyRequests {
		t.Errorf("a request above the rate: status %d", status)
	}
	now = now.Add(time.Second)
	if status := send(burst); status != http.StatusOK {
		t.Errorf("the same request a second later: status %d", status)
	}
}

// TestFull sends requests while no report is received.
func TestFull(t *testing.T) {
	h, e := newHandler(t)
	h.within = 0
	now := time.Now()
	h.now = func() time.Time { now = now.Add(time.Second); return now }
	counts := map[int]int{}
	for i := range queued + 1 {
		counts[h.status(signed(path, fmt.Sprintf(`{"keys":["%d"]}`, i), key, now))]++
	}
	if diff := cmp.Diff(map[int]int{http.StatusAccepted: queued, http.StatusTooManyRequests: 1}, counts); diff != "" {
		t.Errorf("statuses: -want, +got:\n%s", diff)
	}
	if n := len(e.at.waiting); n != 0 {
		t.Errorf("%d requests are remembered after their answers", n)
	}
}

// TestWait checks what ends the wait of a request.
func TestWait(t *testing.T) {
	cases := map[string]struct {
		reason string
		within time.Duration
		end    func(e *Endpoint, cancel func(), r Report)
		want   int
	}{
		"Done":     {"The refreshes are written.", time.Hour, func(e *Endpoint, _ func(), r Report) { e.Done(r.Receipt, 1); e.Done(r.Receipt, 1) }, http.StatusOK},
		"Late":     {"The refreshes take longer.", time.Millisecond, func(*Endpoint, func(), Report) {}, http.StatusAccepted},
		"Closed":   {"The path is closed.", time.Hour, func(e *Endpoint, _ func(), _ Report) { _ = e.Close() }, http.StatusServiceUnavailable},
		"Stopping": {"The server stops.", time.Hour, func(_ *Endpoint, cancel func(), _ Report) { cancel() }, http.StatusServiceUnavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, e := newHandler(t)
			h.within = tc.within
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			status := make(chan int)
			go func() { status <- h.status(signed(path, `{"keys":["a"]}`, key, time.Now()).WithContext(ctx)) }()
			tc.end(e, cancel, e.Receive(t.Context(), 10)[0])
			if got := <-status; got != tc.want {
				t.Errorf("%s\nstatus %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// TestNotReady checks that the answers of a replica that does not lead show nothing.
func TestNotReady(t *testing.T) {
	h, _ := newHandler(t)
	h.Ready.Store(false)
	for _, r := range []*http.Request{signed(path, `{"keys":["a"]}`, key, time.Now()), signed("/x", "", nil, time.Now())} {
		if diff := cmp.Diff("503 map[Retry-After:[1]] ", answer(h, r)); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	}
}

// TestReplacedKey opens a path with another key while the earlier Endpoint is still in use.
func TestReplacedKey(t *testing.T) {
	h, first := newHandler(t)
	other := []byte(strings.Repeat("other", 30))
	second := h.Open(path, other, nil)
	send := func(by []byte, body string) int { return h.status(signed(path, body, by, time.Now())) }
	h.within = 0
	if diff := cmp.Diff([]int{401, 202}, []int{send(key, `{"keys":["a"]}`), send(other, `{"keys":["b"]}`)}); diff != "" {
		t.Errorf("the key of the last one counts: -want, +got:\n%s", diff)
	}
	if n := len(first.Receive(t.Context(), 10)); n != 1 {
		t.Errorf("the earlier one received %d reports, want 1", n)
	}
	for i, e := range []*Endpoint{first, first, second} {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		want := http.StatusAccepted // No Endpoint receives.
		if e == second {
			want = http.StatusUnauthorized
		}
		if status := send(other, fmt.Sprintf(`{"keys":["%d"]}`, i)); status != want {
			t.Errorf("after %d calls of Close: status %d, want %d", i+1, status, want)
		}
	}
}

// TestSameWork counts the signatures that are calculated, and the bytes in them.
func TestSameWork(t *testing.T) {
	h, _ := newHandler(t)
	var work [][2]int
	h.mac = func(k []byte, timestamp string, body []byte) signature {
		work = append(work, [2]int{len(k), len(body)})
		return mac(k, timestamp, body)
	}
	h.status(signed(path, `{"keys":["a"]}`, []byte("wrong"), time.Now()))
	h.status(signed("/events/unknown", `{"keys":["a"]}`, key, time.Now()))
	r := signed(path, `{"keys":["a"]}`, key, time.Now())
	r.Header = http.Header{}
	h.status(r)
	one := [2]int{MinKey, len(`{"keys":["a"]}`)}
	if diff := cmp.Diff([][2]int{one, one, one}, work); diff != "" {
		t.Errorf("each refused request costs the same: -want, +got:\n%s", diff)
	}
}

// TestFlood sends many requests at once over connections, with wrong signatures and with large bodies.
func TestFlood(t *testing.T) {
	h, e := newHandler(t)
	acknowledge(t, e)
	url := listen(t, h)
	var counts [600]atomic.Int64
	var senders sync.WaitGroup
	start := time.Now()
	for range 20 {
		senders.Go(func() {
			for i := range 100 {
				body := `{"keys":["a"]}`
				if i%10 == 0 {
					body = strings.Repeat("x", maxBody+1)
				}
				r := signed(url+path, body, []byte("wrong"), time.Now()).WithContext(t.Context())
				r.RequestURI = ""
				a, err := http.DefaultClient.Do(r)
				if err != nil {
					continue // The server closes a connection on which it has not read a large body.
				}
				_, _ = io.Copy(io.Discard, a.Body) // Only the status counts.
				_ = a.Body.Close()
				counts[a.StatusCode].Add(1)
			}
		})
	}
	senders.Wait()
	got := map[int]int64{}
	for status := range counts {
		if n := counts[status].Load(); n > 0 {
			got[status] = n
		}
	}
	t.Logf("statuses after %s: %v", time.Since(start), got)
	for status := range got {
		if status != http.StatusUnauthorized && status != http.StatusRequestEntityTooLarge && status != http.StatusTooManyRequests {
			t.Errorf("status %d", status)
		}
	}
	if got[http.StatusUnauthorized] == 0 {
		t.Error("no request was verified")
	}
}

// listen serves a handler until the test ends, and returns its URL.
func listen(t *testing.T, h http.Handler) string {
	t.Helper()
	return "http://" + serve(t, &Server{Handler: h})
}

// serve runs a server until the test ends, and returns its address.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It does not wait.
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// TestSlowSender sends a body that does not end, on more connections than one network can use for one namespace.
func TestSlowSender(t *testing.T) {
	h, e := newHandler(t)
	acknowledge(t, e)
	url := listen(t, h)
	for range atOnce / 2 {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")) //nolint:noctx // The server is up.
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", path); err != nil {
			t.Fatal(err)
		}
	}
	send := func() int {
		r := signed(path, `{"keys":["a"]}`, []byte("wrong"), time.Now())
		r.RemoteAddr = strings.TrimPrefix(url, "http://")
		return h.status(r)
	}
	until(t, func() string {
		if status := send(); status != http.StatusTooManyRequests {
			return fmt.Sprintf("status %d while the slow senders are read", status)
		}
		return ""
	})
	until(t, func() string {
		if status := send(); status != http.StatusUnauthorized {
			return fmt.Sprintf("status %d after the slow senders are cut", status)
		}
		return ""
	})
}

// TestRefused reports refused requests with their path and a reason, and no accepted one.
func TestRefused(t *testing.T) {
	h, _ := newHandler(t)
	h.within = 0
	var got []string
	h.Refused = func(path, reason string) { got = append(got, path+" "+reason) }
	for _, r := range []*http.Request{
		signed(path, `{"keys":["a"]}`, key, time.Now()),
		signed(path, `{"keys":["a"]}`, []byte("wrong"), time.Now()),
		signed("/events/unknown", `{"keys":["a"]}`, key, time.Now()),
		signed(path, `{}`, key, time.Now()),
		signed(path, strings.Repeat("x", maxBody+1), key, time.Now()),
	} {
		answer(h, r)
	}
	h.Ready.Store(false)
	answer(h, signed(path, `{"keys":["b"]}`, key, time.Now()))
	want := []string{path + " Unauthenticated", "/events/unknown Unauthenticated", path + " Malformed", path + " TooLarge", path + " NotReady"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
