package cryptofuncs

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The keys of RFC 7517, appendix A, and of RFC 8037, appendix A.
var (
	rsaJWK = map[string]string{
		"kty": "RSA", "alg": "RS256", "kid": "2011-04-29", "e": "AQAB",
		"n":  "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
		"d":  "X4cTteJY_gn4FYPsXB8rdXix5vwsg1FLN5E3EaG6RJoVH-HLLKD9M7dx5oo7GURknchnrRweUkC7hT5fJLM0WbFAKNLWY2vv7B6NqXSzUvxT0_YSfqijwp3RTzlBaCxWp4doFk5N2o8Gy_nHNKroADIkJ46pRUohsXywbReAdYaMwFs9tv8d_cPVY3i07a3t8MN6TNwm0dSawm9v47UiCl3Sk5ZiG7xojPLu4sbg1U2jx4IBTNBznbJSzFHK66jT8bgkuqsk0GjskDJk19Z4qwjwbsnn4j2WBii3RL-Us2lGVkY8fkFzme1z0HbIkfz0Y6mqnOYtqc0X4jfcKoAC8Q",
		"p":  "83i-7IvMGXoMXCskv73TKr8637FiO7Z27zv8oj6pbWUQyLPQBQxtPVnwD20R-60eTDmD2ujnMt5PoqMrm8RfmNhVWDtjjMmCMjOpSXicFHj7XOuVIYQyqVWlWEh6dN36GVZYk93N8Bc9vY41xy8B9RzzOGVQzXvNEvn7O0nVbfs",
		"q":  "3dfOR9cuYq-0S-mkFLzgItgMEfFzB2q3hWehMuG0oCuqnb3vobLyumqjVZQO1dIrdwgTnCdpYzBcOfW5r370AFXjiWft_NGEiovonizhKpo9VVS78TzFgxkIdrecRezsZ-1kYd_s1qDbxtkDEgfAITAG9LUnADun4vIcb6yelxk",
		"dp": "G4sPXkc6Ya9y8oJW9_ILj4xuppu0lzi_H7VTkS8xj5SdX3coE0oimYwxIi2emTAue0UOa5dpgFGyBJ4c8tQ2VF402XRugKDTP8akYhFo5tAA77Qe_NmtuYZc3C3m3I24G2GvR5sSDxUyAN2zq8Lfn9EUms6rY3Ob8YeiKkTiBj0",
		"dq": "s9lAH9fggBsoFR8Oac2R_E2gw282rT2kGOAhvIllETE1efrA6huUUvMfBcMpn8lqeW6vzznYY5SSQF7pMdC_agI3nG8Ibp1BUb0JUiraRNqUfLhcQb_d9GF4Dh7e74WbRsobRonujTYN1xCaP6TO61jvWrX-L18txXw494Q_cgk",
		"qi": "GyM_p6JrXySiz1toFgKbWV-JdI3jQ4ypu9rbMWx3rQJBfmt0FoYzgUIZEVFEcOqwemRN81zoDAaa-Bk0KWNGDjJHZDdDmFhW3AN7lI-puxk_mHZGJ11rxyR8O55XLSe3SPmRfKwZI6yU24ZxvQKFYItdldUKGzO6Ia6zTKhAVRU",
	}
	ecJWK = map[string]string{
		"kty": "EC", "crv": "P-256", "use": "enc", "kid": "1",
		"x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
		"y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
		"d": "870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE",
	}
	edJWK = map[string]string{
		"kty": "OKP", "crv": "Ed25519",
		"x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
		"d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
	}
	octJWK = map[string]string{"kty": "oct", "alg": "A128KW", "k": "GawgguFyGrWKav7AX4VKUg"}
)

