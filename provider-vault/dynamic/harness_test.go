package dynamic

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// M is a JSON object.
type M = vaulttest.M

type creds = vaulttest.Credentials

// makes is the policy to create accounts and tokens, and to revoke both.
const makes = `
path "accounts/creds/*" { capabilities = ["read", "update"] }
path "auth/token/create/*" { capabilities = ["update"] }
path "auth/token/revoke-accessor" { capabilities = ["update"] }
path "sys/leases/revoke" { capabilities = ["update"] }
`

// byAccessor is the policy to renew tokens of other sessions.
const byAccessor = `path "auth/token/renew-accessor" { capabilities = ["update"] }`

// vault starts a server with an AppRole that can create accounts. The accounts of the role app have leases of
// 10 minutes. tokens are the properties of the AppRole's tokens.
func vault(t testing.TB, tokens M) (*vaulttest.Server, creds) {
	t.Helper()
	srv := vaulttest.Start(t)
	srv.MountAccounts("accounts")
	srv.AccountRole("accounts", "app", M{"ttl": 600, "max_ttl": 86400})
	srv.Policy("maker", makes)
	srv.Enable("approle")
	role := M{"token_policies": "maker"}
	for k, v := range tokens {
		role[k] = v
	}
	srv.Do(http.MethodPost, "auth/approle/role/shop", role)
	return srv, creds{
		"role":   srv.Do(http.MethodGet, "auth/approle/role/shop/role-id", nil)["role_id"].(string),
		"secret": srv.Do(http.MethodPost, "auth/approle/role/shop/secret-id", nil)["secret_id"].(string),
		"root":   srv.RootToken,
		"wrong":  "c4n4ry",
	}
}

func ref(key string) common.SecretKeySelector {
	return common.SecretKeySelector{Name: "vault", Key: key}
}

type spec = v1alpha1.VaultDynamicSecretSpec

// app returns a generator that creates accounts of the role app with the AppRole, without retries.
func app(url string, opts ...func(*spec)) *v1alpha1.VaultDynamicSecret {
	none := int32(0)
	g := &v1alpha1.VaultDynamicSecret{Spec: spec{
		VaultServer: v1alpha1.VaultServer{
			RetrySpec: common.RetrySpec{RetrySettings: &common.RetrySettings{MaxRetries: &none}},
			Server:    url, Auth: &v1alpha1.VaultAuth{AppRole: &v1alpha1.AppRoleAuth{RoleRef: new(ref("role")), SecretRef: ref("secret")}},
		},
		Path: "accounts/creds/app",
	}}
	g.Namespace, g.Name = "shop", "accounts"
	for _, o := range opts {
		o(&g.Spec)
	}
	return g
}

func path(p string) func(*spec) { return func(s *spec) { s.Path = p } }

func byToken(key string) func(*spec) {
	return func(s *spec) { s.Auth = &v1alpha1.VaultAuth{TokenSecretRef: new(ref(key))} }
}

func parameters(t testing.TB, m M) *runtime.RawExtension {
	t.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: raw}
}

// tokens makes a generator create tokens of a role of Vault's token store, with the given properties.
func tokens(t testing.TB, srv *vaulttest.Server, m M) func(*spec) {
	t.Helper()
	srv.Do(http.MethodPost, "auth/token/roles/app", m)
	return func(s *spec) {
		s.Path, s.Method, s.ResultType = "auth/token/create/app", "POST", "Auth"
		s.Parameters = parameters(t, M{"policies": []string{"default"}, "ttl": "5m"})
	}
}

// connect returns a client, and a function that closes it before the test ends.
func connect(t testing.TB, g *v1alpha1.VaultDynamicSecret, c creds) (client *Generator, stop func()) {
	t.Helper()
	made, err := Connect(t.Context(), g, c)
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := provider.Close(made); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return made.(*Generator), stop
}

func generate(t testing.TB, c *Generator) provider.Generated {
	t.Helper()
	made, err := fake.Link("VaultDynamicSecret", c).Generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// user returns the name of the created account.
func user(g provider.Generated) string { return string(g.Values["username"]) }

func accountExists(srv *vaulttest.Server, g provider.Generated) bool {
	return slices.Contains(srv.Accounts("accounts"), user(g))
}

// wantExpiry fails the test unless values expire about want from now. Leases are counted in seconds, and the machine
// can be busy.
func wantExpiry(t testing.TB, reason string, expires time.Time, want time.Duration) {
	t.Helper()
	if want == 0 {
		if !expires.IsZero() {
			t.Errorf("%s It expires at %s, want never", reason, expires)
		}
		return
	}
	if got := time.Until(expires); got > want || got < want-want/4 {
		t.Errorf("%s It lives for %s, want %s", reason, got, want)
	}
}

// refusal returns the class and the text of an error.
func refusal(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, provider.ErrNotRenewable):
		return "not renewable"
	}
	return string(provider.ClassOf(err)) + ": " + provider.Safe(err).Error()
}

// wants fails the test unless an error starts with a text and shows no secret.
func wants(t testing.TB, reason string, err error, want string) {
	t.Helper()
	if got := refusal(err); !strings.HasPrefix(got, want) || want == "" && got != "" || strings.Contains(got, "c4n4ry") {
		t.Errorf("%s Got %q, want %q…", reason, got, want)
	}
}
