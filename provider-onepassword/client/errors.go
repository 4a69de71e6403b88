package client

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// refused classifies an error of a Connect server. An answer in another format is not one of it.
func refused(method string, status int, body []byte) *provider.Error {
	var answer struct {
		Status  int    `json:"status"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Status != status || answer.Message == "" {
		return nil
	}
	switch status {
	case http.StatusUnauthorized:
		return provider.NewError(provider.Denied, "%s: the Connect server does not accept the token; create another one", tokenField)
	case http.StatusForbidden:
		needed := "the vault"
		if method != http.MethodGet {
			needed = "write access to the vault"
		}
		return provider.NewError(provider.Denied, "access denied; grant the token of %s %s", tokenField, needed)
	case http.StatusNotFound:
		return missing(answer.Message)
	case http.StatusConflict:
		return provider.NewError(provider.Conflict, "another client changes the vault at the same time; retrying")
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return provider.NewError(provider.Invalid, "the Connect server refuses the request (status %d)", status)
	}
	return provider.NewError(provider.Unavailable, "the Connect server returned status %d", status)
}

// errNoVault is the error of a request for a vault that does not exist.
var errNoVault = provider.NewError(provider.Unavailable, "%s: a vault does not exist any more; retrying", vaultsField)

// missing classifies a 404. Only that of an item or a file is NotFound: Connect names what does not exist, as documented at
// https://developer.1password.com/docs/connect/api-reference. A gateway in front of it can answer in the same format.
func missing(message string) *provider.Error {
	switch thing, _, _ := strings.Cut(strings.ToLower(message), " "); thing {
	case "item", "file":
		return provider.NewError(provider.NotFound, "it does not exist")
	case "vault":
		return errNoVault
	}
	return nil
}
