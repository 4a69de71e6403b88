package awsconfig

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

func FuzzParseEndpoint(f *testing.F) {
	for _, s := range []string{"", "https://aws.example", "http://127.0.0.1:4566", "http://[::1]", "http://127.0.0.1@aws.example", "HTTP://localhost", "http://[::ffff:127.0.0.1]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		endpoint, err := parseEndpoint(raw, nil)
		if err != nil || endpoint == nil {
			return
		}
		r, err := http.NewRequest(http.MethodPost, *endpoint, http.NoBody)
		if err != nil {
			t.Fatalf("%q is accepted, but no request can be made: %s", raw, err)
		}
		ip, _ := netip.ParseAddr(r.URL.Hostname())
		if r.URL.Scheme != "https" && !ip.Unmap().IsLoopback() && !strings.EqualFold(r.URL.Hostname(), "localhost") {
			t.Errorf("%q is accepted: signed requests would go to %s in the clear", raw, r.URL.Host)
		}
	})
}