// jwkOf returns a key as JSON, with some members changed; an empty value removes one.
func jwkOf(key map[string]string, changes ...string) string {
	key = maps.Clone(key)
	for i := 0; i < len(changes); i += 2 {
		key[changes[i]] = changes[i+1]
		if changes[i+1] == "" {
			delete(key, changes[i])
		}
	}
	b, err := json.Marshal(key)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// public removes all private members.
var public = []string{"d", "", "p", "", "q", "", "dp", "", "dq", "", "qi", ""}

var spaces = regexp.MustCompile(`[\s:]`)

// TestJWK checks that openssl reads from the PEM the same numbers that the JWK has.
func TestJWK(t *testing.T) {
	cases := map[string]struct {
		reason  string
		key     map[string]string
		public  []string
		private []string
	}{
		"RSA":     {"RFC 7517, appendix A.2.", rsaJWK, []string{"n"}, []string{"n", "d", "p", "q", "dp", "dq", "qi"}},
		"EC":      {"RFC 7517, appendix A.2.", ecJWK, []string{"x", "y"}, []string{"x", "y", "d"}},
		"Ed25519": {"RFC 8037, appendix A.1.", edJWK, []string{"x"}, []string{"x", "d"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			private, err := call("jwkPrivateKeyPem", jwkOf(tc.key))
			if err != nil {
				t.Fatalf("%s\njwkPrivateKeyPem(...): %v", tc.reason, err)
			}
			holds(t, tc.key, tc.private, openssl(t, private.(string), "pkey", "-check", "-text", "-noout"))
			pub := openssl(t, private.(string), "pkey", "-pubout")
			for _, jwk := range []string{jwkOf(tc.key), jwkOf(tc.key, public...)} {
				if diff := cmp.Diff(result{Value: pub}, resultOf("", "jwkPublicKeyPem", jwk)); diff != "" {
					t.Errorf("%s\njwkPublicKeyPem(...): -want, +got:\n%s", tc.reason, diff)
				}
			}
			holds(t, tc.key, tc.public, openssl(t, pub, "pkey", "-pubin", "-text", "-noout"))
		})
	}
}

// holds reports an error for members of a key that the output of openssl does not have.
func holds(t *testing.T, key map[string]string, members []string, text string) {
	t.Helper()
	text = spaces.ReplaceAllString(text, "")
	for _, m := range members {
		b, err := base64.RawURLEncoding.DecodeString(key[m])
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, hex.EncodeToString(b)) {
			t.Errorf("openssl does not read %s", m)
		}
	}
}

