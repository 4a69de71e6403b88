package basicauth

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/bcrypt"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
)

type settings = v1alpha1.BasicAuthSettings

// connectBoth connects the namespaced Kind and the cluster Kind, which must agree.
func connectBoth(t testing.TB, s settings) (provider.Generator, error) {
	t.Helper()
	own, shared := &v1alpha1.BasicAuth{}, &v1alpha1.ClusterBasicAuth{}
	own.Spec.BasicAuthSettings, shared.Spec.BasicAuthSettings = s, s
	g, err := Connect(t.Context(), own, nil)
	_, errShared := Connect(t.Context(), shared, nil)
	if diff := cmp.Diff(err, errShared); diff != "" {
		t.Errorf("Connect(...): -BasicAuth, +ClusterBasicAuth:\n%s", diff)
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

// verifies reports whether htpasswd accepts a login for a file.
func verifies(t testing.TB, file, username, password string) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "htpasswd", "-vb", file, username, password).CombinedOutput() //nolint:gosec // Generated values.
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatal("these tests compare with Apache; install htpasswd (Debian: apache2-utils)")
	}
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) { // 3 is a wrong password.
		t.Fatalf("htpasswd: %v\n%s", err, out)
	}
	return err == nil
}

// TestApacheReads checks that htpasswd accepts the password for the line, and no other password.
func TestApacheReads(t *testing.T) {
	cases := map[string]struct {
		reason       string
		settings     settings
		length, cost int
	}{
		"Default":  {"The default has 26 characters and cost 10.", settings{Username: "admin"}, 26, 10},
		"Shortest": {"The shortest password works.", settings{Username: "a", Length: 13}, 13, 10},
		"Longest":  {"All 72 characters count.", settings{Username: "admin", Length: 72}, 72, 10},
		"Cost":     {"The cost can be higher.", settings{Username: "admin", Cost: 12}, 26, 12},
		"Symbols":  {"A name can have symbols.", settings{Username: `me+you@shop.example.com/$2y$"#`}, 26, 10},
		"LongName": {"The longest name works.", settings{Username: strings.Repeat("n", 128)}, 26, 10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			values := generate(t, tc.settings)
			file := filepath.Join(t.TempDir(), "auth")
			if err := os.WriteFile(file, []byte(values["auth"]), 0o600); err != nil {
				t.Fatal(err)
			}
			password := values["password"]
			if !verifies(t, file, values["username"], password) {
				t.Errorf("%s\nhtpasswd refuses the login.", tc.reason)
			}
			if verifies(t, file, values["username"], password[:len(password)-1]+"!") {
				t.Errorf("%s\nhtpasswd accepts a password whose last character differs.", tc.reason)
			}
			if len(values) != 3 || values["username"] != tc.settings.Username {
				t.Errorf("%s\n%d values, and the name %q", tc.reason, len(values), values["username"])
			}
			if !regexp.MustCompile(`^[A-Z2-7]+$`).MatchString(password) || len(password) != tc.length {
				t.Errorf("%s\nA password of %d characters, or other ones; want %d.", tc.reason, len(password), tc.length)
			}
			hash, _ := strings.CutPrefix(values["auth"], tc.settings.Username+":")
			if cost, err := bcrypt.Cost([]byte(hash)); err != nil || cost != tc.cost {
				t.Errorf("%s\ncost %d, error %v", tc.reason, cost, err)
			}
		})
	}
}

func TestConnectFails(t *testing.T) {
	const rule = "use up to 128 printable ASCII characters without spaces and colons, and another first character than #"
	cases := map[string]struct {
		reason   string
		settings settings
		want     string
	}{
		"Empty":    {"A login has a name.", settings{}, `spec.username: "" is not valid; ` + rule},
		"Colon":    {"A colon ends the name.", settings{Username: "a:b"}, `spec.username: "a:b" is not valid; ` + rule},
		"Line":     {"A second line would be a second login.", settings{Username: "a\nb"}, `spec.username: "a\nb" is not valid; ` + rule},
		"Comment":  {"Servers ignore a line that begins with #.", settings{Username: "#a"}, `spec.username: "#a" is not valid; ` + rule},
		"Space":    {"Servers differ in how they read spaces.", settings{Username: "a b"}, `spec.username: "a b" is not valid; ` + rule},
		"LongName": {"htpasswd refuses long lines.", settings{Username: strings.Repeat("n", 129)}, `spec.username: "` + strings.Repeat("n", 80) + `" is not valid; ` + rule},
		"Short":    {"A password has at least 64 bits of entropy.", settings{Username: "a", Length: 12}, "spec.length: is 12; set 13 to 72"},
		"Long":     {"bcrypt reads 72 bytes.", settings{Username: "a", Length: 73}, "spec.length: is 73; set 13 to 72"},
		"Cheap":    {"A low cost is too weak.", settings{Username: "a", Cost: 9}, "spec.cost: is 9; set 10 to 12"},
		"Costly":   {"A high cost makes logins slow.", settings{Username: "a", Cost: 13}, "spec.cost: is 13; set 10 to 12"},
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

// TestNoneTwice generates logins, whose passwords and hashes all differ. Two calls have the same password of 130 bits
// with a probability of far less than 1e-30.
func TestNoneTwice(t *testing.T) {
	seen := map[string]bool{}
	const n = 30
	for range n {
		values := generate(t, settings{Username: "a"})
		seen[values["password"]], seen[values["auth"]] = true, true
	}
	if len(seen) != 2*n {
		t.Errorf("%d different values, want %d", len(seen), 2*n)
	}
}

func TestCancelled(t *testing.T) {
	g, err := connectBoth(t, settings{Username: "a"})
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

// busy generates while its tenant does other work that takes a processor for long.
type busy struct {
	provider.Generator
	t *testing.T
}

func (b busy) Generate(ctx context.Context) (provider.Generated, error) {
	end, err := provider.Work(ctx)
	if err != nil {
		return provider.Generated{}, err
	}
	var g provider.Generated
	made := false
	go func() {
		g, err = b.Generator.Generate(ctx)
		made = true
	}()
	if synctest.Wait(); made {
		b.t.Error("two hashes of a tenant are computed at the same time")
	}
	end()
	synctest.Wait()
	return g, err
}

// TestWork generates a login while its tenant works.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := connectBoth(t, settings{Username: "admin"})
		if err != nil {
			t.Fatal(err)
		}
		made, err := fake.Link("BasicAuth", busy{g, t}).Generate(t.Context())
		if err != nil || len(made.Values) == 0 {
			t.Errorf("Generate(): %d values, %v", len(made.Values), err)
		}
	})
}
