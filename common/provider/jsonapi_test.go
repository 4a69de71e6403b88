package provider_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestJSONAPI has one answer in each case.
func TestJSONAPI(t *testing.T) {
	type result struct {
		Name  string
		Class provider.Class
		Error string
	}
	for name, tc := range map[string]struct {
		reason  string
		method  string
		status  int
		body    string
		retries string
		want    result
	}{
		"Read":     {"An answer is decoded.", http.MethodGet, 200, `{"name":"db"}`, "", result{Name: "db"}},
		"Created":  {"So is that to a creation.", http.MethodPost, 201, `{"name":"db"}`, "", result{Name: "db"}},
		"Damaged":  {"One that is no JSON comes from another server.", http.MethodGet, 200, `<html>`, "", result{Class: provider.Unavailable, Error: "reading: spec.url: the response is not that of Acme; check the address"}},
		"Empty":    {"So does one without content that should have some.", http.MethodGet, 204, "", "", result{Class: provider.Unavailable, Error: "reading: spec.url: the response is not that of Acme; check the address"}},
		"Throttle": {"A service, or a proxy, can ask to wait.", http.MethodGet, 429, "", "7", result{Class: provider.Throttled, Error: "reading: Acme throttles the calls; retrying with back-off (7s)"}},
		"Missing":  {"The module classifies other answers.", http.MethodGet, 404, "acme: none", "", result{Class: provider.NotFound, Error: "reading: does not exist"}},
		"Field":    {"An error that names a field needs no more.", http.MethodGet, 401, "acme: login", "", result{Class: provider.Denied, Error: "spec.token: is not accepted"}},
		"Deleted":  {"A deletion has no content.", http.MethodDelete, 204, "", "", result{}},
		"Known":    {"If it has some, nothing is read from it.", http.MethodDelete, 200, `{"name":"db"}`, "", result{}},
		"Login":    {"A page is not the answer to a deletion.", http.MethodDelete, 200, `<html>`, "", result{Class: provider.Unavailable, Error: "reading: spec.url: the response is not that of Acme; check the address"}},
		"Proxy":    {"A 404 of another server is not one of the service.", http.MethodGet, 404, "none", "", result{Class: provider.Unavailable, Error: "reading: spec.url: the response is not that of Acme; check the address"}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer t" || r.URL.Path != "/v1/db" {
					t.Errorf("the request %s has the header %q", r.URL, r.Header.Get("Authorization"))
				}
				w.Header().Set("Retry-After", tc.retries)
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body) // The client reads all of it.
			}))
			defer srv.Close()
			a := &provider.JSONAPI{
				Service: "Acme", Field: "spec.url", URL: srv.URL, HTTP: srv.Client(),
				Authorization: func(context.Context) (string, error) { return "Bearer t", nil },
				Refused: func(_ string, status int, body []byte) *provider.Error {
					switch {
					case string(body) == "acme: none" && status == 404:
						return provider.NewError(provider.NotFound, "does not exist")
					case string(body) == "acme: login":
						return provider.NewError(provider.Denied, "spec.token: is not accepted")
					}
					return nil
				},
			}
			var out struct {
				Name string `json:"name"`
			}
			var got result
			var into any = &out
			if tc.method == http.MethodDelete {
				into = nil
			}
			if err := a.Call(t.Context(), "reading", tc.method, "/v1/db", nil, into); err != nil {
				got = result{Class: provider.ClassOf(err), Error: err.Error()}
				if wait := provider.RetryAfter(err); wait > 0 {
					got.Error += fmt.Sprintf(" (%s)", wait.Round(time.Second))
				}
			}
			got.Name = out.Name
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
