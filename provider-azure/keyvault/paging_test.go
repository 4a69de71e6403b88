package keyvault

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

// many is more than two pages have.
const many = 60

// named makes a store reach the emulator by the name of a vault in Azure. second is called once, before a request for the second page of
// a list is sent.
func named(srv *emulator.Server, at string, second func()) func(*testStore) {
	return func(s *testStore) {
		once := sync.OnceFunc(second)
		s.Spec.VaultURL, s.Network.Wrap = at, srv.Divert(func(r *http.Request) {
			if r.URL.Query().Has("$skiptoken") {
				once()
			}
		})
	}
}

func startNamed(t testing.TB) *emulator.Server {
	t.Helper()
	return start(t, emulator.WithAuthority("https://login.microsoftonline.com"))
}

// TestManyPages finds more secrets than a page has, and writes to a secret with more versions than that. Key Vault links the pages by
// addresses with the port of https, and some pages are empty.
func TestManyPages(t *testing.T) {
	cases := map[string]struct {
		reason, url string
		revoke      bool
		logins      int
	}{
		"Name":    {"A link that names the default port leads to the same vault.", "https://shop.vault.azure.net", false, 1},
		"Port":    {"A vaultURL that names the default port is the same vault.", "https://shop.vault.azure.net:443", false, 1},
		"Revoked": {"A token that ends between two pages is replaced by one login.", "https://shop.vault.azure.net", true, 2},
	}
	for name, tc := range cases {
		for what, do := range map[string]func(*testing.T, *emulator.Server, *Client){"Find": findsMany, "Push": pushesMany} {
			t.Run(name+what, func(t *testing.T) {
				srv := startNamed(t)
				c := client(t, srv, named(srv, tc.url, func() {
					if tc.revoke {
						srv.RevokeTokens()
					}
				}))
				do(t, srv, c)
				if diff := cmp.Diff(tc.logins, srv.Count(emulator.CallToken)); diff != "" {
					t.Errorf("%s\nlogins: -want, +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

func findsMany(t *testing.T, srv *emulator.Server, c *Client) {
	t.Helper()
	var want, got []string
	for i := range many {
		want = append(want, fmt.Sprintf("s-%03d", i))
		put(t, srv, want[i], "x")
	}
	for v, err := range c.Find(soon(t), provider.Query{}) {
		if err != nil {
			t.Fatalf("Find(...): %v", err)
		}
		got = append(got, v.Key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Find(...): -want, +got:\n%s", diff)
	}
}

func pushesMany(t *testing.T, srv *emulator.Server, c *Client) {
	t.Helper()
	create(t, c, "", "one")
	for i := range many - 1 {
		put(t, srv, "db", strconv.Itoa(i))
	}
	if _, err := c.Update(soon(t), target(""), observe(t, c, ""), []byte("new")); err != nil {
		t.Fatalf("Update(...): %v", err)
	}
	r, err := remoteOf(target(""))
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.versions(soon(t), r)
	if diff := cmp.Diff(many+1, len(all)); diff != "" || err != nil {
		t.Errorf("versions(...): %v, -want, +got:\n%s", err, diff)
	}
	if got := string(observe(t, c, "").Data); got != "new" {
		t.Errorf("The value is %q.", got)
	}
}

// TestOneVault compares a vault with and without the default port: it is one place.
func TestOneVault(t *testing.T) {
	srv := startNamed(t)
	var places []string
	for _, at := range []string{"https://shop.vault.azure.net", "https://Shop.vault.azure.net:443/"} {
		id, err := client(t, srv, named(srv, at, func() {})).Identity(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, id.Place)
	}
	if !strings.Contains(places[0], "shop.vault.azure.net") || places[0] != places[1] {
		t.Errorf("The spelling of the address changes the place: %q", places)
	}
}
