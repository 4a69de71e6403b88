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
		"aggregated":        {reason: "a setting grants permissions to the users of the cluster", sets: []string{`global.crds.aggregateRoles=true`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(grants(t, render(t, umbrella, enable(modules, tc.sets...))), "\n") + "\n"
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

// TestScopeIsNamespaced checks that a release for chosen namespaces has no other cluster-wide objects than its values describe.
func TestScopeIsNamespaced(t *testing.T) {
	t.Parallel()
	words := strings.Join(strings.Fields(strings.ReplaceAll(read(t, filepath.Join(umbrella, "values.yaml")), "#", "")), " ")
	const described = "nothing cluster-wide except CRDs and, with metrics.auth, a ClusterRole for reviews of tokens"
	if !strings.Contains(words, described) {
		t.Errorf("values.yaml does not describe %q", described)
	}
	cases := map[string]struct {
		reason string
		sets   []string
		want   []string
	}{
		"Default":     {"only CRDs are cluster-wide", nil, []string{"CustomResourceDefinition"}},
		"MetricsAuth": {"tokens are reviewed for the cluster", []string{`global.metrics.auth=true`}, []string{"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kinds := map[string]bool{}
			for _, o := range render(t, umbrella, enable(modules, append(tc.sets, `global.scope.namespaces=["a"]`)...)) {
				if o.GetNamespace() == "" {
					kinds[o.GetKind()] = true
				}
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(kinds))); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUserRolesNeedNoCRDs checks that the ClusterRoles for users contain the Kinds even if the chart does not
// install the CRDs.
func TestUserRolesNeedNoCRDs(t *testing.T) {
	t.Parallel()
	elsewhere := render(t, umbrella, enable(modules, `global.crds={"aggregateRoles":true,"enabled":false}`))
	if crds := of(elsewhere, "CustomResourceDefinition"); len(crds) > 0 {
		t.Errorf("with global.crds.enabled=false there are still CRDs: %v", names(crds))
	}
	want, err := os.ReadFile(filepath.Join("testdata", "permissions", "aggregated.txt"))
	must(t, err)
	if diff := cmp.Diff(string(want), strings.Join(grants(t, elsewhere), "\n")+"\n"); diff != "" {
		t.Errorf("rights with the CRDs of somebody else: -want, +got:\n%s", diff)
	}
}

// grants returns a line for each permission: the subject, the verbs, the resource and the namespace. Roles
// without a binding are for users, by aggregation.
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

// secretVerbs lists the purpose of each verb on Secrets. A module that is missing here is not allowed any.
var secretVerbs = map[string]map[string]string{}

func init() {
	// Each module can be the one that writes the Secret of an ExternalSecret.
	for _, m := range modules {
		secretVerbs[m] = map[string]string{
			"get":    "credentials of stores, Secrets that are pushed, parts of other modules, and the contents of targets",
			"list":   "caches of the metadata of targets and parts, and PushSecrets that select Secrets by labels",
			"watch":  "the same caches: drift is repaired immediately",
			"create": "targets and parts that do not exist yet",
			"patch":  "server-side apply of targets, and finalizers of parts",
			"delete": "deletionPolicy Delete, owned Secrets after a rename, and parts that are no longer needed",
		}
	}
}

func TestPermissionsAreMinimal(t *testing.T) {
	for scope, sets := range everyScope {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			objects := render(t, umbrella, enable(modules, sets...))
			verbs := map[string]map[string]bool{}
			for _, o := range append(of(objects, "Role"), of(objects, "ClusterRole")...) {
				module := o.GetLabels()["app.kubernetes.io/name"]
				for _, r := range decode[rbacv1.Role](t, o).Rules {
					for _, s := range slices.Concat(r.APIGroups, r.Resources, r.Verbs) {
						if strings.Contains(s, "*") {
							t.Errorf("%s has the wildcard %q, which can grant more in the future", name(o), s)
						}
					}
					for _, v := range r.Verbs {
						if slices.Contains([]string{"escalate", "bind", "impersonate"}, v) {
							t.Errorf("%s has the verb %s, with which a module could give itself permissions", name(o), v)
						}
						if slices.Contains(r.Resources, "secrets") {
							if verbs[module] == nil {
								verbs[module] = map[string]bool{}
							}
							verbs[module][v] = true
						}
					}
				}
			}
			want := map[string]map[string]bool{}
			for module, reasons := range secretVerbs {
				want[module] = map[string]bool{}
				for verb := range reasons {
					want[module][verb] = true
				}
			}
			if diff := cmp.Diff(want, verbs); diff != "" {
				t.Errorf("verbs on Secrets, each of which needs a reason in secretVerbs: -want, +got:\n%s", diff)
			}
		})
	}
}

// namespaced are the namespaced Kinds of a release.
var namespaced = []string{"Deployment", "ServiceAccount", "Service", "Role", "RoleBinding", "PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "PrometheusRule", "ConfigMap"}

func TestNothingIsClusterWideInAScope(t *testing.T) {
	t.Parallel()
	objects := render(t, umbrella, enable(modules, slices.Concat(everyScope["namespaces"], everything)...))
	allowed := map[string][]string{"CustomResourceDefinition": nil}
	for _, kind := range namespaced {
		allowed[kind] = []string{namespace}
	}
	for _, kind := range []string{"Role", "RoleBinding"} {
		allowed[kind] = []string{namespace, "a", "b", "shared"}
	}
	for _, o := range objects {
		in, ok := allowed[o.GetKind()]
		if !ok || len(in) > 0 && !slices.Contains(in, o.GetNamespace()) || len(in) == 0 && o.GetNamespace() != "" {
			t.Errorf("%s: under scope.namespaces a release has objects in its own namespace, Roles in those that it serves, and CRDs", name(o))
		}
	}
	if len(of(objects, "Role")) == 0 {
		t.Error("there is no Role, so this proves nothing")
	}
	without := render(t, umbrella, enable(modules, slices.Concat(everyScope["namespaces"], everything, []string{`global.crds.enabled=false`})...))
	if crds := of(without, "CustomResourceDefinition"); len(crds) > 0 {
		t.Errorf("with global.crds.enabled=false there are still CRDs: %v", names(crds))
	}
}

// everything enables all settings that are off by default and work with every scope.
var everything = []string{
	`global.replicaCount=2`, `global.networkPolicy.enabled=true`, `global.metrics.serviceMonitor.enabled=true`,
	`prometheusRule.enabled=true`, `grafanaDashboard.enabled=true`,
}

func TestWhatIsNotEnabledLeavesNothing(t *testing.T) {
	t.Parallel()
	none := names(render(t, umbrella, nil))
	want := []string{
		"CustomResourceDefinition clustereventreceivers.direct-secrets.io",
		"CustomResourceDefinition clusterexternalsecrets.direct-secrets.io", "CustomResourceDefinition clusterpushsecrets.direct-secrets.io",
		"CustomResourceDefinition eventreceivers.direct-secrets.io",
		"CustomResourceDefinition externalsecrets.direct-secrets.io", "CustomResourceDefinition pushsecrets.direct-secrets.io",
	}
	if diff := cmp.Diff(want, none); diff != "" {
		t.Errorf("without a module there are the CRDs that all share, and nothing else: -want, +got:\n%s", diff)
	}
	for _, m := range modules {
		t.Run(m, func(t *testing.T) {
			t.Parallel()
			var flagPairs []string
			for _, f := range moduleFlags(t) {
				flagPairs = append(flagPairs, f, "")
			}
			one := render(t, umbrella, enable([]string{m}, everything[:3]...))
			rest := render(t, umbrella, enable(slices.DeleteFunc(slices.Clone(modules), func(o string) bool { return o == m }), everything[:3]...))
			for _, o := range one {
				if slices.Contains(none, name(o)) {
					continue
				}
				if slices.Contains(names(rest), name(o)) {
					t.Errorf("%s is of %s and of another module", name(o), m)
				}
			}
			if diff := cmp.Diff(len(render(t, umbrella, enable(modules, everything[:3]...))), len(one)+len(rest)-len(none)); diff != "" {
				t.Errorf("each object is of one module: -want, +got:\n%s", diff)
			}
			for _, o := range rest {
				raw, err := o.MarshalJSON()
				must(t, err)
				// Every module gets the names of all modules that could be installed.
				text := strings.NewReplacer(flagPairs...).Replace(string(raw))
				if strings.Contains(text, m) {
					t.Errorf("%s names %s, which is not enabled", name(o), m)
				}
			}
		})
	}
}
