package emulator

import (
	"net/http"
	"net/url"
)

// Divert returns a function that makes a transport send the requests to all hosts to the Server, which sees the name of the host as
// Azure does. seen is called before each request, if it is set.
func (s *Server) Divert(seen func(*http.Request)) func(http.RoundTripper) http.RoundTripper {
	to, err := url.Parse(s.URL())
	if err != nil {
		panic(err) // The server has made the address.
	}
	return func(next http.RoundTripper) http.RoundTripper { return diversion{to, next, seen} }
}

type diversion struct {
	to   *url.URL
	next http.RoundTripper
	seen func(*http.Request)
}

// RoundTrip implements http.RoundTripper.
func (d diversion) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.seen != nil {
		d.seen(r)
	}
	r = r.Clone(r.Context())
	r.Host = r.URL.Host
	r.URL.Scheme, r.URL.Host = d.to.Scheme, d.to.Host
	return d.next.RoundTrip(r)
}
