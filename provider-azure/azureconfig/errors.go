package azureconfig

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// refusals explain the numbers after AADSTS of https://learn.microsoft.com/entra/identity-platform/reference-error-codes.
var refusals = map[int]struct{ field, text string }{
	90002:   {tenantField, "the tenant does not exist in the environment; correct tenantID or environment"},
	900023:  {tenantField, "is not the ID of a tenant; correct it"},
	700016:  {"", "the tenant has no such application; correct the client ID or tenantID"},
	7000215: {"", "the client secret is wrong; store the value of the secret, not its ID"},
	7000222: {"", "the client secret has expired; create another one"},
	7000112: {"", "the application is disabled; enable it"},
	700027:  {"", "the application does not have this certificate, or it has expired; add it to the application"},
	70021:   {"", "no federated credential of the client matches the ServiceAccount; add one with its issuer, subject and audience"},
	700211:  {"", "no federated credential of the client has the issuer of the cluster; correct its issuer"},
	700212:  {"", "no federated credential of the client has the audience of the token; correct its audience, or set audiences"},
	700213:  {"", "no federated credential of the client has the subject of the ServiceAccount; correct its subject"},
	7000272: {"", "the token of the ServiceAccount is not accepted; check that the issuer of the cluster can be reached by Azure"},
	500011:  {"spec.environment", "the tenant has no {service} of the environment; correct environment or tenantID"},
	53003:   {"", "a conditional access policy of the tenant blocks the login; allow it for the application"},
}

// explain explains a failed login. The text of Azure is not used: it can contain what was sent.
func (l login) explain(ctx context.Context, err error, last answer) error {
	var own *provider.Error
	if errors.As(err, &own) {
		return own
	}
	switch {
	case last.status == http.StatusTooManyRequests:
		return &provider.Error{Class: provider.Throttled, RetryAfter: last.retryAfter, Message: l.source.field + ": Azure throttles logins; retrying with back-off"}
	case last.status >= http.StatusInternalServerError:
		return provider.NewError(provider.Unavailable, "%s: the login of Azure returned the status %d; retrying with back-off", l.source.field, last.status)
	}
	for _, n := range last.numbers {
		if r, ok := refusals[n]; ok {
			field := r.field
			switch field {
			case "":
				field = l.source.field
			case tenantField:
				field = l.tenant.Field
			}
			return provider.NewError(provider.Denied, "%s: %s (AADSTS%d)", field, strings.ReplaceAll(r.text, "{service}", l.place.service), n)
		}
	}
	switch {
	case l.source.machine && last.status >= http.StatusBadRequest:
		return provider.NewError(provider.Denied, "%s: the machine has no such identity; assign it to the machines, or correct clientID", l.source.field)
	case len(last.numbers) > 0:
		return provider.NewError(provider.Denied, "%s: Azure refuses the login (AADSTS%d)", l.source.field, last.numbers[0])
	case last.status == http.StatusUnauthorized || last.status == http.StatusForbidden || last.code != "":
		return provider.NewError(provider.Denied, "%s: Azure refuses the login", l.source.field)
	}
	return ExplainTransport(ctx, err, l.source.field)
}

// ExplainTransport explains a call without an answer that can be used. field is that of the spec with the address.
func ExplainTransport(ctx context.Context, err error, field string) *provider.Error {
	var dns *net.DNSError
	fault := provider.CertificateFaultOf(err)
	switch {
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return provider.NewError(provider.Unavailable, "Azure did not answer in time")
	case fault != "":
		return provider.NewError(provider.Unavailable, "%s: the TLS certificate of Azure %s; check the address and the operator's trusted certificates", field, fault)
	case errors.As(err, &dns) || strings.Contains(err.Error(), "no such host"):
		return provider.NewError(provider.Unavailable, "%s: cannot resolve the host name; check the address and DNS", field)
	}
	e := *provider.Safe(err)
	e.Message = field + ": " + e.Message
	return &e
}

// denials explain the inner codes of a 403. {permission} and {role} are those of the Access.
var denials = map[string]struct {
	class provider.Class
	text  string
}{
	"AccessDenied":          {provider.Denied, "access denied by the access policies of the vault; add the permission{permission} to the policy of the identity in spec.auth"},
	"ForbiddenByPolicy":     {provider.Denied, "access denied by the access policies of the vault; add the permission{permission} to the policy of the identity in spec.auth"},
	"ForbiddenByRbac":       {provider.Denied, "access denied by Azure RBAC; grant the identity in spec.auth a role such as {role}"},
	"ForbiddenByFirewall":   {provider.Denied, "the firewall of the vault blocks the operator's address; allow its network, or use a private endpoint"},
	"ForbiddenByConnection": {provider.Denied, "the vault accepts only connections by a private endpoint; use one, or allow the operator's network"},
	"SecretDisabled":        {provider.Invalid, "is disabled; enable it, or add a version"},
}

