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
	u, plain, err := parseURL(field, raw)
	if err == nil && plain && !plainAllowed(creds) {
		return nil, onlyLoopback(field, "")
	}
	return u, err
}

// ParseServer is ParseURL for a server whose store has the field spec.allowPlainHTTP, with which plain http is allowed, too. plain
// reports whether the URL is such a one.
func ParseServer(creds Credentials, field, raw string, allowPlain bool) (u *url.URL, plain bool, err error) {
	u, plain, err = parseURL(field, raw)
	if err == nil && plain && !allowPlain && !plainAllowed(creds) {
		return nil, plain, onlyLoopback(field, ", or set spec.allowPlainHTTP if the network protects the traffic")
	}
	return u, plain, err
}

func onlyLoopback(field, or string) error {
	return NewError(Invalid, "%s: plain http is for the operator's own host (127.0.0.1, localhost) only; use https%s", field, or)
}

// parseURL parses a URL. plain reports whether it is plain http to another host than the operator's own.
func parseURL(field, raw string) (u *url.URL, plain bool, err error) {
	u, err = url.Parse(raw)
	switch {
	case err != nil || u.Hostname() == "":
		return nil, false, NewError(Invalid, "%s: is not a URL; write it as https://host:port", field)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, false, NewError(Invalid, "%s: must have no user, query or fragment; write it as https://host:port", field)
	case u.Scheme == "https":
		return u, false, nil
	case u.Scheme == "http":
		return u, !Loopback(u.Hostname()), nil
	}
	return nil, false, NewError(Invalid, "%s: must begin with https://", field)
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
