package azureconfig

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
)

func TestRegistryOf(t *testing.T) {
	stack := func(change func(*v1alpha1.RegistryCloudConfig)) *v1alpha1.RegistryCloudConfig {
		c := &v1alpha1.RegistryCloudConfig{ActiveDirectoryEndpoint: "https://login.stack.example/", Resource: "https://management.stack.example/", RegistryDNSSuffix: "azurecr.stack.example"}
		change(c)
		return c
	}
	whole := stack(func(*v1alpha1.RegistryCloudConfig) {})
	type found struct{ URL, Authority, Resource string }
	const (
		custom      = v1alpha1.CustomEnvironment
		resource    = "https://containerregistry.azure.net"
		notRegistry = "spec.registry: is not a registry of the environment "
		notServer   = "spec.registry: is not the login server of a registry"
	)
	cases := map[string]struct {
		reason      string
		environment v1alpha1.Environment
		custom      *v1alpha1.RegistryCloudConfig
		registry    string
		want        found
		part        string
	}{
		"Public":     {"The public cloud is the default.", "", nil, "Shop.azurecr.io", found{"https://shop.azurecr.io", public, resource}, ""},
		"China":      {"China has its own domain and authority.", v1alpha1.ChinaCloud, nil, "shop.azurecr.cn", found{"https://shop.azurecr.cn", "https://login.chinacloudapi.cn", resource}, ""},
		"Government": {"The US Government has its own domain and authority.", v1alpha1.USGovernmentCloud, nil, "shop.azurecr.us", found{"https://shop.azurecr.us", "https://login.microsoftonline.us", resource}, ""},
		"Custom":     {"A custom cloud has the addresses of the spec.", custom, whole, "shop.azurecr.stack.example", found{"https://shop.azurecr.stack.example", "https://login.stack.example", "https://management.stack.example"}, ""},
		"Emulator":   {"An emulator is its own authority.", "", nil, "127.0.0.1:5000", found{"http://127.0.0.1:5000", "http://127.0.0.1:5000", resource}, ""},
		"Local":      {"An emulator of a custom cloud has the authority of the spec.", custom, whole, "localhost:5000", found{"http://localhost:5000", "https://login.stack.example", "https://management.stack.example"}, ""},
		"Cloud":      {"A registry of another cloud is refused.", v1alpha1.ChinaCloud, nil, "shop.azurecr.io", found{}, notRegistry + "ChinaCloud; write it as NAME.azurecr.cn"},
		"Elsewhere":  {"A host that ends like a registry is refused.", "", nil, "shop.evilazurecr.io", found{}, notRegistry},
		"Prefix":     {"A host that begins like a registry is refused.", "", nil, "shop.azurecr.io.evil.example", found{}, notRegistry},
		"Domain":     {"The domain itself is no registry.", "", nil, "azurecr.io", found{}, notRegistry},
		"Below":      {"A host below a registry is refused.", "", nil, "x.shop.azurecr.io", found{}, notRegistry},
		"Stack":      {"A host outside the custom cloud is refused.", custom, whole, "shop.azurecr.io", found{}, notRegistry + "Custom"},
		"Port":       {"A port is only for an emulator.", "", nil, "shop.azurecr.io:443", found{}, notServer},
		"URL":        {"A URL is refused.", "", nil, "https://shop.azurecr.io", found{}, notServer},
		"Path":       {"A path is refused.", "", nil, "shop.azurecr.io/web", found{}, notServer},
		"User":       {"A user is refused, because the host would follow it.", "", nil, "shop.azurecr.io@evil.example", found{}, notServer},
		"Query":      {"A query is refused.", "", nil, "evil.example?.azurecr.io", found{}, notServer},
		"Fragment":   {"A fragment is refused.", "", nil, "evil.example#.azurecr.io", found{}, notServer},
		"Escape":     {"An escaped character is refused.", "", nil, "evil.example%2f.azurecr.io", found{}, notServer},
		"Letter":     {"A letter that only resembles one of ASCII is refused.", "", nil, "shop.аzurecr.io", found{}, notServer},
		"Loopback":   {"A host that begins like loopback is refused.", "", nil, "127.0.0.1.evil.example", found{}, notRegistry},
		"Empty":      {"An empty registry is refused.", "", nil, "", found{}, notServer},
		"Unknown":    {"An unknown cloud is refused.", "GermanCloud", nil, "shop.azurecr.de", found{}, "spec.environment: "},
		"NoConfig":   {"A custom cloud needs addresses.", custom, nil, "shop.azurecr.stack.example", found{}, "spec.customCloudConfig: "},
		"NotCustom":  {"A known cloud has no other addresses.", "", whole, "shop.azurecr.io", found{}, "spec.customCloudConfig: "},
		"Resource":   {"A custom cloud must have a resource.", custom, stack(func(c *v1alpha1.RegistryCloudConfig) { c.Resource = "" }), "shop.azurecr.stack.example", found{}, "spec.customCloudConfig.resource: "},
		"Authority":  {"An authority without TLS is refused.", custom, stack(func(c *v1alpha1.RegistryCloudConfig) { c.ActiveDirectoryEndpoint = "http://login.stack.example" }), "shop.azurecr.stack.example", found{}, "spec.customCloudConfig.activeDirectoryEndpoint: plain http"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := registryOf(&v1alpha1.ACRAccessTokenSpec{Environment: tc.environment, CustomCloudConfig: tc.custom, Registry: tc.registry}, creds{})
			if tc.part != "" {
				fails(t, tc.reason, err, provider.Invalid, tc.part)
				return
			}
			if err != nil {
				t.Fatalf("%s\n%s", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, found{p.url.String(), p.authority.String(), p.resource}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// registrySpec returns the spec of a registry of the public cloud.
func registrySpec(auth v1alpha1.AzureAuth) *v1alpha1.ACRAccessTokenSpec {
	return &v1alpha1.ACRAccessTokenSpec{Registry: "shop.azurecr.io", AzureLogin: v1alpha1.AzureLogin{TenantID: tenant, Auth: auth}}
}

// TestMachineOfRegistry uses the operator's own identity for a registry. Its tokens are only for registries.
func TestMachineOfRegistry(t *testing.T) {
	cases := map[string]struct {
		reason  string
		ambient bool
		change  func(*v1alpha1.ACRAccessTokenSpec)
		part    string
	}{
		"Good":       {"A registry of a known cloud gets a token.", true, func(*v1alpha1.ACRAccessTokenSpec) {}, ""},
		"NotAmbient": {"A generator without permission does not get the identity of the machine.", false, func(*v1alpha1.ACRAccessTokenSpec) {}, "spec.auth.managedIdentity: the operator's own identity is not for stores"},
		"Emulator":   {"An emulator gets no token.", true, func(s *v1alpha1.ACRAccessTokenSpec) { s.Registry = "127.0.0.1:1" }, "spec.registry: with auth.managedIdentity it must be a registry of a known cloud"},
		"Custom": {"A custom cloud gets no token.", true, func(s *v1alpha1.ACRAccessTokenSpec) {
			s.Environment, s.CustomCloudConfig = v1alpha1.CustomEnvironment, &v1alpha1.RegistryCloudConfig{ActiveDirectoryEndpoint: public, Resource: "https://containerregistry.azure.net", RegistryDNSSuffix: "azurecr.io"}
		}, "spec.registry: with auth.managedIdentity it must be a registry of a known cloud"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := registrySpec(byMachine(""))
			tc.change(spec)
			c, err := Network{}.LoadRegistry(t.Context(), spec, creds{ambient: tc.ambient})
			if tc.part != "" {
				fails(t, tc.reason, err, provider.Invalid, tc.part)
				return
			}
			if err != nil {
				t.Fatalf("%s\n%s", tc.reason, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRegistryLogin logs in for a registry of the public cloud, and checks what the token is for and where it was requested.
func TestRegistryLogin(t *testing.T) {
	srv := start(t)
	n, hosts := diverted(srv)
	c, err := n.LoadRegistry(t.Context(), registrySpec(bySecret()), creds{values: map[string][]byte{"secret": []byte(secret)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // It never returns an error.
	token, err := c.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if client, ok := srv.LoginToken(token); client != reader || !ok {
		t.Errorf("The token is of %q and valid for registries: %t; want %q and true", client, ok, reader)
	}
	if i := slices.IndexFunc(hosts(), func(h string) bool { return h != public }); i >= 0 {
		t.Errorf("a request of the login was sent to %s", hosts()[i])
	}
	if diff := cmp.Diff([]string{"https://shop.azurecr.io", "shop.azurecr.io", tenant}, []string{c.URL, c.Host, c.Tenant()}); diff != "" {
		t.Errorf("URL, host and tenant: -want, +got:\n%s", diff)
	}
}
