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
	environment v1alpha1.Environment
	// authority is the URL that tokens are requested from, and aliases are other hosts of it, which a challenge can name. field is that
	// of the spec with the authority.
	authority string
	aliases   []string
	field     string
}

// clouds are those of https://learn.microsoft.com/entra/identity-platform/authentication-national-cloud.
var clouds = []cloud{
	{v1alpha1.PublicCloud, "https://login.microsoftonline.com", []string{"login.windows.net", "login.microsoft.com", "sts.windows.net"}, environmentField},
	{v1alpha1.ChinaCloud, "https://login.chinacloudapi.cn", []string{"login.partner.microsoftonline.cn"}, environmentField},
	{v1alpha1.USGovernmentCloud, "https://login.microsoftonline.us", []string{"login.usgovcloudapi.net"}, environmentField},
	{v1alpha1.CustomEnvironment, "", nil, "spec.customCloudConfig.activeDirectoryEndpoint"},
}

const environmentField = "spec.environment"

// cloudOf returns the cloud of a spec. custom reports whether the spec has addresses of its own.
func cloudOf(environment v1alpha1.Environment, custom bool) (cloud, error) {
	if environment == "" {
		environment = v1alpha1.PublicCloud
	}
	i := slices.IndexFunc(clouds, func(c cloud) bool { return c.environment == environment })
	switch {
	case i < 0:
		return cloud{}, provider.NewError(provider.Invalid, environmentField+": %q is not a cloud; write PublicCloud, ChinaCloud, USGovernmentCloud or Custom", environment)
	case custom != (environment == v1alpha1.CustomEnvironment):
		return cloud{}, provider.NewError(provider.Invalid, "spec.customCloudConfig: set it with environment Custom, and only then")
	}
	return clouds[i], nil
}

// A target is what a spec connects to.
type target struct {
	// field is that of the spec with the address, noun is what has the address, and service is what tokens are for. All are for errors.
	field, noun, service string
	// raw is the URL, and form shows users how to write it, with %s for the domain.
	raw, form string
	// domain is that of all hosts of the cloud, and resource what tokens are requested for.
	domain, resource string
}

// A place is where a target is, and where tokens for it come from.
type place struct {
	target
	url       *url.URL
	authority *url.URL
	aliases   []string
	// custom reports whether the addresses of the cloud come from the spec, and emulated whether the target is on the operator's own
	// host. Then the domain proves nothing.
	custom, emulated bool
}

var (
	hostName     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	registryText = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$`)
	resourceText = regexp.MustCompile(`^https://[A-Za-z0-9.:/_-]+$`)
)

// vaultOf returns the place of the vault of a spec.
func vaultOf(spec *v1alpha1.AzureSpec, creds provider.Credentials) (place, error) {
	custom := spec.CustomCloudConfig
	c, err := cloudOf(spec.Environment, custom != nil)
	if err != nil {
		return place{}, err
	}
	domain := v1alpha1.VaultDomains[c.environment]
	if custom != nil {
		c.authority, domain = custom.ActiveDirectoryEndpoint, custom.KeyVaultDNSSuffix
	}
	return c.place(target{"spec.vaultURL", "vault", "Key Vault", spec.VaultURL, "https://NAME.%s", domain, "https://" + domain}, creds)
}

// registryOf returns the place of the registry of a spec.
func registryOf(spec *v1alpha1.ACRAccessTokenSpec, creds provider.Credentials) (place, error) {
	custom := spec.CustomCloudConfig
	c, err := cloudOf(spec.Environment, custom != nil)
	if err != nil {
		return place{}, err
	}
	t := target{registryField, "registry", "Azure Container Registry", "https://" + spec.Registry, "NAME.%s", v1alpha1.RegistryDomains[c.environment], registryResource}
	if custom != nil {
		c.authority, t.domain, t.resource = custom.ActiveDirectoryEndpoint, custom.RegistryDNSSuffix, strings.TrimSuffix(custom.Resource, "/")
	}
	host, _, port := strings.Cut(spec.Registry, ":")
	switch {
	case !registryText.MatchString(spec.Registry) || port && !provider.Loopback(host):
		return place{}, provider.NewError(provider.Invalid, registryField+": is not the login server of a registry; write it as NAME.azurecr.io, without https://, port and path")
	case custom != nil && !resourceText.MatchString(custom.Resource):
		return place{}, provider.NewError(provider.Invalid, "spec.customCloudConfig.resource: is not a resource; write it as "+registryResource)
	case provider.Loopback(host):
		t.raw = "http://" + spec.Registry
	}
	return c.place(t, creds)
}

const (
	registryField = "spec.registry"
	// registryResource is what tokens for registries of all known clouds are requested for, as Azure's library does. Unlike those for
	// Azure Resource Manager, they cannot change resources, and registries that refuse the others accept them:
	// https://learn.microsoft.com/azure/container-registry/container-registry-disable-authentication-as-arm.
	registryResource = "https://containerregistry.azure.net"
)

// place checks the addresses of a target. Tokens are sent only to hosts of the environment's own domain, and to the operator's own host.
func (c cloud) place(t target, creds provider.Credentials) (place, error) {
	at, err := bareURL(creds, t.field, t.raw)
	if err != nil {
		return place{}, err
	}
	p := place{target: t, url: at, aliases: c.aliases, custom: c.environment == v1alpha1.CustomEnvironment, emulated: provider.Loopback(at.Hostname())}
	name, inCloud := strings.CutSuffix(at.Hostname(), "."+t.domain)
	switch {
	case p.emulated && !p.custom:
		c.authority = at.String()
	case !p.emulated && (!inCloud || !hostName.MatchString(name) || at.Port() != ""):
		return place{}, provider.NewError(provider.Invalid, "%s: is not a %s of the environment %s; write it as "+t.form+", or set environment", t.field, t.noun, c.environment, t.domain)
	}
	p.authority, err = bareURL(creds, c.field, strings.TrimSuffix(c.authority, "/"))
	return p, err
}

// bareURL parses a URL that has only a scheme, a host and a port. The default port is left out.
func bareURL(creds provider.Credentials, field, raw string) (*url.URL, error) {
	u, err := provider.ParseURL(creds, field, raw)
	if err != nil {
		return nil, err
	}
	if u.Path != "" && u.Path != "/" {
		return nil, provider.NewError(provider.Invalid, "%s: must have no path; write it as https://%s", field, u.Host)
	}
	u.Path, u.Host = "", strings.ToLower(u.Host)
	if u.Scheme == "https" {
		u.Host = bareHost(u.Host)
	}
	return u, nil
}

// isAuthority reports whether a challenge can name a host.
func (p place) isAuthority(host string) bool {
	host = bareHost(host)
	return host == p.authority.Host || slices.Contains(p.aliases, host)
}
