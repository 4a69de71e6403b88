package stack

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// A Proxy is in front of the API server. It passes everything on immediately, with two exceptions. It can delay
// the events of watches, so that processes behind it act on outdated state. And it can hold requests, so that a
// process can be killed at that very moment. It counts the requests that write.
type Proxy struct {
	stack  *Stack
	url    string
	ca     []byte
	server *http.Server

	mu     sync.Mutex
	holds  []*hold
	writes map[Write]int
}

// StartProxy starts a Proxy. delay returns the present delay of a watch; nil means none. It is called again
// each time that such a delay has passed, also by several watches concurrently.
func (s *Stack) StartProxy(delay func() time.Duration) (*Proxy, error) {
	addresses, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	p := &Proxy{stack: s, url: "https://" + addresses[0], writes: map[Write]int{}}
	next, err := forward(s.Config(), delay)
	if err != nil {
		return nil, err
	}
	p.server = &http.Server{Handler: p.holding(p.counting(next)), ErrorLog: next.ErrorLog, ReadHeaderTimeout: time.Minute}
	// Clients send the token of a kubeconfig only over TLS.
	crt, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil {
		return nil, err
	}
	p.ca = crt
	p.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	listener, err := net.Listen("tcp", addresses[0])
	if err != nil {
		return nil, err
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }() // It ends with Stop.
	return p, nil
}

// forward returns a handler that passes requests on to the API server of cfg, with their own tokens.
func forward(cfg *rest.Config, delay func() time.Duration) (*httputil.ReverseProxy, error) {
	to, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(&rest.Config{Host: cfg.Host, TLSClientConfig: cfg.TLSClientConfig})
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // A client that ends its watch is not an error.
		ModifyResponse: func(resp *http.Response) error {
			ctx := resp.Request.Context()
			if h, ok := ctx.Value(holdKey{}).(*hold); ok {
				return h.keep(ctx)
			}
			if delay != nil && resp.Request.URL.Query().Get("watch") == "true" {
				resp.Body = newLate(ctx, resp.Body, delay)
			}
			return nil
		},
	}, nil
}

// Stop stops the Proxy. The processes behind it should have ended before.
func (p *Proxy) Stop() error { return p.server.Close() }

// Kubeconfig writes a kubeconfig that connects a module through the Proxy, and returns its path, for the flag
// --kubeconfig of StartModule.
func (p *Proxy) Kubeconfig(ctx context.Context, module string) (string, error) {
	return p.stack.Kubeconfig(ctx, module, p)
}

// late is a body that delivers its bytes in order, but late.
type late struct {
	io.ReadCloser
	chunks chan chunk
	ended  <-chan struct{}

	now chunk
}

// chunk is the data of one read, and when it becomes visible.
type chunk struct {
	data []byte
	err  error
	due  time.Time
}

// maxWaiting is the maximum number of waiting chunks of a watch. It is more than any scenario needs. A watch
// that has to wait for its reader would be later than requested.
const maxWaiting = 1 << 14

// newLate returns a body for the duration of a request, whose context is ctx.
func newLate(ctx context.Context, body io.ReadCloser, delay func() time.Duration) *late {
	l := &late{ReadCloser: body, chunks: make(chan chunk, maxWaiting), ended: ctx.Done()}
	go l.receive(delay)
	return l
}

func (l *late) receive(delay func() time.Duration) {
	var by time.Duration
	var until, last time.Time
	for {
		buffer := make([]byte, 4096)
		n, err := l.ReadCloser.Read(buffer)
		now := time.Now()
		if now.After(until) {
			by = delay()
			until = now.Add(by)
		}
		if due := now.Add(by); due.After(last) {
			last = due
		}
		select {
		case l.chunks <- chunk{data: buffer[:n], err: err, due: last}:
		case <-l.ended:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read waits until a chunk is due.
func (l *late) Read(p []byte) (int, error) {
	for len(l.now.data) == 0 {
		if l.now.err != nil {
			return 0, l.now.err
		}
		select {
		case l.now = <-l.chunks:
		case <-l.ended:
			return 0, net.ErrClosed
		}
		select {
		case <-time.After(time.Until(l.now.due)):
		case <-l.ended:
			return 0, net.ErrClosed
		}
	}
	n := copy(p, l.now.data)
	l.now.data = l.now.data[n:]
	return n, nil
}
