package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// made returns controller-gen's output for one permission with a roleName.
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

// TestRender renders ClusterRoles from the output of controller-gen.
func TestRender(t *testing.T) {
	secrets := made("ClusterRole", "namespaces", "", "secrets", "get")
	cases := map[string]struct {
		reason string
		asked  string
		// want are the names of the ClusterRoles, err is a part of the error.
		want []string
		err  string
	}{
		"One":       {"A ClusterRole without rules is omitted.", secrets, []string{"direct-secrets-provider-acme"}, ""},
		"Scope":     {"A cluster-scoped resource cannot be granted in a namespace.", made("ClusterRole", "namespaces", "acme.direct-secrets.io", "clusteracmes", "list"), nil, "clusteracmes of group \"acme.direct-secrets.io\" has no namespace: its markers need roleName=cluster"},
		"Status":    {"The status of a cluster-scoped resource cannot be granted in a namespace.", made("ClusterRole", "namespaces", "acme.direct-secrets.io", "clusteracmes/status", "patch"), nil, "clusteracmes/status of group"},
		"OtherName": {"A resource with the same name in another group can be namespaced.", made("ClusterRole", "namespaces", "other.direct-secrets.io", "clusteracmes", "list"), []string{"direct-secrets-provider-acme"}, ""},
		"Wildcard":  {"A wildcard for verbs is rejected.", made("ClusterRole", "namespaces", "", "secrets", "*"), nil, "wildcard"},
		"AnyGroup":  {"A wildcard for groups is rejected.", made("ClusterRole", "namespaces", "*", "secrets", "get"), nil, "wildcard"},
		"Unknown":   {"A misspelt roleName is an error.", secrets + made("ClusterRole", "clutser", "", "namespaces", "get"), nil, "roleName=clutser"},
		"Role":      {"A namespace in a marker is rejected.", made("Role", "namespaces", "", "secrets", "get"), nil, "use roleName, not namespace"},
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
		"direct-secrets.io/clustereventreceivers":      true,
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