// These are the ConflictCodes of a write to a secret that is soft-deleted, or will be, or has been.
const (
	SoftDeleted    = "ObjectIsDeletedButRecoverable"
	BeingDeleted   = "ObjectIsBeingDeleted"
	BeingRecovered = "ObjectIsBeingRecovered"
)

var conflicts = map[string]string{
	SoftDeleted:    "is soft-deleted; recover or purge it",
	BeingDeleted:   "is being deleted; retrying",
	BeingRecovered: "is being recovered; retrying",
}

// ConflictCode returns the code of the cause of a conflict, which is empty if Key Vault names none. conflict is false for other errors.
func ConflictCode(err error) (inner string, conflict bool) {
	var r *azcore.ResponseError
	if !errors.As(err, &r) || r.StatusCode != http.StatusConflict {
		return "", false
	}
	code, inner := codes(err)
	return inner, code != ""
}

// An Access is the access that a call needs.
type Access struct {
	permission string // of an access policy, as the rest of "the permission"
	role       string // that has it
	missing    string // the code of Key Vault for an object that does not exist
}

// These are what calls need: a list of secrets, reads of one secret and one key, and writes.
var (
	ListSecrets = Access{role: "Key Vault Secrets User", missing: "SecretNotFound"}
	ReadSecret  = Access{permission: " Get of secrets", role: "Key Vault Secrets User", missing: "SecretNotFound"}
	ReadKey     = Access{permission: " Get of keys", role: "Key Vault Crypto User", missing: "KeyNotFound"}
	WriteSecret = Access{role: "Key Vault Secrets Officer", missing: "SecretNotFound"}
)

// Explain turns the error of a call into a provider.Error. what names the object of the call. Azure's text is not used: it can contain
// what was sent or received.
func Explain(ctx context.Context, err error, what string, needs Access) *provider.Error {
	var own *provider.Error
	if errors.As(err, &own) {
		return own
	}
	var r *azcore.ResponseError
	if !errors.As(err, &r) {
		e := ExplainTransport(ctx, err, "spec.vaultURL")
		e.Message = what + ": " + e.Message
		return e
	}
	code, inner := codes(err)
	of := func(c provider.Class, text string) *provider.Error { return provider.NewError(c, "%s: %s", what, text) }
	switch {
	case r.StatusCode == http.StatusTooManyRequests:
		e := of(provider.Throttled, "Key Vault throttles the calls; retrying with back-off")
		if r.RawResponse != nil {
			e.RetryAfter = provider.RetryAfterHeader(r.RawResponse.Header)
		}
		return e
	case r.StatusCode == http.StatusUnauthorized:
		return of(provider.Denied, "Key Vault does not accept the token of the identity in spec.auth")
	case code == "":
		return of(provider.Unavailable, "spec.vaultURL: the response is not that of Key Vault; check the address")
	case r.StatusCode == http.StatusForbidden:
		if d, ok := denials[inner]; ok {
			return of(d.class, strings.NewReplacer("{permission}", needs.permission, "{role}", needs.role).Replace(d.text))
		}
		return of(provider.Denied, "access denied; grant the identity in spec.auth the permission")
	case r.StatusCode == http.StatusNotFound && code == needs.missing:
		return of(provider.NotFound, "does not exist")
	case r.StatusCode == http.StatusConflict:
		if text, ok := conflicts[inner]; ok {
			return of(provider.Conflict, text)
		}
		return of(provider.Conflict, "another client changes it at the same time; retrying")
	case r.StatusCode == http.StatusBadRequest:
		return of(provider.Invalid, "Key Vault rejects the request as invalid; check the spec")
	}
	return provider.NewError(provider.Unavailable, "%s: Key Vault returned the status %d; retrying with back-off", what, r.StatusCode)
}

// ExplainList is Explain for a list. A vault always has a list, so NotFound proves nothing.
func ExplainList(ctx context.Context, err error, what string) error {
	e := Explain(ctx, err, what, ListSecrets)
	switch _, inner := codes(err); {
	case e.Class == provider.NotFound:
		return provider.NewError(provider.Unavailable, "%s: spec.vaultURL: the response is not that of Key Vault; check the address", what)
	case e.Class == provider.Denied && (inner == "ForbiddenByPolicy" || inner == "ForbiddenByRbac" || inner == "AccessDenied"):
		return &missing{of: e}
	}
	return e
}

// A missing is the error of a caller that is logged in, but does not have a permission.
type missing struct{ of *provider.Error }

// Error implements error.
func (m *missing) Error() string { return m.of.Error() }

// Unwrap returns the error for users.
func (m *missing) Unwrap() error { return m.of }

// IsPermissionMissing reports whether the login works, but ExplainList found that a permission is missing.
func IsPermissionMissing(err error) bool {
	var m *missing
	return errors.As(err, &m)
}
