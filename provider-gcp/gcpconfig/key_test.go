package gcpconfig

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestParseKey(t *testing.T) {
	local := below("http://127.0.0.1:1")
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecDER, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	short := x509.MarshalPKCS1PrivateKey(newKey(1024))
	cases := map[string]struct {
		reason   string
		raw      []byte
		at       logins
		tokenURL string
		want     string // part of the error
	}{
		"Good":      {"A key in Google's format is accepted.", keyFile(nil), google, google.token, ""},
		"Space":     {"A trailing line end is ignored.", append(keyFile(nil), '\n'), google, google.token, ""},
		"PKCS1":     {"A key in the older PEM format is accepted.", keyFile(map[string]string{"private_key": pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey()))}), google, google.token, ""},
		"NoURI":     {"Without a token URI Google's is used.", keyFile(map[string]string{"token_uri": ""}), google, google.token, ""},
		"Local":     {"An emulator's token URI is accepted with the emulator.", keyFile(map[string]string{"token_uri": local.token}), local, local.token, ""},
		"Google":    {"A key with Google's token URI logs in at Google, wherever the service is.", keyFile(nil), local, google.token, ""},
		"LocalURI":  {"An emulator's token URI is rejected without the emulator.", keyFile(map[string]string{"token_uri": local.token}), google, "", "token_uri"},
		"EvilURI":   {"A token URI of another host is rejected.", keyFile(map[string]string{"token_uri": "https://evil.example"}), google, "", "token_uri"},
		"LikeURI":   {"A token URI of a host that looks like Google's is rejected.", keyFile(map[string]string{"token_uri": google.token + "/"}), google, "", "token_uri"},
		"EC":        {"A key that is not an RSA key is rejected.", keyFile(map[string]string{"private_key": pemOf("PRIVATE KEY", ecDER)}), google, "", "is not an RSA key"},
		"Short":     {"An RSA key that is too short is rejected.", keyFile(map[string]string{"private_key": pemOf("RSA PRIVATE KEY", short)}), google, "", "less than 2048 bits"},
		"BadDER":    {"PEM without an RSA key is rejected.", keyFile(map[string]string{"private_key": pemOf("PRIVATE KEY", []byte(secret))}), google, "", "is not an RSA key"},
		"Null":      {"JSON null is rejected.", []byte("null"), google, "", "type"},
		"List":      {"A JSON list is rejected.", []byte(`["` + secret + `"]`), google, "", "is not the JSON"},
		"Type":      {"A field of another type is rejected.", []byte(`{"type":"service_account","client_email":7}`), google, "", "is not the JSON"},
		"Empty":     {"An empty text is rejected.", nil, google, "", "is not the JSON"},
		"Federated": {"A credentials file of another type is rejected.", keyFile(map[string]string{"type": "external_account"}), google, "", "type is not service_account"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k, err := parseKey(tc.raw, tc.at)
			if tc.want == "" {
				if err != nil || k.tokenURL != tc.tokenURL {
					t.Errorf("%s\nparseKey(...): %+v, %v", tc.reason, k, err)
				}
				return
			}
			if provider.ClassOf(err) != provider.Invalid || !strings.HasPrefix(err.Error(), keyField+": ") || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s\nparseKey(...): error %v, want %q", tc.reason, err, tc.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s\nthe error shows the key: %s", tc.reason, err)
			}
		})
	}
}

func TestAssertion(t *testing.T) {
	k, err := parseKey(keyFile(nil), google)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	a, err := k.assertion(now, []string{scope, "openid"})
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(a, ".")
	if len(parts) != 3 {
		t.Fatalf("%d parts, want 3", len(parts))
	}
	var got []any
	for _, p := range parts[:2] {
		b, err := base64.RawURLEncoding.DecodeString(p)
		if err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	want := []any{
		map[string]any{"alg": "RS256", "typ": "JWT", "kid": "1"},
		map[string]any{"iss": "a@p.iam.gserviceaccount.com", "aud": google.token, "scope": scope + " openid", "iat": 1_799_999_990.0, "exp": 1_800_003_000.0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("assertion: -want, +got:\n%s", diff)
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(&rsaKey().PublicKey, crypto.SHA256, hash[:], signature); err != nil {
		t.Error(err)
	}
}
