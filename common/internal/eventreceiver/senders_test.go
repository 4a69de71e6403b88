package eventreceiver

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
)

// slow is a body that does not end. It closes reading when it is read.
type slow struct{ reading, end chan struct{} }

func (s slow) Read([]byte) (int, error) {
	close(s.reading)
	<-s.end
	return 0, io.ErrUnexpectedEOF
}

// TestFloods sends requests without a right signature until they are refused, whose bodies do not end. Then other senders send requests.
func TestFloods(t *testing.T) {
	const proxy, other = "192.0.2.1:1", "198.51.100.1:1"
	cases := map[string]struct {
		reason string
		// to and from are the path and the address of each request of the flood.
		to, from func(i int) string
		// by is the address of the others.
		by string
	}{
		"OneNetwork":   {"A flood from one network, at paths that do not exist, does not refuse others.", of("/events/n%d/x"), of("192.0.2.%d:1"), other},
		"OneNamespace": {"A flood at the paths of one namespace, from everywhere, does not refuse others.", of("/events/team/x%d"), of("10.0.%d.1:1"), other},
		"OneProxy":     {"A flood at the paths of one namespace through a proxy does not refuse others behind the proxy.", of("/events/team/x%d"), func(int) string { return proxy }, proxy},
		"SamePath":     {"A flood at a path from one network does not refuse senders to this path from elsewhere.", func(int) string { return path }, of("192.0.2.%d:1"), other},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, _ := newHandler(t)
			h.within = 0
			end := make(chan struct{})
			defer close(end)
			for i, refused := 0, false; !refused; i++ {
				s := slow{make(chan struct{}), end}
				r := signed(tc.to(i), "", nil, time.Now())
				r.RemoteAddr, r.Body, r.ContentLength = tc.from(i%200), io.NopCloser(s), maxBody
				status := make(chan int, 1)
				go func() { status <- h.status(r) }()
				select {
				case <-s.reading:
				case got := <-status:
					if refused = true; got != http.StatusTooManyRequests {
						t.Errorf("request %d of the flood: status %d", i, got)
					}
				}
			}
			counts := map[int]int{}
			for i := range 20 {
				r := signed(path, fmt.Sprintf(`{"keys":["%d"]}`, i), key, time.Now())
				r.RemoteAddr = tc.by
				counts[h.status(r)]++
			}
			if diff := cmp.Diff(map[int]int{http.StatusAccepted: 20}, counts); diff != "" {
				t.Errorf("%s\nstatuses: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// of returns a function that formats a number.
func of(format string) func(int) string { return func(i int) string { return fmt.Sprintf(format, i) } }

// TestWrongSignatures sends requests as fast as possible. A right one of the same sender is accepted after them.
func TestWrongSignatures(t *testing.T) {
	h, _ := newHandler(t)
	h.within = 0
	for range 1000 {
		h.status(signed(path, `{"keys":["a"]}`, []byte("wrong"), time.Now()))
	}
	if status := h.status(signed(path, `{"keys":["a"]}`, key, time.Now())); status != http.StatusAccepted {
		t.Errorf("status %d", status)
	}
}

// TestWaiting sends requests whose refreshes take long. Above the limit of a namespace they are answered at once; one of another waits.
func TestWaiting(t *testing.T) {
	h, _ := newHandler(t)
	const other = "/events/other/ci"
	e := h.Open(other, key, nil)
	first, _ := h.find(path)
	first.limiter.SetLimit(rate.Inf)
	statuses := make(chan int)
	for i := range queued {
		r := signed(path, fmt.Sprintf(`{"keys":["%d"]}`, i), key, time.Now()).WithContext(t.Context())
		r.RemoteAddr = fmt.Sprintf("10.0.%d.1:1", i)
		go func() { statuses <- h.status(r) }()
	}
	for range queued - waiting - 1 { // One tenant can exceed its share by one.
		if status := <-statuses; status != http.StatusAccepted {
			t.Errorf("status %d", status)
		}
	}
	acknowledge(t, e)
	if status := h.status(signed(other, `{"keys":["a"]}`, key, time.Now())); status != http.StatusOK {
		t.Errorf("another namespace: status %d", status)
	}
}

func TestNamespaceOf(t *testing.T) {
	for path, want := range map[string]string{
		"/events/shop/ci": "/events/shop/", "/events/shop": "/events/shop", "/": "/", "": "", "/events/a/b/c": "/events/a/b/",
	} {
		if got := namespaceOf(path); got != want {
			t.Errorf("namespaceOf(%q) = %q, want %q", path, got, want)
		}
	}
}
