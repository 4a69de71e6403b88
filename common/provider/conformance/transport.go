package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// transportChecks connect clients to other servers than the provider's. They need Harness.ConnectTo.
var transportChecks = []check{
	{"transport/unknown-authority", provider.CapabilityRead, "A server with a certificate of an unknown authority gets no request, and the message says why.", badCertificate(
		`trust|authority`, func(*x509.Certificate) {})},
	{"transport/expired-certificate", provider.CapabilityRead, "A server with an expired certificate gets no request.", badCertificate(
		`expired`, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })},
	{"transport/other-name", provider.CapabilityRead, "A server with a certificate for another host gets no request.", badCertificate(
		`name`, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"other.example"} })},
	{"transport/no-such-host", provider.CapabilityRead, "With a name that cannot be resolved no secret is NotFound, and the message says why.", noSuchHost},
	{"transport/refused", provider.CapabilityRead, "If the server does not listen, no secret is NotFound.", refused},
	{"transport/no-tls", provider.CapabilityRead, "If the server does not use TLS, no secret is NotFound.", noTLS},
	{"transport/silent", provider.CapabilityRead, "A server that accepts a connection and never answers does not block a worker beyond its context.", checkSilent},
	{"transport/garbage", provider.CapabilityRead, "An answer in another format is an error, whatever its status, and its text is not shown.", garbage},
	{"transport/cut", provider.CapabilityRead, "A truncated answer is an error.", cutOff},
	{"transport/redirect", provider.CapabilityRead, "A client does not follow redirects: its credentials are only for the server in the spec.", redirect},
	{"transport/newer", provider.CapabilityRead, "A newer server can add fields to every answer.", newerServer},
}

// enough is the maximum time of a call that should fail by itself.
const enough = 30 * time.Second

// call is one way to use a client.
type call struct {
	name string
	// run returns one error for each secret of a batch; otherwise one error.
	run func(ctx context.Context) []error
}

// calls returns all calls of the client, for an existing secret and a missing one.
func (e *env) calls(there, missing string) []call {
	get := func(key string) func(context.Context) []error {
		return func(ctx context.Context) []error {
			_, err := e.client.Get(ctx, provider.Ref{Key: key})
			return []error{err}
		}
	}
	all := []call{{"Get", get(there)}, {"Get", get(missing)}}
	if _, ok := e.client.(provider.Batcher); ok {
		refs := []provider.Ref{{Key: there}, {Key: missing}}
		all = append(all, call{"GetBatch", func(ctx context.Context) []error {
			return batchErrors(ctx, e.client, refs[:min(e.batchSize(), len(refs))])
		}})
	}
	if _, ok := e.client.(provider.Finder); ok {
		// A provider might search by path in another way than by name.
		for _, q := range []provider.Query{named("none"), {Path: e.h.Path(e.dir())}} {
			all = append(all, call{"Find", func(ctx context.Context) []error {
				_, err := list(ctx, e.client, q)
				return []error{err}
			}})
		}
	}
	if c, ok := e.client.(provider.Checker); ok {
		all = append(all, call{"Check", func(ctx context.Context) []error { return []error{c.Check(ctx)} }})
	}
	return all
}

func batchErrors(ctx context.Context, c provider.Client, refs []provider.Ref) (errs []error) {
	results := c.(provider.Batcher).GetBatch(ctx, refs)
	if len(results) != len(refs) {
		return []error{provider.NewError(provider.Invalid, "%d results for %d refs", len(results), len(refs))}
	}
	for _, r := range results {
		errs = append(errs, r.Err)
	}
	return errs
}

// worst returns the first error that accept rejects, or the first error.
func worst(errs []error, accept func(error) error) error {
	for _, err := range errs {
		if accept(err) != nil {
			return err
		}
	}
	return errs[0]
}

// elsewhere runs f with a client of a server at another URL. Connecting can fail like a call.
func (e *env) elsewhere(ctx context.Context, url string, accept func(error) error, f func(e *env) error) error {
	if e.h.ConnectTo == nil {
		return errors.New("harness: ConnectTo is missing; set it, or name \"transport\" in Without if the provider has no network")
	}
	c, err := e.h.ConnectTo(ctx, url)
	if err != nil {
		return errors.Wrap(accept(err), "connecting")
	}
	return errors.Join(f(newEnv(e.h, e.name, c)), provider.Close(c))
}

