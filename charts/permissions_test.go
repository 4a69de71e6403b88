package charts

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPermissions compares all granted permissions with the reviewed ones: testdata/permissions has one line for
// each. `go test ./charts -run TestPermissions -update` writes the files again.
func TestPermissions(t *testing.T) {
	cases := map[string]struct {
		reason string
		sets   []string
	}{
		"cluster-wide":      {reason: "the default permissions of a release"},
		"namespaces":        {reason: "a release of a tenant has only Roles", sets: []string{`global.scope.namespaces=["a","b"]`}},
		"tokens":            {reason: "a setting allows tokens of all ServiceAccounts", sets: []string{`global.serviceAccountTokens.enabled=true`}},
		"tokens-namespaces": {reason: "a setting allows tokens of some ServiceAccounts", sets: []string{`global.serviceAccountTokens={"enabled":true,"namespaces":["a"],"names":["app"]}`}},
		"tokens-scope":      {reason: "a setting allows tokens in the served namespaces", sets: []string{`global.scope.namespaces=["a","b"]`, `provider-aws.serviceAccountTokens.enabled=true`}},
		"presence":          {reason: "Leases in another namespace need permissions there", sets: []string{`global.presenceNamespace="shared"`, `global.scope.namespaces=["a"]`}},
		"metrics-auth":      {reason: "reviews of tokens need permissions in the whole cluster", sets: []string{`global.metrics.auth=true`, `global.scope.namespaces=["a"]`}},
		"receivers":         {reason: "a setting allows EventReceivers", sets: []string{`global.eventReceiver.enabled=true`}},
		"receivers-scope":   {reason: "a release of a tenant has only Roles for EventReceivers", sets: []string{`global.eventReceiver.enabled=true`, `global.scope.namespaces=["a"]`}},
		"aggregated":        {reason: "a setting grants permissions to the users of the cluster, even if the chart does not install the CRDs", sets: []string{`global.crds.aggregateRoles=true`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(grants(t, render(t, umbrella, enable(modules, append(tc.sets, noCRDs)...))), "\n") + "\n"
			file := filepath.Join("testdata", "permissions", name+".txt")
			if *update {
				must(t, os.MkdirAll(filepath.Dir(file), 0o755))
				must(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			must(t, err)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s\nIf this is intended, run `go test ./charts -run TestPermissions -update`.", tc.reason, diff)
			}
		})
	}
}

// TestScopeIsNamespaced checks that a release for chosen namespaces has objects in its own namespace, Roles in those that it serves, and
// no other cluster-wide objects than its values describe.
func TestScopeIsNamespaced(t *testing.T) {
	t.Parallel()
	words := strings.Join(strings.Fields(strings.ReplaceAll(read(t, filepath.Join(umbrella, "values.yaml")), "#", "")), " ")
	const described = "nothing cluster-wide except CRDs and, with metrics.auth, a ClusterRole for reviews of tokens"
	if !strings.Contains(words, described) {
		t.Errorf("values.yaml does not describe %q", described)
	}
	got := map[string]map[string]bool{}
	for _, o := range render(t, umbrella, enable(modules, slices.Concat(everyScope["namespaces"], everything)...)) {
		if got[o.GetNamespace()] == nil {
			got[o.GetNamespace()] = map[string]bool{}
		}
		got[o.GetNamespace()][o.GetKind()] = true
	}
	roles := map[string]bool{"Role": true, "RoleBinding": true}
	own := map[string]bool{"Role": true, "RoleBinding": true}
	for _, kind := range []string{"Deployment", "ServiceAccount", "Service", "PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "PrometheusRule", "ConfigMap"} {
		own[kind] = true
	}
	want := map[string]map[string]bool{"": {"CustomResourceDefinition": true}, namespace: own, "a": roles, "b": roles, "shared": roles}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Kinds by namespace: -want, +got:\n%s", diff)
	}
	if without := of(render(t, umbrella, enable(modules, noCRDs)), "CustomResourceDefinition"); len(without) > 0 {
		t.Errorf("with %s there are still CRDs: %v", noCRDs, names(without))
	}
}

// grants returns a line for each permission: the subject, the verbs, the resource and the namespace. Roles
// without a binding are for users, by aggregation. A wildcard could grant more in the future.
func grants(t *testing.T, objects []*unstructured.Unstructured) []string {
	t.Helper()
	bound := map[string][]string{}
	for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
		for _, o := range of(objects, kind) {
			b := decode[rbacv1.RoleBinding](t, o)
			for _, s := range b.Subjects {
				role := fmt.Sprintf("%s %s/%s", b.RoleRef.Kind, b.Namespace, b.RoleRef.Name)
				bound[role] = append(bound[role], fmt.Sprintf("%s %s/%s", s.Kind, s.Namespace, s.Name))
			}
		}
	}
	set := map[string]bool{}
	for _, kind := range []string{"Role", "ClusterRole"} {
		for _, o := range of(objects, kind) {
			role := decode[rbacv1.Role](t, o)
			subjects := bound[fmt.Sprintf("%s %s/%s", kind, role.Namespace, role.Name)]
			for label := range role.Labels {
				if to, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); ok {
					subjects = append(subjects, "users with the ClusterRole "+to)
				}
			}
			if len(subjects) == 0 {
				t.Errorf("%s has no binding", name(o))
			}
			where := "everywhere"
			if kind == "Role" {
				where = "in " + role.Namespace
			}
			for _, r := range role.Rules {
				for _, s := range slices.Concat(r.APIGroups, r.Resources, r.Verbs) {
					if strings.Contains(s, "*") || slices.Contains([]string{"escalate", "bind", "impersonate"}, s) {
						t.Errorf("%s has %q, with which a module could get more permissions", name(o), s)
					}
				}
				for _, line := range lines(r) {
					for _, s := range subjects {
						set[fmt.Sprintf("%s | %s | %s", s, where, line)] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// lines returns one line for each resource of a rule, with the verbs.
func lines(r rbacv1.PolicyRule) []string {
	var out []string
	verbs := strings.Join(slices.Sorted(slices.Values(r.Verbs)), " ")
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			what := strings.TrimSuffix(resource+"."+group, ".")
			if len(r.ResourceNames) > 0 {
				what += fmt.Sprint(r.ResourceNames)
			}
			out = append(out, what+" | "+verbs)
		}
	}
	return append(out, r.NonResourceURLs...)
}

// everyScope are the values that change the permissions.
var everyScope = map[string][]string{
	"cluster-wide": {`global.serviceAccountTokens.enabled=true`, `global.crds.aggregateRoles=true`},
	"namespaces":   {`global.scope.namespaces=["a","b"]`, `global.serviceAccountTokens.enabled=true`, `global.crds.aggregateRoles=true`, `global.presenceNamespace="shared"`},
}

// everything enables all settings that are off by default and work with every scope.
var everything = []string{
	`global.replicaCount=2`, `global.networkPolicy.enabled=true`, `global.metrics.serviceMonitor.enabled=true`,
	`prometheusRule.enabled=true`, `grafanaDashboard.enabled=true`,
}
