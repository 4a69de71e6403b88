package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// A JSONAPI calls a service by JSON over HTTP. It never repeats a request, and shows no text of an answer.
type JSONAPI struct {
	// Service is the name of the service, and Field the field of the spec with its address. Both are for errors.
	Service, Field string
	// URL is the address, without a slash at the end.
	URL string
	// HTTP is that of NewHTTPClient, which limits answers and follows no redirects.
	HTTP *http.Client
	// Authorization returns the header of that name.
	Authorization func(ctx context.Context) (string, error)
	// Refused classifies an answer that is not a success. It returns nil unless the answer has the form that the service gives its errors:
	// a proxy can also answer. An error that begins with a field of the spec stays as it is. Throttled answers do not get there.
	Refused func(method string, status int, body []byte) *Error
}

// Call sends a request with in as its body, and decodes the answer into out; nil for none. what is what is done, such as "listing vaults".
// Errors begin with it.
func (a *JSONAPI) Call(ctx context.Context, what, method, path string, in, out any) error {
	raw, err := a.Send(ctx, what, method, path, in)
	switch {
	case err != nil:
		return err
	case out == nil && len(raw) == 0:
		return nil
	case out == nil: // The page of a proxy is no proof that anything was done.
		out = &json.RawMessage{}
	}
	if json.Unmarshal(raw, out) != nil {
		return a.Foreign(what)
	}
	return nil
}

// Foreign returns the error of an answer that is not one of the service.
func (a *JSONAPI) Foreign(what string) error {
	return NewError(Unavailable, "%s: %s: the response is not that of %s; check the address", what, a.Field, a.Service)
}

// Send is Call for an answer in another format. It returns the body.
func (a *JSONAPI) Send(ctx context.Context, what, method, path string, in any) ([]byte, error) {
	var raw []byte
	if in != nil {
		raw = EncodeJSON(in)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.URL+path, bytes.NewReader(raw))
	if err != nil {
		return nil, NewError(Invalid, "%s: is not the URL of %s", a.Field, a.Service)
	}
	login, err := a.Authorization(ctx)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", login)
	req.Header.Set("User-Agent", "direct-secrets")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := a.HTTP.Do(req)
	if err != nil {
		return nil, a.unanswered(what, err)
	}
	defer func() { _ = resp.Body.Close() }() // The body has been read.
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, a.unanswered(what, err)
	case resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusCreated, method == http.MethodDelete && resp.StatusCode == http.StatusNoContent:
		return body, nil
	case resp.StatusCode == http.StatusTooManyRequests: // A proxy can also throttle.
		e := NewError(Throttled, "%s: %s throttles the calls; retrying with back-off", what, a.Service)
		e.RetryAfter = RetryAfterHeader(resp.Header)
		return nil, e
	}
	switch e := a.Refused(method, resp.StatusCode, body); {
	case e == nil:
		return nil, a.Foreign(what)
	case strings.HasPrefix(e.Message, "spec."):
		return nil, e
	default:
		return nil, NewError(e.Class, "%s: %s", what, e)
	}
}

// unanswered returns the error of a request without an answer that could be read.
func (a *JSONAPI) unanswered(what string, err error) error {
	if fault := CertificateFaultOf(err); fault != "" {
		return NewError(Unavailable, "%s: %s: the server's certificate %s; correct spec.caBundle or spec.caProvider", what, a.Field, fault)
	}
	e := *Safe(err)
	e.Message = what + ": " + a.Field + ": " + e.Message
	return &e
}
