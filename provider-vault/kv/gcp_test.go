package kv

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

const (
	reader    = "reader@shop-prod.iam.gserviceaccount.com"
	unrelated = "unrelated@shop-prod.iam.gserviceaccount.com"
	// vaultAccount is the service account with which Vault asks Google.
	vaultAccount = "vault@shop-prod.iam.gserviceaccount.com"
)

// A google is a stand-in for what Vault asks of Google: public keys, service accounts, and access tokens for itself.
type google struct {
	url string
	// certificates are those of the keys of each service account, by account and by the ID of the key.
	certificates map[string]map[string]string
	down         atomic.Bool
	// hidden is a service account that Vault is not allowed to read.
	hidden string
	close  func()
}

func startGoogle(t *testing.T) *google {
	t.Helper()
	g := &google{certificates: map[string]map[string]string{}}
	srv := httptest.NewServer(http.HandlerFunc(g.serve))
	t.Cleanup(srv.Close)
	g.url, g.hidden, g.close = srv.URL, "hidden@shop-prod.iam.gserviceaccount.com", srv.Close
	return g
}

func (g *google) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) } // The client checks the answer.
	switch account, isKeys := strings.CutPrefix(r.URL.Path, "/service_accounts/v1/metadata/x509/"); {
	case g.down.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/token":
		answer(M{"access_token": "of-vault", "token_type": "Bearer", "expires_in": 3600})
	case r.URL.Path == "/oauth2/v1/certs":
		answer(M{})
	case isKeys && g.certificates[account] != nil:
		answer(g.certificates[account])
	case strings.HasSuffix(r.URL.Path, "/serviceAccounts/"+g.hidden):
		w.WriteHeader(http.StatusForbidden)
		answer(M{"error": M{"code": http.StatusForbidden, "message": "Permission denied", "status": "PERMISSION_DENIED"}})
	case strings.HasPrefix(r.URL.Path, "/v1/projects/-/serviceAccounts/") && r.Header.Get("Authorization") == "Bearer of-vault":
		email := strings.TrimPrefix(r.URL.Path, "/v1/projects/-/serviceAccounts/")
		answer(M{"email": email, "uniqueId": "1" + fmt.Sprint(len(email)), "projectId": "shop-prod", "name": "projects/shop-prod/serviceAccounts/" + email})
	default:
		w.WriteHeader(http.StatusNotFound)
		answer(M{"error": M{"code": http.StatusNotFound, "message": "Not found", "status": "NOT_FOUND"}})
	}
}

// key returns the key file of a service account. If known, Google has its certificate.
func (g *google) key(t *testing.T, account, id string, known bool) M {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	certificate := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: account}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	if g.certificates[account] == nil {
		g.certificates[account] = map[string]string{}
	}
	if known {
		g.certificates[account][id] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return M{
		"type": "service_account", "project_id": "shop-prod", "client_id": "1", "client_email": account, "private_key_id": id,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), "token_uri": g.url + "/token",
	}
}