func TestRefuseJWK(t *testing.T) {
	invalid, mismatch := "the JWK is not a valid key", "do not match its member d"
	other := "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU" // A coordinate of RFC 7515, appendix A.3.
	huge := strings.Repeat("_", 100_000/6)
	cases := map[string]struct {
		reason  string
		jwk     string
		public  string
		private string
	}{
		"NotJSON":     {"A value that is not JSON is refused.", "hunter2", "is not a JWK", "is not a JWK"},
		"List":        {"A JSON list is refused.", "[]", "is not a JWK", "is not a JWK"},
		"Empty":       {"A JWK without a kind is refused.", "{}", invalid, invalid},
		"Null":        {"null is refused.", "null", invalid, invalid},
		"Set":         {"A set of keys is refused.", `{"keys":[` + jwkOf(ecJWK) + `]}`, "is a set of JWKs", "is a set of JWKs"},
		"Symmetric":   {"A symmetric key is refused, because it has no PEM form.", jwkOf(octJWK), "is a symmetric key", "is a symmetric key"},
		"OtherKind":   {"Other kinds are not supported.", jwkOf(octJWK, "kty", "AKP"), invalid, invalid},
		"OtherCurve":  {"Other curves are not supported.", jwkOf(ecJWK, "crv", "secp256k1"), invalid, invalid},
		"X25519":      {"Keys that cannot sign are not supported.", jwkOf(edJWK, "crv", "X25519"), invalid, invalid},
		"NotOnCurve":  {"A point that is not on its curve is refused.", jwkOf(ecJWK, "x", other), invalid, invalid},
		"OtherPoint":  {"A private part that does not match the public part is refused.", jwkOf(ecJWK, "d", other), mismatch, mismatch},
		"OtherSeed":   {"A private part that does not match the public part is refused.", jwkOf(edJWK, "d", other), mismatch, mismatch},
		"OtherPrime":  {"Primes that do not match the modulus are refused.", jwkOf(rsaJWK, "p", rsaJWK["q"]), invalid, invalid},
		"NoPrimes":    {"A key without primes is refused, because PKCS#8 needs them.", jwkOf(rsaJWK, "p", "", "q", ""), invalid, invalid},
		"EvenKey":     {"A private part of zero is refused.", jwkOf(ecJWK, "d", strings.Repeat("A", 43)), invalid, invalid},
		"NotBase64":   {"A member that is not base64url is refused.", jwkOf(ecJWK, "x", "!"), invalid, invalid},
		"HugeModulus": {"A huge modulus is refused before any calculation.", jwkOf(rsaJWK, append([]string{"n", huge}, public...)...), "has more than 8192 bits", "has more than 8192 bits"},
		"BigModulus":  {"A modulus just above the limit is refused.", jwkOf(rsaJWK, append([]string{"n", huge[:8400/6]}, public...)...), "has more than 8192 bits", "has more than 8192 bits"},
		"HugeExtra":   {"Members that are not part of the key are ignored.", jwkOf(ecJWK, "x5c", strings.Repeat("[", 100_000)), "", ""},
		"HugePrivate": {"A huge private part is refused.", jwkOf(rsaJWK, "d", huge), invalid, invalid},
		"ZeroPrime":   {"A prime of zero is refused.", jwkOf(rsaJWK, "p", "AA"), invalid, invalid},
		"EvenModulus": {"An even modulus is refused.", jwkOf(rsaJWK, append([]string{"n", "AAAA"}, public...)...), invalid, invalid},
		"Exponent":    {"An exponent of more than 31 bits is refused.", jwkOf(rsaJWK, append([]string{"e", "_____w"}, public...)...), invalid, invalid},
		"Number":      {"A member that is not a string is refused.", `{"kty":"OKP","crv":"Ed25519","x":1}`, invalid, invalid},
		"HugeDepth":   {"Deep nesting is refused quickly.", `{"x5c":` + strings.Repeat("[", maxInput-7), "is not a JWK", "is not a JWK"},
		"OnlyPublic":  {"A public key has no private part.", jwkOf(ecJWK, "d", ""), "", "holds only a public key"},
		"TooLarge":    {"An argument above 1 MiB is refused.", jwkOf(ecJWK) + strings.Repeat(" ", maxInput), "at most 1048576 are allowed", "at most 1048576 are allowed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for function, want := range map[string]string{"jwkPublicKeyPem": tc.public, "jwkPrivateKeyPem": tc.private} {
				got := resultOf(want, function, tc.jwk)
				if want == "" {
					got.Value = "" // TestJWK compares the value.
				}
				if diff := cmp.Diff(result{Value: "", Err: want}, got); diff != "" {
					t.Errorf("%s\n%s(...): -want, +got:\n%s", tc.reason, function, diff)
				}
			}
		})
	}
}

// TestJWKForms checks that padding and missing leading zeros do not change the key.
func TestJWKForms(t *testing.T) {
	want, err := call("jwkPublicKeyPem", jwkOf(edJWK))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(result{Value: want}, resultOf("", "jwkPublicKeyPem", jwkOf(edJWK, "x", edJWK["x"]+"="))); diff != "" {
		t.Errorf("jwkPublicKeyPem(...): padding is cut off: -want, +got:\n%s", diff)
	}
	// A private key of one, whose public one is the base point (FIPS 186-4, appendix D.1.2.3).
	one := map[string]string{"kty": "EC", "crv": "P-256", "d": "AQ", "x": "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY", "y": "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}
	if _, err := call("jwkPrivateKeyPem", jwkOf(one)); err != nil {
		t.Errorf("jwkPrivateKeyPem(...): leading zeros are put in: %v", err)
	}
}
