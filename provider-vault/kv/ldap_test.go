package kv

import (
	"errors"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/jimlambrt/gldap"

	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// An entry is a user or a group in an LDAP directory.
type entry struct {
	dn, password string
	attributes   map[string][]string
}

// A directory is an LDAP server. Any user who has logged in can search it.
type directory struct {
	t       testing.TB
	address string
	entries []entry
	stop    func()
}

// start listens until stop is called or the test ends.
func (d *directory) start() {
	d.t.Helper()
	srv, err := gldap.NewServer(gldap.WithLogger(hclog.NewNullLogger()))
	routes, routesErr := gldap.NewMux()
	if err := errors.Join(err, routesErr, routes.Bind(d.bind), routes.Search(d.search), srv.Router(routes)); err != nil {
		d.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(d.address) }()
	d.stop = func() {
		if err := errors.Join(srv.Stop(), <-ended); err != nil {
			d.t.Error(err)
		}
		d.stop = func() {}
	}
	d.t.Cleanup(func() { d.stop() })
	eventually(d.t, func() string {
		c, err := net.Dial("tcp", d.address)
		if err != nil {
			return err.Error()
		}
		return closed(c)
	})
}

func closed(c net.Conn) (missing string) {
	if err := c.Close(); err != nil {
		return err.Error()
	}
	return ""
}

func (d *directory) bind(w *gldap.ResponseWriter, r *gldap.Request) {
	res := r.NewBindResponse(gldap.WithResponseCode(gldap.ResultInvalidCredentials))
	if m, err := r.GetSimpleBindMessage(); err == nil && slices.ContainsFunc(d.entries, func(e entry) bool {
		return e.password != "" && e.dn == m.UserName && e.password == string(m.Password)
	}) {
		res.SetResultCode(gldap.ResultSuccess)
	}
	_ = w.Write(res) // Vault reports a missing answer.
}

// assertion matches one term of a filter. Only the operator "or" is supported.
var assertion = regexp.MustCompile(`\((\w+)=([^()]*)\)`)

func (d *directory) search(w *gldap.ResponseWriter, r *gldap.Request) {
	m, err := r.GetSearchMessage()
	if err != nil {
		d.t.Error(err)
		return
	}
	for _, e := range d.entries {
		inside := e.dn == m.BaseDN || m.Scope == gldap.WholeSubtree && strings.HasSuffix(e.dn, ","+m.BaseDN)
		if !inside || !e.matches(m.Filter) {
			continue
		}
		found := r.NewSearchResponseEntry(e.dn, gldap.WithAttributes(e.attributes))
		_ = w.Write(found) // Vault reports a missing answer.
	}
	_ = w.Write(r.NewSearchDoneResponse(gldap.WithResponseCode(gldap.ResultSuccess))) // Vault reports a missing answer.
}

func (e entry) matches(filter string) bool {
	return slices.ContainsFunc(assertion.FindAllStringSubmatch(filter, -1), func(a []string) bool {
		return a[2] == "*" && a[1] == "objectClass" || slices.Contains(e.attributes[a[1]], a[2])
	})
}

// withDirectory starts a Vault that uses an LDAP server. One of its groups can read.
func withDirectory(t *testing.T) (*vaulttest.Server, creds, *directory) {
	t.Helper()
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	ports, err := controlplane.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	const bob = "uid=bob,ou=people,dc=example,dc=org"
	d := &directory{t: t, address: "127.0.0.1:" + ports[0], entries: []entry{
		{"cn=vault,dc=example,dc=org", "service", nil},
		{bob, " c4n4ry ", map[string][]string{"uid": {"bob"}}},
		{"uid=eve,ou=people,dc=example,dc=org", "eve", map[string][]string{"uid": {"eve"}}},
		{"cn=shop,ou=groups,dc=example,dc=org", "", map[string][]string{"cn": {"shop"}, "member": {bob}}},
	}}
	d.start()
	srv.Do(http.MethodPost, "sys/auth/people", M{"type": "ldap"})
	srv.Do(http.MethodPost, "auth/people/config", M{
		"url": "ldap://" + d.address, "binddn": "cn=vault,dc=example,dc=org", "bindpass": "service",
		"userdn": "ou=people,dc=example,dc=org", "userattr": "uid", "groupdn": "ou=groups,dc=example,dc=org", "groupattr": "cn",
	})
	srv.Do(http.MethodPost, "auth/people/groups/shop", M{"policies": "reader"})
	secrets["bob"], secrets["eve"], secrets["trimmed"] = " c4n4ry ", "eve", "c4n4ry"
	return srv, secrets, d
}

func TestLDAP(t *testing.T) {
	srv, secrets, d := withDirectory(t)
	read := func(t *testing.T, a v1alpha1.PasswordAuth) string {
		t.Helper()
		got := read1(t, connect(t, appRole(srv.URL, withAuth(v1alpha1.VaultAuth{LDAP: &a})), secrets))
		if strings.Contains(got, "c4n4ry") {
			t.Errorf("a password is shown: %s", got)
		}
		return got
	}
	right := v1alpha1.PasswordAuth{Path: "people", Username: "bob", SecretRef: ref("bob")}
	cases := map[string]struct {
		reason string
		auth   v1alpha1.PasswordAuth
		want   string
	}{
		"Right":         {"the password is sent unchanged, and the group has the policy", right, db},
		"WrongPassword": {"white space around a password is kept", v1alpha1.PasswordAuth{Path: "people", Username: "bob", SecretRef: ref("trimmed")}, "Denied: spec.auth.ldap.secretRef: Vault does not accept the password for this username"},
		"UnknownUser":   {"an unknown user is Denied", v1alpha1.PasswordAuth{Path: "people", Username: "unknown", SecretRef: ref("bob")}, "Denied: spec.auth.ldap.secretRef: Vault does not accept the password for this username"},
		"NoGroup":       {"a user without a group has no policy", v1alpha1.PasswordAuth{Path: "people", Username: "eve", SecretRef: ref("eve")}, `Denied: secret "shop/db": access denied; allow read on "secret/data/shop/db"`},
		"NoMount":       {"a method that is not mounted at the default path is Denied", v1alpha1.PasswordAuth{Username: "bob", SecretRef: ref("bob")}, "Denied: spec.auth.ldap.secretRef: Vault does not accept the password for this username; check both, and path"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := read(t, tc.auth); !strings.HasPrefix(got, tc.want) {
				t.Errorf("%s: got %s, want %s…", tc.reason, got, tc.want)
			}
		})
	}

	d.stop()
	if got, want := read(t, right), "Unavailable: spec.auth.ldap: Vault cannot reach the LDAP server"; got != want {
		t.Errorf("a directory that is down must not be reported as a wrong password: got %s, want %s", got, want)
	}
	d.start()
	if got := read(t, right); got != db {
		t.Errorf("the login must succeed after the outage: %s", got)
	}
}
