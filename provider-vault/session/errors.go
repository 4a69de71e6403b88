package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Statuses that Vault has beside those of HTTP; see https://developer.hashicorp.com/vault/api-docs#http-status-codes.
const (
	statusRecoveryStandby = 472
	statusStandby         = 473
)

// A meaning is what a status says of a request that reached Vault.
type meaning struct {
	class provider.Class
	text  string
}

const standby = "the node is a standby that does not answer; set spec.server to the address of the active node"

// meanings classify the statuses of Vault. Whatever is not listed is Unavailable; 404 is told apart
// by what comes with it.
var meanings = map[int]meaning{
	http.StatusBadRequest:         {provider.Invalid, "Vault rejects the request as not valid"},
	http.StatusForbidden:          {provider.Denied, "access denied"},
	http.StatusMethodNotAllowed:   {provider.Invalid, "Vault cannot do that there; check spec.path and spec.version"},
	http.StatusPreconditionFailed: {provider.Unavailable, "the node lags behind"},
	http.StatusTooManyRequests:    {provider.Throttled, "Vault asks for fewer calls"},

	http.StatusInternalServerError: {provider.Unavailable, "Vault has an internal error"},
	http.StatusBadGateway:          {provider.Unavailable, "Vault, or a proxy in front of it, cannot reach what it needs"},
	http.StatusServiceUnavailable:  {provider.Unavailable, "Vault is sealed, or not up yet"},
	statusRecoveryStandby:          {provider.Unavailable, standby},
	statusStandby:                  {provider.Unavailable, standby},

	http.StatusMovedPermanently:  {provider.Unavailable, redirected},
	http.StatusFound:             {provider.Unavailable, redirected},
	http.StatusSeeOther:          {provider.Unavailable, redirected},
	http.StatusTemporaryRedirect: {provider.Unavailable, redirected},
	http.StatusPermanentRedirect: {provider.Unavailable, redirected},
}

// inconsistentHeader is named in the answer of a server that does not allow it.
const inconsistentHeader = "X-Vault-Inconsistent"

const redirected = "the server sends on to another address, where the token is not sent; set spec.server to that address"

// A Refusal is an answer of Vault that is no success. Its texts serve to tell refusals apart; they
// are never shown, because they may hold what was sent.
type Refusal struct {
	// Status of HTTP, or one of Vault's own.
	Status     int
	texts      []string
	retryAfter time.Duration
	// Definite is true for a 404 that comes with nothing else: Vault knows the place, and there is
	// nothing there.
	Definite bool
	// Foreign is true for an answer that is not in Vault's form.
	Foreign bool
}

// Error implements error.
func (r *Refusal) Error() string { return "Vault answers with status " + strconv.Itoa(r.Status) }

// Says reports whether Vault's texts contain one.
func (r *Refusal) Says(text string) bool {
	for _, t := range r.texts {
		if strings.Contains(t, text) {
			return true
		}
	}
	return false
}

func refusalOf(status int, h http.Header, raw []byte) *Refusal {
	r := &Refusal{Status: status, retryAfter: provider.RetryAfterHeader(h)}
	var b struct {
		Errors   *[]string       `json:"errors"`
		Warnings []string        `json:"warnings"`
		Data     json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &b) != nil {
		r.Foreign = true
		return r
	}
	if b.Errors != nil {
		r.texts = *b.Errors
	}
	r.Definite = status == http.StatusNotFound && b.Errors != nil && len(*b.Errors) == 0 && len(b.Warnings) == 0
	return r
}

// StatusOf returns the status with which Vault refused; 0 if it did not.
func StatusOf(err error) int {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Status
	}
	return 0
}

// Explain turns any error into one of package store. what names the thing that was asked for. The
// text of an SDK is not used: it may hold what was sent or received.
func Explain(err error, what string) error {
	var own *provider.Error
	if errors.As(err, &own) {
		return own
	}
	e := explained(err)
	if what != "" {
		e.Message = what + ": " + e.Message
	}
	return e
}

func explained(err error) *provider.Error {
	var r *Refusal
	if errors.As(err, &r) {
		m, ok := meanings[r.Status]
		if r.Foreign && r.Status < http.StatusInternalServerError && m.class != provider.Throttled && m.text != redirected {
			return provider.NewError(provider.Unavailable, "spec.server: what answers, with status %d, is not Vault; check scheme, host and port, and what stands in between", r.Status)
		}
		if r.Says(inconsistentHeader) {
			return provider.NewError(provider.Invalid, "spec.forwardInconsistent: the server's configuration does not allow it; unset it")
		}
		if !ok {
			return provider.NewError(provider.Unavailable, "Vault answers with status %d", r.Status)
		}
		e := provider.NewError(m.class, "%s", m.text)
		if m.class == provider.Throttled {
			e.RetryAfter = r.retryAfter
		}
		return e
	}
	if text := certificateTrouble(err); text != "" {
		return provider.NewError(provider.Unavailable, "%s", text)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return provider.NewError(provider.Unavailable, "Vault did not answer in time")
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return provider.NewError(provider.Unavailable, "spec.server: cannot resolve the name %q; correct the address, or mend DNS", dns.Name)
	}
	return provider.Safe(err)
}

// certificateTrouble says why a TLS connection failed; empty if it did not for that.
func certificateTrouble(err error) string {
	var stranger untrusted
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &stranger):
		return stranger.field + ": the server's certificate is signed by an authority that is not trusted; put that authority's certificate there"
	case errors.As(err, &host):
		return "spec.server: the server's certificate is for another name; correct the address, or the certificate"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "spec.server: the server's certificate, or that of its authority, has expired or is not valid yet; renew it"
	case errors.As(err, &invalid), errors.As(err, &verification):
		return "spec.server: the server's certificate cannot be verified"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "spec.server: the server does not speak TLS; correct the port"
	case errors.As(err, &alert):
		return "spec.clientTLS: the server does not accept the client certificate, or asks for one"
	}
	return ""
}

// DeniedBy returns the refusal by which Vault denied a request; nil if it did not.
func DeniedBy(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) && r.Status == http.StatusForbidden {
		return r
	}
	return nil
}
