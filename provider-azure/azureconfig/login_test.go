package azureconfig

import (
	"bytes"
	"crypto/x509"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"software.sslmate.com/src/go-pkcs12"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

// TestChallengeOfVault reads from vaults with different challenges. A token is sent only after a challenge that fits the spec.
func TestChallengeOfVault(t *testing.T) {
	none := emulator.Fault{}
	cases := map[string]struct {
		reason string
		option emulator.Option
		fault  emulator.Fault
		class  provider.Class
		part   string
	}{
		"Good":      {"The vault names the authority, the tenant and the resource of the spec.", emulator.WithAuthority(public), none, "", ""},
		"Alias":     {"The vault can name another host of the authority.", emulator.WithAuthority("https://login.windows.net"), none, "", ""},
		"Authority": {"Another authority is refused.", emulator.WithAuthority("https://login.evil.example"), none, provider.Invalid, "spec.environment: the vault names another authority"},
		"Cloud":     {"The authority of another cloud is refused.", emulator.WithAuthority("https://login.chinacloudapi.cn"), none, provider.Invalid, "spec.environment: the vault names another authority"},
		"Plain":     {"The authority without TLS is refused.", emulator.WithAuthority("http://login.microsoftonline.com"), none, provider.Invalid, "spec.environment: the vault names another authority"},
		"Suffix":    {"A host that ends like the authority is refused.", emulator.WithAuthority("https://evil-login.microsoftonline.com"), none, provider.Invalid, "spec.environment: the vault names another authority"},
		"Resource":  {"Another resource is refused.", emulator.WithResources("https://managedhsm.azure.net", emulator.Resource), none, provider.Invalid, "spec.environment: the vault demands tokens for another resource"},
		"Elsewhere": {"A resource outside Azure is refused.", emulator.WithResources("https://evil.example", emulator.Resource), none, provider.Invalid, "spec.environment: the vault demands tokens for another resource"},
		"NoHeader":  {"An answer without a challenge is refused.", emulator.WithAuthority(public), emulator.Fault{Call: emulator.CallChallenge, Status: http.StatusUnauthorized}, provider.Unavailable, "spec.vaultURL: the response has no challenge"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t, tc.option)
			if tc.fault != none {
				srv.Inject(tc.fault)
			}
			n, hosts := diverted(srv)
			fails(t, tc.reason, read(t, n, specOf(bySecret()), creds{values: map[string][]byte{"secret": []byte(secret)}}), tc.class, tc.part)
			if got, want := srv.Count(emulator.CallGet), map[bool]int{true: 1}[tc.class == ""]; got != want {
				t.Errorf("%s\n%d requests with a token, want %d", tc.reason, got, want)
			}
			allowed := []string{public, "https://shop.vault.azure.net"}
			if i := slices.IndexFunc(hosts(), func(h string) bool { return !slices.Contains(allowed, h) }); i >= 0 {
				t.Errorf("%s\na request was sent to %s", tc.reason, hosts()[i])
			}
		})
	}
}

func TestCheckChallenge(t *testing.T) {
	const other = "22222222-2222-2222-2222-222222222222"
	at, err := vaultOf(specOf(bySecret()), creds{})
	if err != nil {
		t.Fatal(err)
	}
	good := `Bearer authorization="` + public + "/" + tenant + `", resource="https://vault.azure.net"`
	cases := map[string]struct {
		reason, tenant, header string
		class                  provider.Class
		part                   string
	}{
		"Good":     {"Both sides name the same tenant.", tenant, good, "", ""},
		"Domain":   {"A domain can be any tenant.", "shop.onmicrosoft.com", good, "", ""},
		"Scope":    {"A scope stands for its resource.", tenant, `Bearer authorization="` + public + "/" + tenant + `" scope="https://vault.azure.net/.default"`, "", ""},
		"Slash":    {"A slash after the resource is the same.", tenant, `Bearer authorization="` + public + "/" + tenant + `/", resource="https://vault.azure.net/"`, "", ""},
		"Tenant":   {"Another tenant is refused.", other, good, provider.Invalid, "spec.tenantID: the vault is part of another tenant"},
		"NoTenant": {"An authority without a tenant is refused, because Azure's library would panic.", tenant, `Bearer authorization="` + public + `", resource="https://vault.azure.net"`, provider.Unavailable, "no challenge"},
		"Basic":    {"Another scheme is refused.", tenant, `Basic realm="x"`, provider.Unavailable, "no challenge"},
		"Empty":    {"No header is refused.", tenant, ``, provider.Unavailable, "no challenge"},
		"NoURL":    {"An authority that is no URL is refused.", tenant, `Bearer authorization="https://%zz/", resource="https://vault.azure.net"`, provider.Unavailable, "no challenge"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fails(t, tc.reason, at.checkChallenge(provider.Setting{Text: tc.tenant, Field: tenantField}, tc.header), tc.class, tc.part)
		})
	}
}

