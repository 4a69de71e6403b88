package azureconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
)

func TestVaultOf(t *testing.T) {
	stack := &v1alpha1.CustomCloudConfig{ActiveDirectoryEndpoint: "https://login.stack.example:443/", KeyVaultDNSSuffix: "vault.stack.example"}
	const notVault = "spec.vaultURL: is not a vault of the environment "
	cases := map[string]struct {
		reason      string
		environment v1alpha1.Environment
		custom      *v1alpha1.CustomCloudConfig
		url         string
		authority   string
		class       provider.Class
		part        string
	}{
		"Public":     {"The public cloud is the default.", "", nil, "https://shop.vault.azure.net", public, "", ""},
		"Port":       {"The port of https can be written, and the case of a host does not count.", "", nil, "https://Shop.vault.azure.net:443/", public, "", ""},
		"China":      {"China has its own authority.", v1alpha1.ChinaCloud, nil, "https://shop.vault.azure.cn", "https://login.chinacloudapi.cn", "", ""},
		"Government": {"The US Government has its own authority.", v1alpha1.USGovernmentCloud, nil, "https://shop.vault.usgovcloudapi.net", "https://login.microsoftonline.us", "", ""},
		"Custom":     {"A custom cloud has the addresses of the spec, without the default port.", v1alpha1.CustomEnvironment, stack, "https://shop.vault.stack.example", "https://login.stack.example", "", ""},
		"Emulator":   {"An emulator is its own authority.", "", nil, "http://127.0.0.1:8200", "http://127.0.0.1:8200", "", ""},
		"Cloud":      {"A vault of another cloud is refused.", v1alpha1.ChinaCloud, nil, "https://shop.vault.azure.net", "", provider.Invalid, notVault + "ChinaCloud"},
		"Elsewhere":  {"A host that ends like a vault is refused.", "", nil, "https://shop.evilvault.azure.net", "", provider.Invalid, notVault},
		"Prefix":     {"A host that begins like a vault is refused.", "", nil, "https://shop.vault.azure.net.evil.example", "", provider.Invalid, notVault},
		"Below":      {"A host below a vault is refused.", "", nil, "https://x.shop.vault.azure.net", "", provider.Invalid, notVault},
		"OtherPort":  {"Another port is refused.", "", nil, "https://shop.vault.azure.net:8443", "", provider.Invalid, notVault},
		"Path":       {"A path is refused.", "", nil, "https://shop.vault.azure.net/secrets", "", provider.Invalid, "spec.vaultURL: must have no path"},
		"PlainHTTP":  {"Plain HTTP is refused.", "", nil, "http://shop.vault.azure.net", "", provider.Invalid, "spec.vaultURL: plain http"},
		"Unknown":    {"An unknown cloud is refused.", "GermanCloud", nil, "https://shop.vault.azure.net", "", provider.Invalid, "spec.environment: "},
		"NoConfig":   {"A custom cloud needs addresses.", v1alpha1.CustomEnvironment, nil, "https://shop.vault.stack.example", "", provider.Invalid, "spec.customCloudConfig: "},
		"NotCustom":  {"A known cloud has no other addresses.", "", stack, "https://shop.vault.azure.net", "", provider.Invalid, "spec.customCloudConfig: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := specOf(bySecret())
			spec.Environment, spec.CustomCloudConfig, spec.VaultURL = tc.environment, tc.custom, tc.url
			p, err := vaultOf(spec, creds{})
			fails(t, tc.reason, err, tc.class, tc.part)
			if tc.class != "" {
				return
			}
			if diff := cmp.Diff(tc.authority, p.authority.String()); diff != "" {
				t.Errorf("%s\nauthority: -want, +got:\n%s", tc.reason, diff)
			}
			if p.url.Port() == "443" {
				t.Errorf("%s\nThe address %s names the default port, which Azure's library does not accept.", tc.reason, p.url)
			}
		})
	}
}

// TestMachineElsewhere uses the operator's own identity for vaults outside the known clouds.
func TestMachineElsewhere(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.AzureSpec){
		"Emulator": func(s *v1alpha1.AzureSpec) { s.VaultURL = "http://127.0.0.1:1" },
		"Custom": func(s *v1alpha1.AzureSpec) {
			s.VaultURL, s.Environment = "https://shop.vault.evil.example", v1alpha1.CustomEnvironment
			s.CustomCloudConfig = &v1alpha1.CustomCloudConfig{ActiveDirectoryEndpoint: "https://login.evil.example", KeyVaultDNSSuffix: "vault.evil.example"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(byMachine(""))
			change(spec)
			_, err := Network{}.Load(t.Context(), spec, creds{ambient: true})
			fails(t, "Tokens of the operator's own identity are sent only to vaults of a known cloud.", err, provider.Invalid, "spec.vaultURL: with auth.managedIdentity it must be a vault of a known cloud")
		})
	}
}
