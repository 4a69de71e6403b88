package awsconfig

import (
	"net"
	"net/url"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/store"
)

// parseEndpoint returns nil for an unset endpoint. Credentials sign every request, so plain http is
// for the operator's own host only.
func parseEndpoint(raw string) (*string, error) {
	if raw == "" {
		return nil, nil
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Hostname() == "":
		return nil, store.NewError(store.Invalid, "spec.endpoint: is not a URL; write it as https://host:port")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, store.NewError(store.Invalid, "spec.endpoint: must have no user, query or fragment; write it as https://host:port")
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return &raw, nil
	case u.Scheme == "http":
		return nil, store.NewError(store.Invalid, "spec.endpoint: plain http is for the operator's own host (127.0.0.1, localhost) only; use https")
	}
	return nil, store.NewError(store.Invalid, "spec.endpoint: must begin with https://")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}
