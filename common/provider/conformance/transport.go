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

// transportChecks lead clients to servers other than the provider's. They need Harness.ConnectTo.
var transportChecks = []check{
	{"transport/unknown-authority", provider.CapabilityRead, "A server whose certificate nobody vouches for gets no request, and the user is told.", badCertificate(
		`trust|authority`, func(*x509.Certificate) {})},
	{"transport/expired-certificate", provider.CapabilityRead, "Nor does one whose certificate has expired.", badCertificate(
		`expired`, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })},
	{"transport/other-name", provider.CapabilityRead, "Nor does one whose certificate is for another host.", badCertificate(
		`name`, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"other.example"} })},
	{"transport/no-such-host", provider.CapabilityRead, "A name that does not resolve proves nothing, and the user is told.", noSuchHost},
	{"transport/refused", provider.CapabilityRead, "Where nobody listens no secret is known to be missing.", refused},
	{"transport/no-tls", provider.CapabilityRead, "Nor where a server does not speak TLS.", noTLS},
	{"transport/silent", provider.CapabilityRead, "A server that takes a connection and never answers holds no worker longer than its context.", silence},
	{"transport/garbage", provider.CapabilityRead, "What is not the provider's language is no answer, whatever its status, and is not shown.", garbage},
	{"transport/cut", provider.CapabilityRead, "An answer that breaks off is none.", cutOff},
	{"transport/redirect", provider.CapabilityRead, "Credentials are for the server that the spec names: nothing follows a redirect.", redirect},
	{"transport/newer", provider.CapabilityRead, "A server that is newer than the client may say more, in every answer.", newerServer},
}

// enough is how long a call may go on that should fail by itself.
const enough = 30 * time.Second

// A call is one way to use a client.
type call struct {
	name string
	// run returns one error for each secret of a batch; else one.
	run func(ctx context.Context) []error
}

// calls are those that the client offers, for a secret that is there and one that is not.
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
		// A provider may find by a path in another way than by a name.
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

// worst returns the first error that judge finds fault with, else the first.
func worst(errs []error, judge func(error) error) error {
	for _, err := range errs {
		if judge(err) != nil {
			return err
		}
	}
	return errs[0]
}

// elsewhere runs f with a client of a server at another URL. Connecting may fail as calls may.
func (e *env) elsewhere(ctx context.Context, url string, judge func(error) error, f func(e *env) error) error {
	if e.h.ConnectTo == nil {
		return errors.New("harness: ConnectTo is missing; set it, or name \"transport\" in Without if there is no network")
	}
	c, err := e.h.ConnectTo(ctx, url)
	if err != nil {
		return errors.Wrap(judge(err), "connecting")
	}
	return errors.Join(f(&env{h: e.h, name: e.name, client: c}), provider.Close(c))
}

// failsAt makes every call to a server at another URL. Each must end by itself with an error that
// judge finds no fault with.
func (e *env) failsAt(ctx context.Context, url string, judge func(error) error) error {
	key, err := e.put(ctx, "a")
	if err != nil {
		return err
	}
	return e.elsewhere(ctx, url, judge, func(other *env) error {
		var errs []error
		for _, c := range other.calls(key, e.key("missing")) {
			errs = append(errs, errors.Wrap(other.endsItself(ctx, c, judge), c.name))
		}
		return errors.Join(errs...)
	})
}

func (e *env) endsItself(ctx context.Context, c call, judge func(error) error) error {
	ctx, cancel := context.WithTimeout(ctx, enough)
	defer cancel()
	answer := make(chan []error, 1)
	go func() { answer <- c.run(ctx) }()
	late := time.NewTimer(enough + e.h.Patience)
	defer late.Stop()
	select {
	case errs := <-answer:
		return judge(worst(errs, judge))
	case <-late.C:
		return errors.Errorf("the call goes on %s after its context ended", e.h.Patience)
	}
}

// field is how a message names what to mend.
var field = regexp.MustCompile(`\bspec\.[a-z]`)

// tells returns a judge of errors that proved nothing, and whose message must match patterns and name
// a field of the spec. The name of the check, which is in every key, does not count.
func (e *env) tells(patterns ...string) func(error) error {
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

// at serves for as long as f runs.
func at(h http.Handler, c *tls.Certificate, f func(s *server) error) error {
	s, err := serve(h, c)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.close())
}

// badCertificate leads a client to the provider's own server, behind a certificate that is no good.
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
			err := e.failsAt(ctx, s.URL, e.tells("certificate", pattern))
			return errors.Join(err, s.untouched())
		})
	}
}

// untouched returns an error if a request has come in.
func (s *server) untouched() error {
	if n := s.requests.Load(); n > 0 {
		return errors.Errorf("%d requests were sent where none must go", n)
	}
	return nil
}

func noSuchHost(ctx context.Context, e *env) error {
	return e.failsAt(ctx, "https://no-such-host.invalid", e.tells("resolve"))
}

func refused(ctx context.Context, e *env) error {
	url, err := nobody()
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

func silence(ctx context.Context, e *env) error {
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
			_, _ = io.WriteString(w, a.body) // The client may have left.
		})
		errs = append(errs, errors.Wrap(at(h, nil, func(s *server) error { return e.failsAt(ctx, s.URL, notAnswered) }), name))
	}
	return errors.Join(errs...)
}

// cutOff has only half of each answer arrive: once the connection breaks, once it all looks complete.
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
				err = errors.New("half of nothing is a whole answer; a 502 takes its place")
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

// newerServer makes every call to the provider's own server, whose answers get fields that nobody knows.
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
			_, err := other.get(ctx, provider.Ref{Key: refs[0].Key, Metadata: true})
			errs := []error{err, other.everyCall(ctx, "newer-", names, refs, 1)}
			if _, ok := other.client.(provider.Finder); ok {
				errs = append(errs, other.finds(ctx, provider.Query{Path: e.h.Path(e.dir())}, names...))
			}
			return errors.Join(errs...)
		})
		if err == nil && changed.Load() == 0 {
			err = errors.New("harness: no answer came by the way of the URL that ConnectTo was given, or none of a known content type")
		}
		return err
	})
}
