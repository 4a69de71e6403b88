package provider

import (
	"net"
	"net/url"
	"strings"
)

// A PlainHTTPAllower is a Credentials that reports whether the operator allows stores to connect without TLS.
type PlainHTTPAllower interface {
	PlainHTTPAllowed() bool
}

// ParseURL parses the URL of a service in a field of a spec. A login without TLS would show its credentials to anyone
// who can read the traffic. So plain http is allowed only for the operator's own host, unless --allow-plain-http is
// set. Errors have class Invalid.
func ParseURL(creds Credentials, field, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Hostname() == "":
		return nil, NewError(Invalid, "%s: is not a URL; write it as https://host:port", field)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, NewError(Invalid, "%s: must have no user, query or fragment; write it as https://host:port", field)
	case u.Scheme == "https", u.Scheme == "http" && (Loopback(u.Hostname()) || plainAllowed(creds)):
		return u, nil
	case u.Scheme == "http":
		return nil, NewError(Invalid, "%s: plain http is for the operator's own host (127.0.0.1, localhost) only; use https", field)
	}
	return nil, NewError(Invalid, "%s: must begin with https://", field)
}

func plainAllowed(creds Credentials) bool {
	a, ok := creds.(PlainHTTPAllower)
	return ok && a.PlainHTTPAllowed()
}

// Loopback reports whether a host is the operator's own, by its address or as localhost.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}