// failsAt makes every call to a server at another URL. Each must end by itself with an error that accept accepts.
func (e *env) failsAt(ctx context.Context, url string, accept func(error) error) error {
	key, err := e.put(ctx, "a")
	if err != nil {
		return err
	}
	return e.elsewhere(ctx, url, accept, func(other *env) error {
		var errs []error
		for _, c := range other.calls(key, e.key("missing")) {
			errs = append(errs, errors.Wrap(other.endsItself(ctx, c, accept), c.name))
		}
		return errors.Join(errs...)
	})
}

func (e *env) endsItself(ctx context.Context, c call, accept func(error) error) error {
	ctx, cancel := context.WithTimeout(ctx, enough)
	defer cancel()
	answer := make(chan []error, 1)
	go func() { answer <- c.run(ctx) }()
	late := time.NewTimer(enough + e.h.EndTimeout)
	defer late.Stop()
	select {
	case errs := <-answer:
		return accept(worst(errs, accept))
	case <-late.C:
		return errors.Errorf("the call continues %s after its context has ended", e.h.EndTimeout)
	}
}

// field matches the field to fix in a message.
var field = regexp.MustCompile(`\bspec\.[a-z]`)

// wantMessage returns a check of errors of calls without an answer, whose message must match patterns and name a field of
// the spec. It ignores the name of the check, which is part of every key.
func (e *env) wantMessage(patterns ...string) func(error) error {
	return func(err error) error {
		if err := notAnswered(err); err != nil {
			return err
		}
		text := strings.ReplaceAll(provider.Safe(err).Error(), e.dir(), "")
		for _, p := range append(patterns, field.String()) {
			if !regexp.MustCompile(p).MatchString(text) {
				return errors.Errorf("the message does not match %s: %s", p, text)
			}
		}
		return nil
	}
}

// at runs f with a server.
func at(h http.Handler, c *tls.Certificate, f func(s *server) error) error {
	s, err := serve(h, c)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.close())
}

// badCertificate connects a client to the provider's own server, through a proxy with an invalid certificate.
func badCertificate(pattern string, change func(*x509.Certificate)) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		c, err := certificate(change)
		if err != nil {
			return err
		}
		h, err := forward(e.h.Server, nil)
		if err != nil {
			return err
		}
		return at(h, c, func(s *server) error {
			err := e.failsAt(ctx, s.URL, e.wantMessage("certificate", pattern))
			return errors.Join(err, s.untouched())
		})
	}
}

// untouched returns an error if the server has received a request.
func (s *server) untouched() error {
	if n := s.requests.Load(); n > 0 {
		return errors.Errorf("%d requests were sent, want none", n)
	}
	return nil
}

func noSuchHost(ctx context.Context, e *env) error {
	return e.failsAt(ctx, "https://no-such-host.invalid", e.wantMessage("resolve"))
}

func refused(ctx context.Context, e *env) error {
	url, err := closedPort()
	if err != nil {
		return err
	}
	return e.failsAt(ctx, url, notAnswered)
}

func noTLS(ctx context.Context, e *env) error {
	return at(http.NotFoundHandler(), nil, func(s *server) error {
		return e.failsAt(ctx, "https"+s.URL[len("http"):], notAnswered)
	})
}

func checkSilent(ctx context.Context, e *env) error {
	url, end, err := silent()
	if err != nil {
		return err
	}
	defer end()
	return e.elsewhere(ctx, url, notAnswered, func(other *env) error {
		var errs []error
		for _, c := range other.calls(e.key("a"), e.key("missing")) {
			for _, ending := range slices.Sorted(maps.Keys(endings)) {
				err := other.ends(ctx, ending, func(ctx context.Context) error { return worst(c.run(ctx), notAnswered) })
				errs = append(errs, errors.Wrapf(err, "%s, %s", c.name, ending))
			}
		}
		return errors.Join(errs...)
	})
}

