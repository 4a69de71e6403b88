package client

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// foreign is the error of a response that is not one of a Connect server, such as that of a proxy.
func foreign(what string) error {
	return provider.NewError(provider.Unavailable, "%s: %s: the response is not that of a Connect server; check the address", what, hostField)
}

// explain classifies the error of a request without an answer. what is what was done.
func explain(err error, what string) error {
	if fault := provider.CertificateFaultOf(err); fault != "" {
		return provider.NewError(provider.Unavailable, "%s: %s: the server's certificate %s; correct spec.caBundle or spec.caProvider", what, hostField, fault)
	}
	e := *provider.Safe(err)
	e.Message = what + ": " + hostField + ": " + e.Message
	return &e
}

// explainStatus classifies an answer with an error. Only an answer in the format of Connect is relied on, and no text of it is shown.
func explainStatus(resp *http.Response, body []byte, what string) error {
	var answer struct {
		Status  int    `json:"status"`
		Message string `json:"message"`
	}
	if resp.StatusCode == http.StatusTooManyRequests { // A proxy can also throttle.
		e := provider.NewError(provider.Throttled, "%s: the Connect server throttles the calls; retrying with back-off", what)
		e.RetryAfter = provider.RetryAfterHeader(resp.Header)
		return e
	}
	if json.Unmarshal(body, &answer) != nil || answer.Status != resp.StatusCode || answer.Message == "" {
		return foreign(what)
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return provider.NewError(provider.Denied, "%s: %s: the Connect server does not accept the token; create another one", what, tokenField)
	case http.StatusForbidden:
		needed := "the vault"
		if resp.Request.Method != http.MethodGet {
			needed = "write access to the vault"
		}
		return provider.NewError(provider.Denied, "%s: access denied; grant the token of %s %s", what, tokenField, needed)
	case http.StatusNotFound:
		return missing(answer.Message, what)
	case http.StatusConflict:
		return provider.NewError(provider.Conflict, "%s: another client changes the vault at the same time; retrying", what)
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return provider.NewError(provider.Invalid, "%s: the Connect server refuses the request (status %d)", what, resp.StatusCode)
	}
	return provider.NewError(provider.Unavailable, "%s: the Connect server returned status %d", what, resp.StatusCode)
}

// errNoVault is the error of a request for a vault that does not exist.
var errNoVault = provider.NewError(provider.Unavailable, "%s: a vault does not exist any more; retrying", vaultsField)

// missing classifies a 404. Only that of an item or a file is NotFound: Connect names what does not exist, as documented at
// https://developer.1password.com/docs/connect/api-reference. A gateway in front of it can answer in the same format.
func missing(message, what string) error {
	switch thing, _, _ := strings.Cut(strings.ToLower(message), " "); thing {
	case "item", "file":
		return provider.NewError(provider.NotFound, "%s: it does not exist", what)
	case "vault":
		return errNoVault
	}
	return foreign(what)
}
