package sshkey

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
)

type (
	settings = v1alpha1.SSHKeySettings
	key      = v1alpha1.KeySettings
)

// connectBoth connects the namespaced Kind and the cluster Kind, which must agree.
func connectBoth(t testing.TB, s settings) (provider.Generator, error) {
	t.Helper()
	own, shared := &v1alpha1.SSHKey{}, &v1alpha1.ClusterSSHKey{}
	own.Spec.SSHKeySettings, shared.Spec.SSHKeySettings = s, s
	g, err := Connect(t.Context(), own, nil)
	_, errShared := Connect(t.Context(), shared, nil)
	if diff := cmp.Diff(err, errShared); diff != "" {
		t.Errorf("Connect(...): -SSHKey, +ClusterSSHKey:\n%s", diff)
	}
	return g, err
}

func generate(t testing.TB, s settings) map[string]string {
	t.Helper()
	g, err := connectBoth(t, s)
	if err != nil {
		t.Fatal(err)
	}
	made, err := g.Generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for k, v := range made.Values {
		values[k] = string(v)
	}
	return values
}

// keygen runs ssh-keygen.
func keygen(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ssh-keygen", args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatal("these tests compare with OpenSSH; install ssh-keygen (Debian: openssh-client)")
	}
	if err != nil {
		t.Fatalf("ssh-keygen %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestOpenSSHReads checks that OpenSSH reads both files, that they are one pair, and that they are what was asked for.
func TestOpenSSHReads(t *testing.T) {
	cases := map[string]struct {
		reason   string
		settings settings
		want     string // size, comment and type of `ssh-keygen -l`
		line     string // type of the public key
	}{
		"Default":    {"The default is an Ed25519 key.", settings{}, "256 no comment (ED25519)", "ssh-ed25519"},
		"Ed25519":    {"The type can be set.", settings{KeySettings: key{KeyType: "ed25519"}, Comment: "deploy@shop"}, "256 deploy@shop (ED25519)", "ssh-ed25519"},
		"RSA":        {"An RSA key has 3072 bits by default.", settings{KeySettings: key{KeyType: "rsa"}}, "3072 no comment (RSA)", "ssh-rsa"},
		"RSASmall":   {"The smallest RSA key is accepted.", settings{KeySettings: key{KeyType: "rsa", KeySize: 2048}, Comment: "two words"}, "2048 two words (RSA)", "ssh-rsa"},
		"RSALarge":   {"A larger RSA key is possible.", settings{KeySettings: key{KeyType: "rsa", KeySize: 4096}}, "4096 no comment (RSA)", "ssh-rsa"},
		"ECDSA":      {"An ECDSA key has 256 bits by default.", settings{KeySettings: key{KeyType: "ecdsa"}}, "256 no comment (ECDSA)", "ecdsa-sha2-nistp256"},
		"ECDSA384":   {"An ECDSA key can have 384 bits.", settings{KeySettings: key{KeyType: "ecdsa", KeySize: 384}}, "384 no comment (ECDSA)", "ecdsa-sha2-nistp384"},
		"ECDSA521":   {"An ECDSA key can have 521 bits.", settings{KeySettings: key{KeyType: "ecdsa", KeySize: 521}}, "521 no comment (ECDSA)", "ecdsa-sha2-nistp521"},
		"OneByteMax": {"The longest comment is accepted.", settings{Comment: strings.Repeat("c", 255)}, "256 " + strings.Repeat("c", 255) + " (ED25519)", "ssh-ed25519"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			values := generate(t, tc.settings)
			folder := t.TempDir()
			private, public := filepath.Join(folder, "id"), filepath.Join(folder, "id.pub")
			for path, value := range map[string]string{private: values["privateKey"], public: values["publicKey"]} {
				if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			fingerprint := strings.Fields(keygen(t, "-l", "-f", public))
			if got := strings.Join(append(fingerprint[:1:1], fingerprint[2:]...), " "); got != tc.want {
				t.Errorf("%s\nssh-keygen -l: -want, +got:\n%s", tc.reason, cmp.Diff(tc.want, got))
			}
			// The files are removed in turn, because ssh-keygen reads the public key from id.pub if it exists.
			if err := os.Remove(public); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(values["publicKey"], keygen(t, "-y", "-f", private)); diff != "" {
				t.Errorf("%s\nssh-keygen -y prints another public key: -want, +got:\n%s", tc.reason, diff)
			}
			if !strings.HasPrefix(values["publicKey"], tc.line+" ") || !strings.HasPrefix(values["privateKey"], "-----BEGIN OPENSSH PRIVATE KEY-----\n") {
				t.Errorf("%s\nThe keys have another format: %s", tc.reason, values["publicKey"])
			}
		})
	}
}

// TestPair checks with Go that the private key signs for the public key.
func TestPair(t *testing.T) {
	for _, of := range []v1alpha1.KeyType{"ed25519", "ecdsa", "rsa"} {
		values := generate(t, settings{KeySettings: key{KeyType: of}, Comment: "me"})
		signer, err := ssh.ParsePrivateKey([]byte(values["privateKey"]))
		if err != nil {
			t.Fatal(err)
		}
		public, comment, _, rest, err := ssh.ParseAuthorizedKey([]byte(values["publicKey"]))
		if err != nil || comment != "me" || len(rest) != 0 {
			t.Fatalf("%s: comment %q, %d more bytes, error %v", of, comment, len(rest), err)
		}
		signature, err := signer.Sign(nil, []byte("data"))
		if err != nil {
			t.Fatal(err)
		}
		if err := public.Verify([]byte("data"), signature); err != nil {
			t.Errorf("%s: %v", of, err)
		}
	}
}

func TestConnectFails(t *testing.T) {
	cases := map[string]struct {
		reason   string
		settings settings
		want     string
	}{
		"Type":         {"The error names the types.", settings{KeySettings: key{KeyType: "dsa"}}, `spec.keyType: "dsa" is unknown; use rsa, ecdsa or ed25519`},
		"SizeOnly":     {"A size without a type is ambiguous.", settings{KeySettings: key{KeySize: 4096}}, "spec.keySize: needs spec.keyType rsa or ecdsa; set spec.keyType, or remove spec.keySize"},
		"Ed25519":      {"An Ed25519 key has one size.", settings{KeySettings: key{KeyType: "ed25519", KeySize: 256}}, "spec.keySize: needs spec.keyType rsa or ecdsa; set spec.keyType, or remove spec.keySize"},
		"RSASmall":     {"A short RSA key is too weak.", settings{KeySettings: key{KeyType: "rsa", KeySize: 1024}}, "spec.keySize: is 1024; use 2048 to 4096 bits for an RSA key, in steps of 8"},
		"RSALarge":     {"A longer RSA key takes too long.", settings{KeySettings: key{KeyType: "rsa", KeySize: 16384}}, "spec.keySize: is 16384; use 2048 to 4096 bits for an RSA key, in steps of 8"},
		"RSAOdd":       {"Programs refuse RSA keys of odd sizes.", settings{KeySettings: key{KeyType: "rsa", KeySize: 2049}}, "spec.keySize: is 2049; use 2048 to 4096 bits for an RSA key, in steps of 8"},
		"ECDSA":        {"There are three curves.", settings{KeySettings: key{KeyType: "ecdsa", KeySize: 255}}, "spec.keySize: is 255; an ECDSA key has 256, 384 or 521 bits"},
		"CommentLines": {"A second line would be a second key.", settings{Comment: "a\nssh-ed25519 AAAA"}, "spec.comment: must be one short line; remove line breaks and other control characters"},
		"CommentLong":  {"A long comment is refused.", settings{Comment: strings.Repeat("c", maxComment+1)}, "spec.comment: must be one short line; remove line breaks and other control characters"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := connectBoth(t, tc.settings)
			if diff := cmp.Diff(provider.NewError(provider.Invalid, "%s", tc.want), err); diff != "" {
				t.Errorf("%s\nConnect(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNoneTwice generates keys of each type, which all differ.
func TestNoneTwice(t *testing.T) {
	for of, n := range map[v1alpha1.KeyType]int{"ed25519": 1000, "ecdsa": 1000, "rsa": 3} {
		seen := map[string]bool{}
		for range n {
			for _, v := range generate(t, settings{KeySettings: key{KeyType: of}}) {
				seen[v] = true
			}
		}
		if len(seen) != 2*n {
			t.Errorf("%s: %d different values, want %d", of, len(seen), 2*n)
		}
	}
}

func TestCancelled(t *testing.T) {
	g, err := connectBoth(t, settings{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	made, err := g.Generate(ctx)
	if provider.ClassOf(err) != provider.Unavailable || made.Values != nil {
		t.Errorf("a call that was cancelled has %d values and error %v", len(made.Values), err)
	}
}