func garbage(ctx context.Context, e *env) error {
	answers := map[string]struct {
		status     int
		kind, body string
	}{
		"a page":           {http.StatusOK, "text/html", "<html><body>Please log in to c4n4ry</body></html>"},
		"a page, missing":  {http.StatusNotFound, "text/html", "<html><body>No such page: c4n4ry</body></html>"},
		"a page, refused":  {http.StatusBadRequest, "text/html", "<html><body>c4n4ry</body></html>"},
		"noise":            {http.StatusOK, "application/octet-stream", "c4n4ry\x00\xff\xfe"},
		"noise as JSON":    {http.StatusOK, "application/json", "c4n4ry"},
		"noise as frames":  {http.StatusOK, "application/grpc", "\x00\xff\xff\xff\xffc4n4ry"},
		"nothing":          {http.StatusOK, "text/plain", ""},
		"nothing, missing": {http.StatusNotFound, "text/plain", ""},
		"nothing at all":   {http.StatusNoContent, "", ""},
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		a := answers[name]
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", a.kind)
			w.WriteHeader(a.status)
			_, _ = io.WriteString(w, a.body) // The client might have closed the connection.
		})
		errs = append(errs, errors.Wrap(at(h, nil, func(s *server) error { return e.failsAt(ctx, s.URL, notAnswered) }), name))
	}
	return errors.Join(errs...)
}

// cutOff sends only half of each answer: once with a broken connection, and once with a matching length.
func cutOff(ctx context.Context, e *env) error {
	ways := map[string]func(*http.Response, []byte) error{
		"broken connection": func(r *http.Response, half []byte) error {
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader(half), broken{}), r.Body}
			return nil
		},
		"short body": replace,
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		h, err := forward(e.h.Server, func(r *http.Response) error {
			raw, err := io.ReadAll(r.Body)
			if err == nil && len(raw) == 0 {
				err = errors.New("an empty answer cannot be cut in half; the proxy sends a 502 instead")
			}
			if err != nil {
				return err
			}
			return ways[name](r, raw[:len(raw)/2])
		})
		if err != nil {
			return err
		}
		errs = append(errs, errors.Wrap(at(h, nil, func(s *server) error { return e.failsAt(ctx, s.URL, notAnswered) }), name))
	}
	return errors.Join(errs...)
}

// broken is the end of a connection that breaks.
type broken struct{}

// Read implements io.Reader.
func (broken) Read([]byte) (int, error) { return 0, net.ErrClosed }

func redirect(ctx context.Context, e *env) error {
	good, err := forward(e.h.Server, nil)
	if err != nil {
		return err
	}
	return at(good, nil, func(other *server) error {
		var errs []error
		for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, other.URL+r.URL.RequestURI(), status)
			})
			errs = append(errs, errors.Wrapf(at(h, nil, func(s *server) error { return e.failsAt(ctx, s.URL, notAnswered) }), "status %d", status))
		}
		return errors.Join(append(errs, other.untouched())...)
	})
}

// newerServer makes every call to the provider's own server, with unknown fields added to its answers.
func newerServer(ctx context.Context, e *env) error {
	names := leaves("newer", 3)
	refs, err := e.putAll(ctx, names...)
	if err != nil {
		return err
	}
	var changed atomic.Int64
	h, err := forward(e.h.Server, func(r *http.Response) error {
		more, err := newer(r)
		if more {
			changed.Add(1)
		}
		return err
	})
	if err != nil {
		return err
	}
	plain := func(err error) error { return err }
	return at(h, nil, func(s *server) error {
		err := e.elsewhere(ctx, s.URL, plain, func(other *env) error {
			_, err := other.get(ctx, provider.Ref{Key: refs[0].Key, Metadata: other.h.hasMetadata()})
			errs := []error{err, other.everyCall(ctx, "newer-", names, refs, 1)}
			if _, ok := other.client.(provider.Finder); ok {
				errs = append(errs, other.finds(ctx, provider.Query{Path: e.h.Path(e.dir())}, names...))
			}
			return errors.Join(errs...)
		})
		if err == nil && changed.Load() == 0 {
			err = errors.New("harness: no answer came through the URL of ConnectTo, or the test server does not set Content-Type to that of its format, such as application/json")
		}
		return err
	})
}
