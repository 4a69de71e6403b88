package acrtoken

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/azureconfig"
)

const (
	registryField = "spec.registry"
	scopeField    = "spec.scope"
)

// A refusal explains an HTTP status of the registry.
type refusal struct {
	class provider.Class
	text  string
}

// refusals are those of one call, by HTTP status.
type refusals map[int]refusal

var missing = refusal{provider.Unavailable, registryField + ": the response is not that of a container registry; check the address"}

// These are the refusals of the calls for a refresh token and for an access token. The text of the registry is not used: it can contain
// what was sent.
var (
	exchanging = refusals{
		http.StatusBadRequest:   {provider.Invalid, registryField + ": the registry rejects the login as invalid; check registry and tenantID"},
		http.StatusUnauthorized: {provider.Denied, registryField + ": the registry does not accept the identity in spec.auth; grant it a role such as AcrPull on the registry, and check that tenantID is the tenant of the registry"},
		http.StatusForbidden:    {provider.Denied, registryField + ": the registry denies access; allow the operator's network in its firewall, and grant the identity in spec.auth a role such as AcrPull"},
		http.StatusNotFound:     missing,
	}
	scoping = refusals{
		http.StatusBadRequest:   {provider.Invalid, scopeField + ": the registry rejects the scope; write it as repository:NAME:pull"},
		http.StatusUnauthorized: {provider.Denied, scopeField + ": the identity in spec.auth does not have the permissions of the scope; grant it a role such as AcrPull, or correct the scope"},
		http.StatusForbidden:    {provider.Denied, scopeField + ": the identity in spec.auth does not have the permissions of the scope; grant it a role such as AcrPull, or correct the scope"},
		http.StatusNotFound:     missing,
	}
)

// explain turns the error of a call into a provider.Error.
func explain(ctx context.Context, err error, known refusals) error {
	var own *provider.Error
	if errors.As(err, &own) {
		return own
	}
	var r *azcore.ResponseError
	if !errors.As(err, &r) {
		return azureconfig.ExplainTransport(ctx, err, registryField)
	}
	if r.StatusCode == http.StatusTooManyRequests {
		e := provider.NewError(provider.Throttled, registryField+": the registry throttles the calls; retrying with back-off")
		if r.RawResponse != nil {
			e.RetryAfter = provider.RetryAfterHeader(r.RawResponse.Header)
		}
		return e
	}
	if is, ok := known[r.StatusCode]; ok {
		return provider.NewError(is.class, "%s", is.text)
	}
	return provider.NewError(provider.Unavailable, registryField+": the registry returned the status %d; retrying with back-off", r.StatusCode)
}

func noToken() error {
	return provider.NewError(provider.Unavailable, registryField+": the response has no token of a container registry; check the address")
}
