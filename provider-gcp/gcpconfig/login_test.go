package gcpconfig

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestLoginAnswers(t *testing.T) {
	cases := map[string]struct {
		reason     string
		status     int
		retryAfter string
		body       string
		class      provider.Class
		part       string
		after      time.Duration
	}{
		"Good":       {"An answer with a token is accepted.", 200, "", `{"access_token":"a","expires_in":3600}`, "", "", 0},
		"NoExpiry":   {"A token without an expiry is rejected.", 200, "", `{"access_token":"a"}`, provider.Unavailable, "has no access token", 0},
		"NoToken":    {"An answer without a token is rejected.", 200, "", `{}`, provider.Unavailable, "has no access token", 0},
		"Damaged":    {"A truncated answer is rejected.", 200, "", `{"access_token":"hunter2`, provider.Unavailable, "is damaged", 0},
		"Web":        {"The web page of a proxy is rejected.", 200, "", `<html>hunter2`, provider.Unavailable, "is damaged", 0},
		"Huge":       {"An answer that is too large is rejected.", 200, "", `{"access_token":"` + strings.Repeat("a", maxLogin), provider.Unavailable, "is damaged", 0},
		"Grant":      {"The error of a rejected key names the field.", 400, "", `{"error":"invalid_grant","error_description":"hunter2"}`, provider.Denied, keyField + ": Google does not accept the key", 0},
		"Unknown":    {"An unknown code is Unavailable, and is shown.", 400, "", `{"error":"odd_one","error_description":"hunter2"}`, provider.Unavailable, "status 400 (odd_one)", 0},
		"NoCode":     {"A text that does not look like a code is not shown.", 400, "", `{"error":"hunter2 hunter2"}`, provider.Unavailable, "status 400", 0},
		"Forbidden":  {"A forbidden login is Denied.", 403, "", ``, provider.Denied, "status 403", 0},
		"NotFound":   {"A 404 of a login is not NotFound.", 404, "", `{"error":{"status":"NOT_FOUND"}}`, provider.Unavailable, "status 404 (NOT_FOUND)", 0},
		"Busy":       {"The wait that Google asks for is passed on.", 429, "7", ``, provider.Throttled, "throttles the calls", 7 * time.Second},
		"BusyHours":  {"A very long wait is capped.", 429, "86400", ``, provider.Throttled, "throttles the calls", 5 * time.Minute},
		"Down":       {"A server error is Unavailable.", 503, "", `{"error":"invalid_grant"}`, provider.Unavailable, "status 503", 0},
		"Redirect":   {"A redirect is not followed.", 307, "", ``, provider.Unavailable, "status 307", 0},
		"OddRetries": {"A wait that is not a number is ignored.", 429, "-1", ``, provider.Throttled, "throttles the calls", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var sent string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				sent = string(b)
				w.Header().Set("Location", "/elsewhere")
				if tc.retryAfter != "" {
					w.Header().Set("Retry-After", tc.retryAfter)
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer srv.Close()
			at := below(srv.URL)
			k, err := parseKey(keyFile(map[string]string{"token_uri": at.token}), at)
			if err != nil {
				t.Fatal(err)
			}
			l := keyLogin{poster: poster{client: newHTTPClient(nil)}, key: k}
			got, err := l.login(t.Context())
			if !strings.Contains(sent, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer") {
				t.Errorf("%s\nsent %q", tc.reason, sent)
			}
			if tc.class == "" {
				if err != nil || got.Value != "a" || got.Expiry.Sub(got.Since) != time.Hour {
					t.Errorf("%s\n%+v, %v", tc.reason, got, err)
				}
				return
			}
			if provider.ClassOf(err) != tc.class || !strings.Contains(err.Error(), tc.part) || strings.Contains(err.Error(), secret) {
				t.Errorf("%s\nerror %s: %v, want %s: …%s…", tc.reason, provider.ClassOf(err), err, tc.class, tc.part)
			}
			if diff := cmp.Diff(tc.after, provider.RetryAfter(err)); diff != "" {
				t.Errorf("%s\nretry after: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
