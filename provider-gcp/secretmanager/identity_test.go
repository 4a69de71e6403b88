package secretmanager

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
)

// TestIdentity compares stores with one of a project at an emulator. No server is called, because any server
// can run at a custom endpoint.
func TestIdentity(t *testing.T) {
	srv := start(t)
	of := func(change func(*v1alpha1.GCPSpec)) provider.Identity {
		t.Helper()
		s := storeOf(srv)
		s.ambient = true
		if change != nil {
			change(&s.Spec.GCPSpec)
		}
		c, err := s.connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		is, err := fake.Link("GCPSecretManager", c).Identify(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	here := of(nil)
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.GCPSpec)
		want   bool
	}{
		"Retries":  {"Other retry settings have the same identity.", func(s *v1alpha1.GCPSpec) { s.RetrySettings = nil }, true},
		"Project":  {"Another project has another identity.", func(s *v1alpha1.GCPSpec) { s.ProjectID = "other" }, false},
		"Location": {"A location has another identity.", func(s *v1alpha1.GCPSpec) { s.Location = "europe-west3" }, false},
		"Login":    {"Another login has the same identity.", func(s *v1alpha1.GCPSpec) { s.Auth = nil }, true},
		"Endpoint": {"Another endpoint has another identity, because its project can be a different one.", func(s *v1alpha1.GCPSpec) { s.Auth, s.Endpoint = nil, "https://own.p.googleapis.com" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := of(tc.change); (got == here) != tc.want {
				t.Errorf("%s\nalike: %t, want %t: -base, +got:\n%s", tc.reason, !tc.want, tc.want, cmp.Diff(here, got))
			}
		})
	}
	if n := srv.Count(); n > 0 {
		t.Errorf("%d calls", n)
	}
}
