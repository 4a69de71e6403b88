package gcpconfig

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A poster sends the requests of logins.
type poster struct {
	client  *http.Client
	retries retries
}

// A refusal is the error answer to a login.
type refusal struct {
	status     int
	code       string // the code of OAuth or of Google's APIs; empty if the answer has none in that form
	retryAfter time.Duration
}

// Error returns only the status: the text of an answer can repeat what was sent.
func (r *refusal) Error() string { return "status " + strconv.Itoa(r.status) }

// refusals maps the error codes of a login to their meanings.
type refusals map[string]refused

type refused struct {
	class provider.Class
	// field is that of the login if it is empty.
	field, text string
}

// badScope is the meaning of the code invalid_scope for every login.
var badScope = refused{provider.Invalid, scopesField, "the scope does not exist at Google, or is not available to this identity; see https://developers.google.com/identity/protocols/oauth2/scopes"}

// explain turns the failure of a login into a provider.Error, which is never NotFound.
func (m refusals) explain(field string, err error) *provider.Error {
	var own *provider.Error
	var r *refusal
	switch {
	case errors.As(err, &own):
		return own
	case !errors.As(err, &r):
		e := explainTransport(err)
		e.Message = field + ": cannot log in: " + e.Message
		return e
	case r.status == http.StatusTooManyRequests:
		e := provider.NewError(provider.Throttled, "%s: cannot log in: Google throttles the calls; retrying with back-off", field)
		e.RetryAfter = r.retryAfter
		return e
	}
	if known, ok := m[r.code]; ok && r.status < http.StatusInternalServerError {
		return provider.NewError(known.class, "%s: %s", cmp.Or(known.field, field), known.text)
	}
	if r.status == http.StatusUnauthorized || r.status == http.StatusForbidden {
		return provider.NewError(provider.Denied, "%s: Google denies the login with status %d", field, r.status)
	}
	if r.code != "" {
		return provider.NewError(provider.Unavailable, "%s: cannot log in: Google returned status %d (%s)", field, r.status, r.code)
	}
	return provider.NewError(provider.Unavailable, "%s: cannot log in: Google returned status %d", field, r.status)
}

// form posts a form to an OAuth endpoint.
func (p poster) form(ctx context.Context, to string, form url.Values) (provider.Token, error) {
	var out struct {
		AccessToken string  `json:"access_token"`
		ExpiresIn   float64 `json:"expires_in"`
	}
	since, err := p.post(ctx, to, "application/x-www-form-urlencoded", "", form.Encode(), &out)
	if err != nil {
		return provider.Token{}, err
	}
	return newToken(out.AccessToken, since, since.Add(time.Duration(min(max(out.ExpiresIn, 0), 86400)*float64(time.Second))))
}

// impersonate requests a token of a service account from the IAM Credentials API.
func (p poster) impersonate(ctx context.Context, to, bearer string, scopes []string) (provider.Token, error) {
	var out struct {
		AccessToken string    `json:"accessToken"`
		ExpireTime  time.Time `json:"expireTime"`
	}
	body, err := json.Marshal(map[string]any{"scope": scopes, "lifetime": impersonatedLifetime})
	if err != nil {
		return provider.Token{}, err
	}
	since, err := p.post(ctx, to, "application/json", bearer, string(body), &out)
	if err != nil {
		return provider.Token{}, err
	}
	return newToken(out.AccessToken, since, out.ExpireTime)
}

// tokenText matches tokens that are valid in a header.
var tokenText = regexp.MustCompile(`^[A-Za-z0-9._~+/=|:-]+$`)

func newToken(value string, since, expiry time.Time) (provider.Token, error) {
	if !tokenText.MatchString(value) || !since.Before(expiry) {
		return provider.Token{}, provider.NewError(provider.Unavailable, "cannot log in: the response of Google has no access token or no expiry")
	}
	return provider.Token{Value: value, Since: since, Expiry: expiry}, nil
}

// post sends a request, with retries, and decodes the answer. It returns the time when the request was sent.
func (p poster) post(ctx context.Context, to, contentType, bearer, body string, out any) (sent time.Time, err error) {
	err = p.retries.do(ctx, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body))
		if err != nil {
			return provider.NewError(provider.Invalid, "cannot log in: its address is not valid")
		}
		req.Header.Set("Content-Type", contentType)
		req.Header.Set("User-Agent", userAgent)
		if bearer != "" {
			req.Header.Set("Authorization", "Bearer "+bearer)
		}
		sent = time.Now()
		resp, err := p.client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }() // the needed part has been read
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxLogin))
		switch {
		case resp.StatusCode != http.StatusOK:
			return newRefusal(resp, raw)
		case err != nil:
			return err
		case json.Unmarshal(raw, out) != nil:
			return provider.NewError(provider.Unavailable, "cannot log in: the response of Google is damaged")
		}
		return nil
	})
	return sent, err
}

var plainCode = regexp.MustCompile(`^[A-Za-z_]{1,64}$`)

// newRefusal decodes an error in the format of OAuth or of Google's APIs.
func newRefusal(resp *http.Response, raw []byte) *refusal {
	r := &refusal{status: resp.StatusCode, retryAfter: provider.RetryAfterHeader(resp.Header)}
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(raw, &body) != nil {
		return r
	}
	var code string
	var detail struct {
		Status string `json:"status"`
	}
	if json.Unmarshal(body.Error, &code) != nil && json.Unmarshal(body.Error, &detail) == nil {
		code = detail.Status
	}
	if plainCode.MatchString(code) {
		r.code = code
	}
	return r
}