func asText(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// gcpVault starts a Vault that asks the stand-in for Google, and lets the service account reader read.
func gcpVault(t *testing.T, g *google) (*vaulttest.Server, creds) {
	t.Helper()
	if strings.HasPrefix(os.Getenv("VAULT_TEST_SERVER"), "http://") {
		t.Skip("Vault reads its own credentials from its environment: set VAULT_TEST_SERVER to a program instead of an address")
	}
	file := filepath.Join(t.TempDir(), "vault.json")
	if err := os.WriteFile(file, []byte(asText(t, g.key(t, vaultAccount, "of-vault", true))), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	srv.Enable("gcp")
	srv.Do(http.MethodPost, "auth/gcp/config", M{"custom_endpoint": M{"api": g.url, "iam": g.url}})
	role := func(name string, settings M) {
		settings["type"], settings["token_policies"], settings["bound_service_accounts"] = "iam", "reader", []string{reader}
		srv.Do(http.MethodPost, "auth/gcp/role/"+name, settings)
	}
	role("shop", M{})
	role("hurried", M{"max_jwt_exp": "60s"})
	role("project", M{"bound_projects": []string{"bank"}})
	srv.Do(http.MethodPost, "auth/gcp/role/machines", M{"type": "gce", "bound_projects": []string{"shop-prod"}, "token_policies": "reader"})
	return srv, secrets
}

// TestGCP logs in to a real Vault with the key of a service account, which Vault verifies with a stand-in for Google.
func TestGCP(t *testing.T) {
	g := startGoogle(t)
	srv, secrets := gcpVault(t, g)
	good := g.key(t, reader, "k1", true)
	changed := func(field string, value any) string {
		key := M{}
		for k, v := range good {
			key[k] = v
		}
		key[field] = value
		return asText(t, key)
	}
	secrets["good"] = asText(t, good) + "\n"
	secrets["unrelated"] = asText(t, g.key(t, unrelated, "k2", true))
	secrets["hidden"] = asText(t, g.key(t, g.hidden, "k5", true))
	secrets["deleted"] = asText(t, g.key(t, reader, "k3", false))
	secrets["no-account"] = changed("client_email", "none@shop-prod.iam.gserviceaccount.com")
	secrets["other-key"] = changed("private_key", g.key(t, reader, "k4", true)["private_key"])
	secrets["user"] = changed("type", "authorized_user")
	secrets["no-email"] = changed("client_email", "")
	secrets["no-id"] = changed("private_key_id", "")
	secrets["no-pem"] = changed("private_key", "c4n4ry")
	secrets["no-rsa"] = changed("private_key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("c4n4ry")})))
	secrets["no-json"] = "c4n4ry"
	const (
		keyField = "spec.auth.gcp.secretRef.secretAccessKeySecretRef"
		bad      = "Invalid: " + keyField + ": "
		refused  = "Denied: " + keyField + ": Vault does not accept the service account"
	)
	cases := map[string]struct {
		reason    string
		role, key string
		path      string
		want      string
	}{
		"Key":       {"The service account to which the role is bound can log in.", "shop", "good", "", db},
		"Path":      {"The error for a wrong path names it.", "shop", "good", "nowhere", "Denied: " + keyField},
		"PathUp":    {"A path with .. is rejected.", "shop", "good", "../sys", "Invalid: spec.auth.gcp.path: "},
		"Unrelated": {"A service account to which the role is not bound is rejected.", "shop", "unrelated", "", refused},
		"Project":   {"A service account of a project to which the role is not bound is rejected.", "project", "good", "", refused},
		"OtherKey":  {"A signature of another key is rejected.", "shop", "other-key", "", refused},
		"Deleted":   {"A deleted key is reported as such.", "shop", "deleted", "", "Denied: " + keyField + ": Google does not know the key"},
		"NoAccount": {"A deleted service account is reported as such.", "shop", "no-account", "", "Denied: " + keyField + ": Google does not know the key"},
		"Hidden":    {"A service account that Vault cannot read is reported as such.", "shop", "hidden", "", "Denied: spec.auth.gcp: Vault cannot read the service account"},
		"NoRole":    {"An unknown role is reported as such.", "other", "good", "", "Denied: spec.auth.gcp.role: the role does not exist at Vault"},
		"Machines":  {"A role for machines is reported as such.", "machines", "good", "", "Denied: spec.auth.gcp.role: the role is for machines"},
		"MaxJWTExp": {"A role that accepts only shorter tokens is reported as such.", "hurried", "good", "", "Denied: spec.auth.gcp.role: its max_jwt_exp"},
		"NoSecret":  {"A missing Secret names the field.", "shop", "none", "", bad + "Secret"},
		"NoJSON":    {"A value that is not a key file is rejected.", "shop", "no-json", "", bad + "is not the JSON key file"},
		"User":      {"A file of a user is rejected.", "shop", "user", "", bad + "its type is not service_account"},
		"NoEmail":   {"A file without the account is rejected.", "shop", "no-email", "", bad + "it has no client_email"},
		"NoID":      {"A file without the ID of the key is rejected, because Vault could not find the key.", "shop", "no-id", "", bad + "it has no client_email or no private_key_id"},
		"NoPEM":     {"A key that is not PEM is rejected.", "shop", "no-pem", "", bad + "its private_key is not PEM"},
		"NoRSA":     {"A key that is not an RSA key is rejected.", "shop", "no-rsa", "", bad + "its private_key is not an RSA key"},
	}
	login := func(role, key, path string) string {
		a := v1alpha1.GCPAuth{Path: path, Role: role, SecretRef: v1alpha1.GCPSecretRef{SecretAccessKeySecretRef: ref(key)}}
		s := appRole(srv.URL, withAuth(v1alpha1.VaultAuth{GCP: &a}))
		client, err := Connect(t.Context(), s, secrets)
		if err != nil {
			return string(provider.ClassOf(err)) + ": " + provider.Safe(err).Error()
		}
		defer func() { _ = provider.Close(client) }() // The test does not depend on a clean stop.
		return read1(t, client.(*Client))
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := login(tc.role, tc.key, tc.path); !strings.HasPrefix(got, tc.want) || strings.Contains(got, "c4n4ry") {
				t.Errorf("%s: got %s, want %s…", tc.reason, got, tc.want)
			}
		})
	}
	t.Run("GoogleAway", func(t *testing.T) {
		g.down.Store(true)
		const want = "Unavailable: spec.auth.gcp: Vault cannot reach Google"
		if got := login("shop", "good", ""); got != want {
			t.Errorf("a server error of Google must not be reported as a wrong key: got %s, want %s", got, want)
		}
		g.down.Store(false)
		if got := login("shop", "good", ""); got != db {
			t.Errorf("the login must succeed after the outage: %s", got)
		}
		g.close()
		if got := login("shop", "good", ""); got != want {
			t.Errorf("a Google that cannot be reached must not be reported as a wrong key: got %s, want %s", got, want)
		}
	})
}
