package azureconfig

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
)

// A cloud has the addresses of an environment.
type cloud struct {
	// authority is the URL that tokens are requested from, and aliases are other hosts of it, which a challenge can name.
	authority string
	aliases   []string
	// suffix is the domain of the vaults.
	suffix string
}

// clouds are those of https://learn.microsoft.com/entra/identity-platform/authentication-national-cloud.
var clouds = map[v1alpha1.Environment]cloud{
	v1alpha1.PublicCloud:       {"https://login.microsoftonline.com", []string{"login.windows.net", "login.microsoft.com", "sts.windows.net"}, v1alpha1.VaultDomains[v1alpha1.PublicCloud]},
	v1alpha1.ChinaCloud:        {"https://login.chinacloudapi.cn", []string{"login.partner.microsoftonline.cn"}, v1alpha1.VaultDomains[v1alpha1.ChinaCloud]},
	v1alpha1.USGovernmentCloud: {"https://login.microsoftonline.us", []string{"login.usgovcloudapi.net"}, v1alpha1.VaultDomains[v1alpha1.USGovernmentCloud]},
}

// A place is where a vault is, and where tokens for it come from.
type place struct {
	vault     *url.URL
	authority *url.URL
	aliases   []string
	// resource is what tokens are requested for.
	resource string
	// emulated reports whether the vault is on the operator's own host.
	emulated bool
}

var vaultName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// placeOf checks the addresses of a spec. Tokens are sent only to hosts of the environment's own domain, and to the operator's own host.
func placeOf(spec *v1alpha1.AzureSpec, creds provider.Credentials) (place, error) {
	environment := spec.Environment
	if environment == "" {
		environment = v1alpha1.PublicCloud
	}
	c, known := clouds[environment]
	custom := environment == v1alpha1.CustomEnvironment
	authorityField := "spec.environment"
	switch {
	case !known && !custom:
		return place{}, provider.NewError(provider.Invalid, "spec.environment: %q is not a cloud; write PublicCloud, ChinaCloud, USGovernmentCloud or Custom", environment)
	case custom != (spec.CustomCloudConfig != nil):
		return place{}, provider.NewError(provider.Invalid, "spec.customCloudConfig: set it with environment Custom, and only then")
	case custom:
		authorityField = "spec.customCloudConfig.activeDirectoryEndpoint"
		c = cloud{authority: strings.TrimSuffix(spec.CustomCloudConfig.ActiveDirectoryEndpoint, "/"), suffix: spec.CustomCloudConfig.KeyVaultDNSSuffix}
	}
	vault, err := bareURL(creds, "spec.vaultURL", spec.VaultURL)
	if err != nil {
		return place{}, err
	}
	p := place{vault: vault, aliases: c.aliases, resource: "https://" + c.suffix, emulated: provider.Loopback(vault.Hostname())}
	name, inCloud := strings.CutSuffix(strings.ToLower(vault.Hostname()), "."+c.suffix)
	switch {
	case p.emulated && !custom:
		c.authority = vault.String()
	case !p.emulated && (!inCloud || !vaultName.MatchString(name) || vault.Port() != "" && vault.Port() != "443"):
		return place{}, provider.NewError(provider.Invalid, "spec.vaultURL: is not a vault of the environment %s; write it as https://NAME.%s, or set environment", environment, c.suffix)
	}
	p.authority, err = bareURL(creds, authorityField, c.authority)
	return p, err
}

// bareURL parses a URL that has only a scheme, a host and a port.
func bareURL(creds provider.Credentials, field, raw string) (*url.URL, error) {
	u, err := provider.ParseURL(creds, field, raw)
	if err != nil {
		return nil, err
	}
	if u.Path != "" && u.Path != "/" {
		return nil, provider.NewError(provider.Invalid, "%s: must have no path; write it as https://%s", field, u.Host)
	}
	u.Path, u.Host = "", strings.ToLower(u.Host)
	return u, nil
}

// isAuthority reports whether a challenge can name a host.
func (p place) isAuthority(host string) bool {
	host = strings.ToLower(host)
	return host == p.authority.Host || slices.Contains(p.aliases, host)
}
