// Command permissions writes manifests/rbac.yaml of modules from the markers +kubebuilder:rbac of all packages in
// their binaries. A marker is next to the code that makes the request, but those of Kinds are generated. Its roleName
// selects one of the ClusterRoles below.
//
//	permissions CONTROLLER_GEN MODULE...
//
// Run it in the root of the tree, whose common/manifests/crds it reads. MODULE is a folder with a main package.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// project is the prefix of the paths of the project's modules.
const project = "github.com/direct-secrets/direct-secrets/"

// roles are the ClusterRoles, in the order of the file.
var roles = []struct {
	// marker is the roleName of markers. suffix is the end of the name of the ClusterRole.
	marker, suffix, comment string
}{
	{"namespaces", "", "# The permissions of %s in every namespace that it serves.\n"},
	{"cluster", "-cluster", `# The additional permissions of %s if it serves all namespaces: for cluster Kinds, for the labels of
# namespaces that these select by, and for the objects of ClusterExternalSecrets and ClusterPushSecrets.
`},
	{"leases", "-leases", `# For the leader election of %s, and the presence that modules report to each other. It is needed only in its own
# namespace, and in that of --presence-namespace if it is another.
`},
	{"records", "-records", `# For the Secret with the keys by which %s knows its own records of credentials. It is needed only in its own namespace.
`},
	{"tokens", "-tokens", `# Optional: only for stores of %s that log in with the token of a ServiceAccount. A subject that can create
# tokens of a ServiceAccount can act as it, so bind this only in the namespaces that need it.
`},
	{"configmaps", "-configmaps", `# Optional: only for ExternalSecrets of %s whose target is a ConfigMap, with --configmap-targets.
`},
	{"workloads", "-workloads", `# Optional: only for ExternalSecrets of %s that restart workloads, with --workload-restarts.
`},
	{"receivers", "-receivers", `# Optional: only for EventReceivers of %s, with --event-receiver-bind-address.
`},
	{"receivers-cluster", "-receivers-cluster", `# Optional: only for ClusterEventReceivers of %s, with --event-receiver-bind-address, if it serves all namespaces.
`},
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: permissions CONTROLLER_GEN MODULE...")
		os.Exit(2)
	}
	for _, module := range os.Args[2:] {
		if err := write(os.Args[1], module); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %s\n", module, err)
			os.Exit(1)
		}
	}
}

// write writes manifests/rbac.yaml of the module in a folder.
func write(controllerGen, module string) error {
	asked, err := markers(controllerGen, module)
	if err != nil {
		return err
	}
	cluster, err := clusterScoped("common", module)
	if err != nil {
		return err
	}
	out, err := render(filepath.Base(module), asked, cluster)
	if err != nil {
		return err
	}
	path := filepath.Join(module, "manifests", "rbac.yaml")
	fmt.Println(path)
	return os.WriteFile(path, out, 0o644) //nolint:gosec // It is part of the tree, for all to read.
}

// markers returns controller-gen's output for the markers of the packages of a module. Other packages need no
// permissions.
func markers(controllerGen, module string) ([]byte, error) {
	// A module of another repository has another path.
	used, err := run(module, "go", "list", "-deps", "-f", "{{if .Module}}{{.ImportPath}} {{.Module.Main}}{{end}}", ".")
	if err != nil {
		return nil, err
	}
	args := []string{"rbac:roleName=" + roles[0].marker, "output:rbac:stdout"}
	for line := range strings.Lines(string(used)) {
		if pkg, isOwn, _ := strings.Cut(strings.TrimSpace(line), " "); isOwn == "true" || strings.HasPrefix(pkg, project) {
			args = append(args, "paths="+pkg)
		}
	}
	return run(module, controllerGen, args...)
}

func run(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...) //nolint:noctx,gosec // It ends by itself, and the Makefile chooses it.
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// clusterScoped returns the cluster-scoped resources: those of the CRDs of modules, and namespaces.
func clusterScoped(modules ...string) (map[string]bool, error) {
	resources := map[string]bool{"/namespaces": true}
	for _, module := range modules {
		files, err := filepath.Glob(filepath.Join(module, "manifests", "crds", "*.yaml"))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("no CRDs in %s/manifests/crds: generate them first", module)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file) //nolint:gosec // A file of the tree.
			if err != nil {
				return nil, err
			}
			var crd struct {
				Spec struct {
					Group, Scope string
					Names        struct{ Plural string }
				}
			}
			if err := yaml.Unmarshal(raw, &crd); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if crd.Spec.Scope == "Cluster" {
				resources[crd.Spec.Group+"/"+crd.Spec.Names.Plural] = true
			}
		}
	}
	return resources, nil
}

// render returns the ClusterRoles of a module from the output of controller-gen, one for each roleName. It
// omits ClusterRoles without rules.
func render(module string, asked []byte, cluster map[string]bool) ([]byte, error) {
	byMarker := map[string]rbacv1.ClusterRole{}
	for doc := range bytes.SplitSeq(bytes.TrimPrefix(asked, []byte("---\n")), []byte("\n---\n")) {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(doc, &role); err != nil {
			return nil, fmt.Errorf("cannot read what controller-gen made: %w", err)
		}
		if role.Kind != "ClusterRole" {
			return nil, fmt.Errorf("a marker makes a %s: use roleName, not namespace", role.Kind)
		}
		byMarker[role.Name] = role
	}
	out := bytes.NewBufferString("# Made by `make generate` from the markers +kubebuilder:rbac of the code.\n")
	for _, r := range roles {
		role, ok := byMarker[r.marker]
		if !ok {
			continue
		}
		delete(byMarker, r.marker)
		if err := check(role.Rules, r.marker, cluster); err != nil {
			return nil, err
		}
		rules, err := yaml.Marshal(map[string]any{"rules": role.Rules})
		if err != nil {
			return nil, err
		}
		if r.marker != roles[0].marker {
			out.WriteString("---\n")
		}
		fmt.Fprintf(out, r.comment+"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: direct-secrets-%s%s\n%s",
			module, module, r.suffix, rules)
	}
	for name := range byMarker {
		return nil, fmt.Errorf("a marker has roleName=%s, and there is no such role", name)
	}
	return out.Bytes(), nil
}

// check returns an error for rules that cannot be granted by their role. A cluster-scoped resource has no
// effect in a Role. Wildcards would grant more than the code names.
func check(rules []rbacv1.PolicyRule, marker string, cluster map[string]bool) error {
	var errs []error
	for _, rule := range rules {
		if slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*") || len(rule.NonResourceURLs) > 0 {
			errs = append(errs, fmt.Errorf("a marker has a wildcard or a URL: %v", rule))
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name, _, _ := strings.Cut(resource, "/")
				if cluster[group+"/"+name] && marker != "cluster" && !strings.HasSuffix(marker, "-cluster") {
					errs = append(errs, fmt.Errorf("%s of group %q has no namespace: its markers need roleName=cluster", resource, group))
				}
			}
		}
	}
	return errors.Join(errs...)
}
