package azureconfig

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A guard is an HTTP client that sends requests to one host only. Azure's libraries follow addresses in answers, such as that of the
// next page, and would send a token there.
type guard struct {
	client doer
	host   string
	field  string // where the host comes from
	// plain sends requests without TLS. Azure's libraries refuse plain http for every host, so that they get URLs with https.
	plain bool
	// inspect checks each answer, if it is set.
	inspect func(*http.Request, *http.Response) error
}

// Do implements policy.Transporter.
func (g guard) Do(r *http.Request) (*http.Response, error) {
	if bareHost(r.URL.Host) != bareHost(g.host) {
		return nil, provider.NewError(provider.Unavailable, "%s: the response leads to another host; no request was sent there", g.field)
	}
	r = r.Clone(r.Context())
	r.URL.Host, r.Host = g.host, g.host
	if g.plain {
		r.URL.Scheme = "http"
	}
	resp, err := g.client.Do(r)
	if err != nil || g.inspect == nil {
		return resp, err
	}
	if err := g.inspect(r, resp); err != nil {
		_ = resp.Body.Close() // The answer is not used.
		return nil, err
	}
	return resp, nil
}

// defaultPort is that of https. Azure's own addresses name it in links.
const defaultPort = ":443"

// bareHost returns the host of an address with https in lower case, without the default port.
func bareHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), defaultPort) }

// bareLinks is a policy that removes the default port from the address of a request. Key Vault writes it into the link to the next page,
// and Azure's library would then not accept the challenge of the vault.
type bareLinks struct{}

// Do implements policy.Policy.
func (bareLinks) Do(r *policy.Request) (*http.Response, error) {
	raw := r.Raw()
	raw.URL.Host = bareHost(raw.URL.Host)
	raw.Host = raw.URL.Host
	return r.Next()
}

var (
	parameter = regexp.MustCompile(`(?:^|[ ,])([a-z]+)="?([^", ]*)"?`)
	tenantID  = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

// checkChallenge rejects a challenge that names an authority, a tenant or a resource that the spec does not have.
func (p place) checkChallenge(tenant provider.Setting, header string) error {
	scheme, rest, _ := strings.Cut(header, " ")
	values := map[string]string{}
	for _, m := range parameter.FindAllStringSubmatch(rest, -1) {
		values[m[1]] = m[2]
	}
	authority, err := url.Parse(values["authorization"])
	resource := values["resource"]
	if resource == "" {
		resource = strings.TrimSuffix(values["scope"], "/.default")
	}
	switch {
	case !strings.EqualFold(scheme, "Bearer") || err != nil || values["authorization"] == "" || resource == "":
		return provider.NewError(provider.Unavailable, "spec.vaultURL: the response has no challenge of Key Vault; check the address")
	case authority.Scheme != "https" || !p.isAuthority(authority.Host):
		return provider.NewError(provider.Invalid, "spec.environment: the vault names another authority than that of the environment; correct environment or vaultURL")
	case strings.TrimSuffix(resource, "/") != p.resource:
		return provider.NewError(provider.Invalid, "spec.environment: the vault demands tokens for another resource than %s; correct environment or vaultURL", p.resource)
	}
	of, _, _ := strings.Cut(strings.Trim(authority.Path, "/"), "/")
	switch {
	case of == "":
		return provider.NewError(provider.Unavailable, "spec.vaultURL: the response has no challenge of Key Vault; check the address")
	case tenantID.MatchString(tenant.Text) && !strings.EqualFold(of, tenant.Text):
		return provider.NewError(provider.Invalid, "%s: the vault is part of another tenant; correct tenantID or vaultURL", tenant.Field)
	}
	return nil
}