func signed(t *testing.T, subject, audience string) string {
	t.Helper()
	s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{Subject: subject, Audience: jwt.ClaimStrings{audience}}).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLogins(t *testing.T) {
	known, knownPEM := certificate(t)
	archives := map[string][]byte{}
	for name, with := range map[string]*pkcs12.Encoder{"des": pkcs12.LegacyDES, "rc2": pkcs12.LegacyRC2, "aes": pkcs12.Modern2023, "bare": pkcs12.Passwordless} {
		archives[name] = archive(t, with, knownPEM, "")
	}
	_, unrelatedPEM := certificate(t)
	values := map[string][]byte{"secret": []byte(secret + "\n"), "wrong": []byte("wrong"), "cert": knownPEM, "stranger": unrelatedPEM, "garbage": []byte(secret), "locked": archive(t, pkcs12.Modern2023, knownPEM, secret)}
	maps.Copy(values, archives)
	begin := []byte("-----BEGIN CERTIFICATE")
	knownKey, _, _ := bytes.Cut(knownPEM, begin)
	_, rest, _ := bytes.Cut(unrelatedPEM, begin)
	values["authority"] = slices.Concat(begin, rest, knownPEM)
	values["mixed"] = slices.Concat(knownKey, begin, rest)
	values["laborious"] = laborious(t, archives["aes"])
	const machine = "machine"
	const shop = "system:serviceaccount:shop:shop"
	token := signed(t, shop, emulator.FederatedAudience)
	withKey := func(a v1alpha1.AzureAuth, key string) v1alpha1.AzureAuth {
		if a.ClientSecret != nil {
			a.ClientSecret.ClientSecretRef.Key = key
		} else {
			a.ClientCertificate.ClientCertificateRef.Key = key
		}
		return a
	}
	unknown := bySecret()
	unknown.ClientSecret.ClientID = "unknown"
	cases := map[string]struct {
		reason  string
		auth    v1alpha1.AzureAuth
		from    creds
		fault   emulator.Fault
		options []emulator.Option
		class   provider.Class
		part    string
		after   time.Duration
	}{
		"Secret":       {"A client secret logs in, also with a line break.", bySecret(), creds{}, emulator.Fault{}, nil, "", "", 0},
		"WrongSecret":  {"A wrong client secret is named.", withKey(bySecret(), "wrong"), creds{}, emulator.Fault{}, nil, provider.Denied, "spec.auth.clientSecret: the client secret is wrong", 0},
		"NoSecret":     {"A missing client secret names its field.", withKey(bySecret(), "none"), creds{}, emulator.Fault{}, nil, provider.Invalid, "spec.auth.clientSecret.clientSecretRef: Secret shop/azure", 0},
		"Unknown":      {"An unknown application is named.", unknown, creds{}, emulator.Fault{}, nil, provider.Denied, "the tenant has no such application", 0},
		"Tenant":       {"An unknown tenant is named.", bySecret(), creds{}, emulator.Fault{}, []emulator.Option{emulator.WithTenant("22222222-2222-2222-2222-222222222222")}, provider.Denied, "spec.tenantID: the tenant does not exist", 0},
		"Resource":     {"A tenant without the resource is named.", bySecret(), creds{}, emulator.Fault{}, []emulator.Option{emulator.WithResources("https://vault.azure.cn")}, provider.Denied, "spec.environment: the tenant has no Key Vault", 0},
		"Throttled":    {"The time to wait is passed on.", bySecret(), creds{}, emulator.Fault{Call: emulator.CallToken, Status: http.StatusTooManyRequests, RetryAfter: 9 * time.Second}, nil, provider.Throttled, "throttles logins", 9 * time.Second},
		"Server":       {"An error of the login is no wrong secret.", bySecret(), creds{}, emulator.Fault{Call: emulator.CallToken, Status: http.StatusServiceUnavailable}, nil, provider.Unavailable, "the status 503", 0},
		"Certificate":  {"A certificate logs in.", byCertificate(), creds{}, emulator.Fault{}, nil, "", "", 0},
		"Stranger":     {"A certificate that the application does not have is named.", withKey(byCertificate(), "stranger"), creds{}, emulator.Fault{}, nil, provider.Denied, "spec.auth.clientCertificate: the application does not have this certificate", 0},
		"Authority":    {"The certificate of the key logs in, also after another one.", withKey(byCertificate(), "authority"), creds{}, emulator.Fault{}, nil, "", "", 0},
		"Mixed":        {"A key of another certificate is named.", withKey(byCertificate(), "mixed"), creds{}, emulator.Fault{}, nil, provider.Invalid, "spec.auth.clientCertificate.clientCertificateRef: the private key matches none of the certificates", 0},
		"DES":          {"A PKCS#12 archive without a password logs in.", withKey(byCertificate(), "des"), creds{}, emulator.Fault{}, nil, "", "", 0},
		"RC2":          {"So does one as older tools make it.", withKey(byCertificate(), "rc2"), creds{}, emulator.Fault{}, nil, "", "", 0},
		"AES":          {"So does one as OpenSSL 3 makes it.", withKey(byCertificate(), "aes"), creds{}, emulator.Fault{}, nil, "", "", 0},
		"Bare":         {"So does one without encryption.", withKey(byCertificate(), "bare"), creds{}, emulator.Fault{}, nil, "", "", 0},
		"Locked":       {"A PKCS#12 archive with a password is named.", withKey(byCertificate(), "locked"), creds{}, emulator.Fault{}, nil, provider.Invalid, "spec.auth.clientCertificate.clientCertificateRef: is not a certificate with its private key, in PEM form or as PKCS#12 without a password", 0},
		"Laborious":    {"An archive that would keep the operator busy for years is refused.", withKey(byCertificate(), "laborious"), creds{}, emulator.Fault{}, nil, provider.Invalid, "as PKCS#12 without a password and with at most 600,000 iterations", 0},
		"Garbage":      {"A text is no certificate.", withKey(byCertificate(), "garbage"), creds{}, emulator.Fault{}, nil, provider.Invalid, "spec.auth.clientCertificate.clientCertificateRef: is not a certificate", 0},
		"Token":        {"A ServiceAccount logs in.", byToken(), creds{token: token}, emulator.Fault{}, nil, "", "", 0},
		"NoToken":      {"A refused ServiceAccount token names its field.", byToken(), creds{}, emulator.Fault{}, nil, provider.Denied, "spec.auth.serviceAccountRef: no token", 0},
		"Subject":      {"The subject does not match.", byToken(), creds{token: signed(t, "system:serviceaccount:bank:shop", emulator.FederatedAudience)}, emulator.Fault{}, nil, provider.Denied, "has the subject of the ServiceAccount", 0},
		"Audience":     {"The audience does not match.", byToken(), creds{token: signed(t, shop, "x")}, emulator.Fault{}, nil, provider.Denied, "has the audience of the token", 0},
		"Issuer":       {"The token cannot be verified.", byToken(), creds{token: token}, emulator.Fault{}, []emulator.Option{emulator.WithTokenVerifier(func(string) error { return errors.New("boom") })}, provider.Denied, "check that the issuer of the cluster", 0},
		"User":         {"A user-assigned identity logs in.", byMachine(machine), creds{ambient: true}, emulator.Fault{}, nil, "", "", 0},
		"System":       {"The system-assigned identity logs in without a client ID.", byMachine(""), creds{ambient: true}, emulator.Fault{}, nil, "", "", 0},
		"NotAmbient":   {"A store without permission does not get the identity of the machine.", byMachine(""), creds{}, emulator.Fault{}, nil, provider.Invalid, "spec.auth.managedIdentity: the operator's own identity is not for stores", 0},
		"NoIdentity":   {"An identity that the machine does not have is named.", byMachine("other"), creds{ambient: true}, emulator.Fault{}, nil, provider.Denied, "spec.auth.managedIdentity: the machine has no such identity", 0},
		"MachineSlows": {"The throttling of the machine's identities is passed on.", byMachine(machine), creds{ambient: true}, emulator.Fault{Call: emulator.CallMachine, Status: http.StatusTooManyRequests, RetryAfter: 3 * time.Second}, nil, provider.Throttled, "throttles logins", 3 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t, tc.options...)
			srv.SetApp(reader, emulator.App{Secrets: []string{secret}, Certificates: []*x509.Certificate{known}, Subjects: []string{shop}})
			srv.SetApp(machine, emulator.App{Machine: true})
			if tc.fault != (emulator.Fault{}) {
				srv.Inject(tc.fault)
			}
			n, hosts := diverted(srv)
			tc.from.values = values
			err := read(t, n, specOf(tc.auth), tc.from)
			fails(t, tc.reason, err, tc.class, tc.part)
			if diff := cmp.Diff(tc.after, provider.RetryAfter(err)); diff != "" {
				t.Errorf("%s\ntime to wait: -want, +got:\n%s", tc.reason, diff)
			}
			if machine := slices.Contains(hosts(), "http://"+machineHost); machine != (tc.auth.ManagedIdentity != nil && tc.from.ambient) {
				t.Errorf("%s\nrequests were sent to %q", tc.reason, hosts())
			}
		})
	}
}

// TestRevoked reads twice, revokes all tokens, and reads twice again with the same Config. The first read after it fails, and the second
// one has a new token.
func TestRevoked(t *testing.T) {
	cases := map[string]struct {
		reason string
		auth   v1alpha1.AzureAuth
		call   string
	}{
		"User":   {"A new token of a user-assigned identity is requested.", byMachine("machine"), emulator.CallMachine},
		"System": {"A new token of the system-assigned identity is requested.", byMachine(""), emulator.CallMachine},
		"Secret": {"A new token is requested with the client secret.", bySecret(), emulator.CallToken},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			srv.SetApp("machine", emulator.App{Machine: true})
			n, _ := diverted(srv)
			c, err := n.Load(t.Context(), specOf(tc.auth), creds{ambient: true, values: map[string][]byte{"secret": []byte(secret)}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			fails(t, tc.reason, get(t, c), "", "")
			fails(t, tc.reason, get(t, c), "", "")
			srv.RevokeTokens()
			fails(t, tc.reason, get(t, c), provider.Denied, "does not accept the token")
			fails(t, tc.reason, get(t, c), "", "")
			if diff := cmp.Diff(2, srv.Count(tc.call)); diff != "" {
				t.Errorf("%s\nlogins: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
