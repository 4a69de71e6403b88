package awstest

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Secret stands for a secret value in the answer of a fuzzed server. No message may show it.
const Secret = "hunter2 "

// An Answer is an HTTP client of the SDK that returns the same answer to the first requests, and empty ones
// later.
type Answer struct {
	Status int
	// Code is the value of the header that names an error.
	Code, RetryAfter, Body string

	asked int
}

// Do implements the SDK's HTTPClient.
func (a *Answer) Do(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: http.NoBody, Request: r}
	if a.asked++; a.asked > 4 { // Without this limit the client would fetch pages forever.
		return resp, nil
	}
	resp.StatusCode, resp.Body = a.Status, io.NopCloser(strings.NewReader(a.Body))
	resp.Header.Set("Content-Type", "application/x-amz-json-1.1")
	resp.Header.Set("X-Amzn-ErrorType", a.Code)
	resp.Header.Set("Retry-After", a.RetryAfter)
	return resp, nil
}

// Check fails the test if an error is more definite than the answer was, or shows Secret. definite lists the
// error codes of AWS that mean "does not exist".
func (a *Answer) Check(t *testing.T, err error, definite ...string) {
	t.Helper()
	if err == nil {
		return
	}
	e := provider.Safe(err)
	if e.Class == provider.NotFound && !slices.ContainsFunc(definite, func(code string) bool { return strings.Contains(a.Code+a.Body, code) }) {
		t.Errorf("%+v is taken for a definite answer: %v", a, err)
	}
	if strings.Contains(e.Message, Secret) || len(e.Message) > 2000 {
		t.Errorf("%+v: the message shows what AWS wrote: %q", a, e.Message)
	}
	if e.RetryAfter < 0 || e.RetryAfter > 5*time.Minute {
		t.Errorf("%+v: it is held back for %s", a, e.RetryAfter)
	}
}
