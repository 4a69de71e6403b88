package gcpconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
)

// TestServices compares the addresses of the services.
func TestServices(t *testing.T) {
	for service, want := range map[Service]string{SecretManager: "secretmanager.googleapis.com", PubSub: "pubsub.googleapis.com"} {
		got, err := parseEndpoint(service, &v1alpha1.GCPSpec{}, noCredentials{})
		if diff := cmp.Diff(want, got.host); diff != "" || err != nil {
			t.Errorf("%s: %v: -want, +got:\n%s", service, err, diff)
		}
	}
}

func TestParseEndpoint(t *testing.T) {
	cases := map[string]struct {
		reason   string
		location string
		endpoint string
		plainOK  bool
		want     endpoint
		trusted  bool
		err      string
	}{
		"Default":   {"An empty endpoint means Google's own address.", "", "", false, endpoint{"secretmanager.googleapis.com", "443", false, google}, true, ""},
		"Regional":  {"Regional secrets have one address per location.", "europe-west3", "", false, endpoint{"secretmanager.europe-west3.rep.googleapis.com", "443", false, google}, true, ""},
		"Private":   {"An address of Private Service Connect is accepted. Logins still use Google's addresses.", "", "https://secretmanager-shop.p.googleapis.com/", false, endpoint{"secretmanager-shop.p.googleapis.com", "443", false, google}, true, ""},
		"Other":     {"Another host gets neither logins nor the operator's identity.", "europe-west3", "https://gcp.example:8443", false, endpoint{"gcp.example", "8443", false, google}, false, ""},
		"LooksLike": {"A name that only ends like Google's domain is another host.", "", "https://evilgoogleapis.com", false, endpoint{"evilgoogleapis.com", "443", false, google}, false, ""},
		"Emulator":  {"Logins use an emulator's address, too.", "", "http://127.0.0.1:8080", false, endpoint{"127.0.0.1", "8080", true, below("http://127.0.0.1:8080")}, true, ""},
		"IPv6":      {"An IPv6 address keeps its brackets.", "", "https://[::1]:8443", false, endpoint{"::1", "8443", false, below("https://[::1]:8443")}, true, ""},
		"Plain":     {"Plain http to another host is rejected.", "", "http://gcp.example", false, endpoint{}, false, "plain http"},
		"PlainOK":   {"Plain http to another host is accepted if a flag of the operator allows it.", "", "http://gcp.example", true, endpoint{"gcp.example", "80", true, google}, false, ""},
		"Path":      {"A path is rejected, because gRPC has none.", "", "https://gcp.example/v1", false, endpoint{}, false, "must have no path"},
		"User":      {"A user name is rejected.", "", "http://127.0.0.1@gcp.example", false, endpoint{}, false, "must have no user"},
		"Scheme":    {"Another scheme is rejected.", "", "unix://x/run/x", false, endpoint{}, false, "must begin with https://"},
		"NoURL":     {"A host without a scheme is rejected.", "", "gcp.example:443", false, endpoint{}, false, "is not a URL"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseEndpoint(SecretManager, &v1alpha1.GCPSpec{Location: tc.location, Endpoint: tc.endpoint}, noCredentials{plain: tc.plainOK})
			if tc.err != "" {
				if provider.ClassOf(err) != provider.Invalid || !strings.HasPrefix(err.Error(), "spec.endpoint: ") || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nerror %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(endpoint{}, logins{})); diff != "" || err != nil {
				t.Errorf("%s\nparseEndpoint(...): %v: -want, +got:\n%s", tc.reason, err, diff)
			}
			if got.trusted() != tc.trusted {
				t.Errorf("%s\ntrusted: %t", tc.reason, got.trusted())
			}
		})
	}
}
