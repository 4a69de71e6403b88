package azureconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

func TestAnnotations(t *testing.T) {
	const other = "22222222-2222-2222-2222-222222222222"
	both := map[string]string{clientAnnotation: reader, tenantAnnotation: tenant}
	cases := map[string]struct {
		reason         string
		client, tenant string // of the spec
		annotations    map[string]string
		class          provider.Class
		part           string
	}{
		"Both":      {"The annotations name the client and the tenant.", "", "", both, "", ""},
		"Client":    {"The annotation names the client, and the spec the tenant.", "", tenant, map[string]string{clientAnnotation: reader}, "", ""},
		"Tenant":    {"The annotation names the tenant, and the spec the client.", reader, "", map[string]string{tenantAnnotation: tenant}, "", ""},
		"Spec":      {"The spec takes precedence.", reader, tenant, map[string]string{clientAnnotation: "unknown", tenantAnnotation: other}, "", ""},
		"Unread":    {"A ServiceAccount is not read if the spec sets both.", reader, tenant, nil, "", ""},
		"NoAccount": {"A missing ServiceAccount names the field.", "", tenant, nil, provider.Invalid, "spec.auth.serviceAccountRef: ServiceAccount shop/shop does not exist"},
		"NoClient":  {"A missing client names the field and the annotation.", "", tenant, map[string]string{}, provider.Invalid, "spec.auth.serviceAccountRef.clientID: is not set, and ServiceAccount shop has no annotation azure.workload.identity/client-id; set one of them"},
		"NoTenant":  {"A missing tenant names the field and the annotation.", reader, "", map[string]string{clientAnnotation: reader}, provider.Invalid, "spec.tenantID: is not set, and ServiceAccount shop has no annotation azure.workload.identity/tenant-id; set one of them"},
		"Path":      {"A client that is a path is refused, because it becomes part of a request.", "", tenant, map[string]string{clientAnnotation: "a/../b"}, provider.Invalid, "spec.auth.serviceAccountRef: annotation azure.workload.identity/client-id of ServiceAccount shop is not valid"},
		"Query":     {"A tenant with a query is refused, because it becomes part of a URL.", reader, "", map[string]string{tenantAnnotation: tenant + "?x=y"}, provider.Invalid, "spec.auth.serviceAccountRef: annotation azure.workload.identity/tenant-id of ServiceAccount shop is not valid"},
		"Up":        {"A tenant that leaves its place in the URL is refused.", reader, "", map[string]string{tenantAnnotation: ".."}, provider.Invalid, "annotation azure.workload.identity/tenant-id of ServiceAccount shop is not valid"},
		"Line":      {"A tenant with a line break is refused.", reader, "", map[string]string{tenantAnnotation: tenant + "\n"}, provider.Invalid, "annotation azure.workload.identity/tenant-id of ServiceAccount shop is not valid"},
		"Unknown":   {"A tenant that does not exist names the annotation.", reader, "", map[string]string{tenantAnnotation: other}, provider.Denied, "spec.auth.serviceAccountRef: annotation azure.workload.identity/tenant-id: the tenant does not exist"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			srv.SetApp(reader, emulator.App{Subjects: []string{"*"}})
			n, _ := diverted(srv)
			spec := specOf(byToken())
			spec.TenantID, spec.Auth.ServiceAccountRef.ClientID = tc.tenant, tc.client
			before := spec.DeepCopy()
			err := read(t, n, spec, creds{token: signed(t, "x", emulator.FederatedAudience), annotations: tc.annotations})
			fails(t, tc.reason, err, tc.class, tc.part)
			if diff := cmp.Diff(before, spec); diff != "" {
				t.Errorf("%s\nThe spec changed: -before, +after:\n%s", tc.reason, diff)
			}
			if tc.class == provider.Invalid && len(srv.Calls()) > 0 {
				t.Errorf("%s\ncalls: %v", tc.reason, srv.Calls())
			}
		})
	}
}

// TestAnnotationsOfOthers checks that only a ServiceAccount is asked for a tenant.
func TestAnnotationsOfOthers(t *testing.T) {
	for name, auth := range map[string]v1alpha1.AzureAuth{"Secret": bySecret(), "Certificate": byCertificate()} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(auth)
			spec.TenantID = ""
			n, _ := diverted(start(t))
			err := read(t, n, spec, creds{annotations: map[string]string{tenantAnnotation: tenant}, values: map[string][]byte{"secret": []byte(secret)}})
			fails(t, "Another login needs the tenant in the spec.", err, provider.Invalid, "spec.tenantID: is missing or not valid")
		})
	}
}
