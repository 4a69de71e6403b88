package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// made returns what controller-gen makes of one right under a roleName.
func made(kind, role, group, resource, verb string) string {
	return `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ` + kind + `
metadata:
  name: ` + role + `
rules:
- apiGroups:
  - "` + group + `"
  resources:
  - ` + resource + `
  verbs:
  - "` + verb + `"
`
}

// TestRender makes ClusterRoles of what controller-gen has made.
func TestRender(t *testing.T) {
	secrets := made("ClusterRole", "namespaces", "", "secrets", "get")
	cases := map[string]struct {
		reason string
		asked  string
		// want are the names of the ClusterRoles, err is what the error says.
		want []string
		err  string
	}{
		"One":       {"What is not asked for is not there.", secrets, []string{"direct-secrets-provider-acme"}, ""},
		"All":       {"Each role has its name, in one order.", made("ClusterRole", "tokens", "", "serviceaccounts/token", "create") + made("ClusterRole", "cluster", "", "namespaces", "list") + made("ClusterRole", "leases", "coordination.k8s.io", "leases", "get") + secrets, []string{"direct-secrets-provider-acme", "direct-secrets-provider-acme-cluster", "direct-secrets-provider-acme-leases", "direct-secrets-provider-acme-tokens"}, ""},
		"Scope":     {"What has no namespace cannot be granted in one.", made("ClusterRole", "namespaces", "acme.direct-secrets.io", "clusteracmes", "list"), nil, "clusteracmes of group \"acme.direct-secrets.io\" has no namespace: its markers need roleName=cluster"},
		"Status":    {"Nor can its status.", made("ClusterRole", "namespaces", "acme.direct-secrets.io", "clusteracmes/status", "patch"), nil, "clusteracmes/status of group"},
		"Namespace": {"Nor can namespaces themselves.", made("ClusterRole", "leases", "", "namespaces", "get"), nil, "namespaces of group"},
		"OtherName": {"A resource of that name in another group may have a namespace.", made("ClusterRole", "namespaces", "other.direct-secrets.io", "clusteracmes", "list"), []string{"direct-secrets-provider-acme"}, ""},
		"Wildcard":  {"Nobody gets all verbs.", made("ClusterRole", "namespaces", "", "secrets", "*"), nil, "wildcard"},
		"AnyGroup":  {"Nor all groups.", made("ClusterRole", "namespaces", "*", "secrets", "get"), nil, "wildcard"},
		"Unknown":   {"A roleName that is misspelled is no right that gets lost.", secrets + made("ClusterRole", "clutser", "", "namespaces", "get"), nil, "roleName=clutser"},
		"Role":      {"Markers do not know in which namespace the operator runs.", made("Role", "namespaces", "", "secrets", "get"), nil, "use roleName, not namespace"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := render("provider-acme", []byte(tc.asked), map[string]bool{"/namespaces": true, "acme.direct-secrets.io/clusteracmes": true})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("\n%s\nrender(): error %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("\n%s\nrender(): %s", tc.reason, err)
			}
			var got []string
			for line := range strings.Lines(string(out)) {
				if n, ok := strings.CutPrefix(line, "  name: "); ok {
					got = append(got, strings.TrimSpace(n))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nrender(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestClusterScoped reads the scopes of the Kinds of the tree.
func TestClusterScoped(t *testing.T) {
	t.Chdir("../..")
	got, err := clusterScoped("common", "generator-password")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		"/namespaces": true,
		"direct-secrets.io/clusterexternalsecrets":     true,
		"direct-secrets.io/clusterpushsecrets":         true,
		"generator.direct-secrets.io/clusterpasswords": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("clusterScoped(): -want, +got:\n%s", diff)
	}
	if _, err := clusterScoped("hack"); err == nil {
		t.Error("clusterScoped() of a folder without CRDs: no error")
	}
}
