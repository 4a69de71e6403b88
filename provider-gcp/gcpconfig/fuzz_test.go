package gcpconfig

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
)

func FuzzParseEndpoint(f *testing.F) {
	for _, s := range []string{"", "https://gcp.example", "http://127.0.0.1:8080", "http://[::1]", "http://127.0.0.1@gcp.example", "HTTP://localhost", "http://[::ffff:127.0.0.1]:1", "https://[fe80::1%25eth0]", "https://a:b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		e, err := parseEndpoint(SecretManager, &v1alpha1.GCPSpec{Endpoint: raw}, noCredentials{})
		if err != nil {
			return
		}
		conn, err := dial(e, nil)
		if err != nil {
			if provider.ClassOf(err) != provider.Invalid {
				t.Errorf("%q cannot be dialled: %s", raw, err)
			}
			return
		}
		defer func() { _ = conn.Close() }() // It was never opened.
		ip, _ := netip.ParseAddr(e.host)
		local := ip.Unmap().IsLoopback() || strings.EqualFold(e.host, "localhost")
		if e.plain && !local {
			t.Errorf("%q is accepted: tokens would go to %s in the clear", raw, e.host)
		}
		if at, err := parseEmulator(raw, noCredentials{}); (err == nil) != (local || raw == "") {
			t.Errorf("%q as an emulator: %v, tokens would come from %s", raw, err, at.token)
		}
		for _, to := range []string{e.logins.token, e.logins.exchange, e.logins.impersonate} {
			u, err := url.Parse(to)
			if err != nil || u.Hostname() != e.host && !strings.HasSuffix(u.Hostname(), ".googleapis.com") || !local && u.Scheme != "https" {
				t.Errorf("%q is accepted: one would log in at %s", raw, to)
			}
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add(keyFile(nil))
	f.Add(keyFile(map[string]string{"token_uri": "https://evil.example"}))
	for _, s := range []string{"", "{}", "null", `{"type":"service_account"}`, `{"type":"service_account","client_email":"a","private_key":"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		k, err := parseKey(raw, google)
		switch {
		case err != nil && provider.ClassOf(err) != provider.Invalid:
			t.Errorf("error %v", err)
		case err == nil && k.tokenURL != google.token:
			t.Errorf("one would log in at %q", k.tokenURL)
		case err == nil && k.private.N.BitLen() < minKeyBits:
			t.Error("a short key is accepted")
		}
	})
}

// FuzzExplain explains arbitrary errors. Only a NotFound about a secret, or the state DESTROYED of a version, can be class NotFound.
func FuzzExplain(f *testing.F) {
	f.Add(uint32(codes.NotFound), "Secret [projects/1/secrets/x] not found.", "")
	f.Add(uint32(codes.FailedPrecondition), "Secret Version [projects/1/secrets/x/versions/1] is in DESTROYED state.", "")
	f.Add(uint32(codes.FailedPrecondition), "x", "DESTROYED")
	f.Add(uint32(codes.NotFound), "CryptoKey projects/x/locations/eu/keyRings/r/cryptoKeys/k not found.", "MISSING")
	f.Add(uint32(codes.PermissionDenied), "Permission 'secretmanager.versions.access' denied", "SERVICE_DISABLED")
	f.Add(uint32(codes.Unavailable), "lookup hunter2", "")
	f.Fuzz(func(t *testing.T, code uint32, message, reason string) {
		s := status.New(codes.Code(code), message)
		if with, err := s.WithDetails(&errdetails.ErrorInfo{Reason: reason}); err == nil && reason != "" {
			s = with
		}
		if s.Code() == codes.OK {
			return
		}
		e := Explain(s.Err(), "it")
		possible := s.Code() == codes.NotFound && strings.HasPrefix(message, "Secret ") ||
			s.Code() == codes.FailedPrecondition && strings.HasPrefix(message, "Secret Version [") && strings.Contains(message, "is in DESTROYED state")
		if e.Class == provider.NotFound && !possible {
			t.Errorf("%s %q %q is NotFound", s.Code(), message, reason)
		}
		if len(e.Message) > 500 {
			t.Errorf("the message has %d characters", len(e.Message))
		}
		if strings.Contains(e.Message, "hunter2") {
			t.Errorf("the message shows what Google wrote: %s", e.Message)
		}
	})
}

// FuzzRefusal explains arbitrary answers to a login. None is class NotFound.
func FuzzRefusal(f *testing.F) {
	for _, s := range []string{"", "{}", `{"error":"invalid_grant"}`, `{"error":{"status":"NOT_FOUND"}}`, `{"error":[]}`, `{"error":"hunter2 x"}`} {
		f.Add(400, s, "7")
	}
	f.Fuzz(func(t *testing.T, code int, body, retryAfter string) {
		r := newRefusal(&http.Response{StatusCode: code, Header: http.Header{"Retry-After": {retryAfter}}}, []byte(body))
		for _, m := range []refusals{keyRefusals, exchangeRefusals(accountField), impersonationRefusals, ambientRefusals} {
			e := m.explain("field", r)
			if e.Class == provider.NotFound || e.RetryAfter < 0 || strings.Contains(e.Message, "hunter2 ") || len(e.Message) > 500 {
				t.Errorf("%d %q: %s: %s (%s)", code, body, e.Class, e.Message, e.RetryAfter)
			}
		}
	})
}
