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

// These are statuses of Vault in addition to those of HTTP; see
// https://developer.hashicorp.com/vault/api-docs#http-status-codes.
const (
	statusRecoveryStandby = 472
	statusStandby         = 473
)

// A meaning is the meaning of a status for a request that reached Vault.
type meaning struct {
	class provider.Class
	text  string
}

const standby = "the node is a standby that does not respond; set spec.server to the address of the active node"

// meanings classifies the statuses of Vault. A status that is not listed is Unavailable. The meaning of a 404
// depends on the body.
var meanings = map[int]meaning{
	http.StatusBadRequest:         {provider.Invalid, "Vault rejects the request as invalid; check the spec"},
	http.StatusForbidden:          {provider.Denied, "access denied"},
	http.StatusMethodNotAllowed:   {provider.Invalid, "Vault does not support the operation at this path; check spec.path and spec.version"},
	http.StatusPreconditionFailed: {provider.Unavailable, "the node is behind the active node; retrying"},
	http.StatusTooManyRequests:    {provider.Throttled, "Vault throttles the calls; retrying with back-off"},

	http.StatusInternalServerError: {provider.Unavailable, "Vault has an internal error"},
	http.StatusBadGateway:          {provider.Unavailable, "Vault, or a proxy in front of it, cannot reach a system that it depends on"},
	http.StatusServiceUnavailable:  {provider.Unavailable, "Vault is sealed, or not started yet"},
	statusRecoveryStandby:          {provider.Unavailable, standby},
	statusStandby:                  {provider.Unavailable, standby},

	http.StatusMovedPermanently:  {provider.Unavailable, redirected},
	http.StatusFound:             {provider.Unavailable, redirected},
	http.StatusSeeOther:          {provider.Unavailable, redirected},
	http.StatusTemporaryRedirect: {provider.Unavailable, redirected},
	http.StatusPermanentRedirect: {provider.Unavailable, redirected},
}

// inconsistentHeader is the name in the answer of a server that does not allow this header.
const inconsistentHeader = "X-Vault-Inconsistent"

const redirected = "the server redirects to another address, and the token is not sent there; set spec.server to that address"

// A Refusal is an error answer of Vault. Its messages only serve to distinguish causes. They are never shown,
// because they can contain what was sent.
type Refusal struct {
	// Status is that of HTTP, or one of Vault's own.
	Status     int
	messages   []string
	retryAfter time.Duration
	// Definite is set for a 404 without further content: Vault knows the path, and nothing is stored there.
	Definite bool
	// Foreign is set for an answer that is not in Vault's format.
	Foreign bool
}

// Error implements error.
func (r *Refusal) Error() string { return "Vault returned status " + strconv.Itoa(r.Status) }

// Contains reports whether one of Vault's messages contains text.
func (r *Refusal) Contains(text string) bool {
	for _, t := range r.messages {
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
		r.messages = *b.Errors
	}
	r.Definite = status == http.StatusNotFound && b.Errors != nil && len(*b.Errors) == 0 && len(b.Warnings) == 0
	return r
}

// StatusOf returns the status of an error answer of Vault, or 0 for other errors.
func StatusOf(err error) int {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Status
	}
	return 0
}

// Explain turns any error into a provider.Error. what names the object of the request. The text of an SDK is
// not used: it can contain what was sent or received.
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
			return provider.NewError(provider.Unavailable, "spec.server: the response with status %d is not from Vault; check scheme, host and port, and proxies in between", r.Status)
		}
		if r.Contains(inconsistentHeader) {
			return provider.NewError(provider.Invalid, "spec.forwardInconsistent: the server's configuration does not allow it; unset it")
		}
		if !ok {
			return provider.NewError(provider.Unavailable, "Vault returned status %d", r.Status)
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
		return provider.NewError(provider.Unavailable, "spec.server: cannot resolve the name %q; correct the address, or check DNS", dns.Name)
	}
	return provider.Safe(err)
}

// certificateTrouble returns why the server's certificate was rejected, or "" for other errors.
func certificateTrouble(err error) string {
	var untrustedCertificate untrusted
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &untrustedCertificate):
		return untrustedCertificate.field + ": the server's certificate is signed by an authority that is not trusted; store the certificate of that authority there"
	case errors.As(err, &host):
		return "spec.server: the server's certificate is for another name; correct the address, or the certificate"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "spec.server: the server's certificate, or that of its authority, has expired or is not valid yet; renew it"
	case errors.As(err, &invalid), errors.As(err, &verification):
		return "spec.server: the server's certificate cannot be verified"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "spec.server: the server does not use TLS; correct the port"
	case errors.As(err, &alert):
		return "spec.clientTLS: the server does not accept the client certificate, or requires one"
	}
	return ""
}

// DeniedBy returns the answer with which Vault denied a request, or nil for other errors.
func DeniedBy(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) && r.Status == http.StatusForbidden {
		return r
	}
	return nil
}
