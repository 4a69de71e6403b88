package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/yaml"

	rbacv1 "k8s.io/api/rbac/v1"
)

// newChart is the Chart.yaml of a new module. hack/release changes its version, and Renovate that of common, which is the
// one in the go.mod of the module.
const newChart = `apiVersion: v2
name: MODULE
description: The module MODULE of direct-secrets.
type: application
version: VERSION
appVersion: VERSION
kubeVersion: ">=1.31.0-0"
home: https://github.com/direct-secrets/direct-secrets
icon: https://raw.githubusercontent.com/direct-secrets/direct-secrets/main/docs/public/logo.svg
keywords: [secrets, secret-management, operator, MODULE]
maintainers:
  - name: The maintainers of direct-secrets
    url: https://github.com/direct-secrets/direct-secrets/blob/main/docs/project/governance.md
annotations:
  artifacthub.io/category: security
  artifacthub.io/license: Apache-2.0
  artifacthub.io/operator: "true"
  artifacthub.io/crds: |
  artifacthub.io/images: |
    - name: MODULE
      image: ghcr.io/direct-secrets/MODULE:VERSION
  direct-secrets.io/common: COMMON
dependencies:
  - name: library
    version: VERSION
`

// required matches the version of common that a module requires.
var required = regexp.MustCompile(`(?m)^(?:require)?\s+github\.com/direct-secrets/direct-secrets/common (v\S+)`)

// layOut writes the files that the charts of all modules have in common.
func layOut(chart, module string) error {
	meta := filepath.Join(chart, "Chart.yaml")
	if _, err := os.Stat(meta); os.IsNotExist(err) {
		version, err := versionOf(filepath.Join(chart, "..", "library"))
		if err != nil {
			return err
		}
		mod, err := os.ReadFile(filepath.Join(chart, "..", "..", module, "go.mod"))
		if err != nil {
			return err
		}
		common := required.FindSubmatch(mod)
		if common == nil {
			return errors.Errorf("%s/go.mod does not require common", module)
		}
		if err := write(meta, []byte(strings.NewReplacer("MODULE", module, "VERSION", version, "COMMON", string(common[1])).Replace(newChart))); err != nil {
			return err
		}
	}
	if err := link(chart, "library"); err != nil {
		return err
	}
	return write(filepath.Join(chart, "templates", "module.yaml"), []byte("{{- include \"library.module\" . }}\n"))
}

// writeNames writes the settings that `global` can have, and the present names of renamed ones, for
// library.checkGlobal.
func (s *settings) writeNames(library string) error {
	out := []byte("{{/* Made by `make generate` from hack/charts/settings.yaml. */}}\n{{- define \"library.settings\" -}}\nnames:\n")
	for _, one := range s.module.only(false) {
		out = append(out, "  - "+one.name+"\n"...)
	}
	out = append(out, "instead:\n"...)
	for _, name := range slices.Sorted(maps.Keys(s.instead)) {
		out = append(out, "  "+name+": "+s.instead[name]+"\n"...)
	}
	return write(filepath.Join(library, "templates", "_settings.tpl"), append(out, "{{- end -}}\n"...))
}

// newImage and newDependency are the entries of a new module in the Chart.yaml of the umbrella chart, whose list of
// dependencies comes last. Later changes are made by hand, and by hack/release.
const newImage = `  artifacthub.io/images: |
    - name: MODULE
      image: ghcr.io/direct-secrets/MODULE:VERSION
`

const newDependency = `  - name: MODULE
    version: VERSION
    condition: MODULE.enabled
`

// depend makes a module a dependency of the umbrella chart, if it is none yet.
func depend(chart, module string) error {
	path := filepath.Join(chart, "Chart.yaml")
	meta, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(meta), "condition: "+module+".enabled\n") {
		return err
	}
	version, err := versionOf(filepath.Join(chart, "..", module))
	if err != nil {
		return err
	}
	of := strings.NewReplacer("MODULE", module, "VERSION", version)
	images, _, _ := strings.Cut(newImage, "    -")
	out := strings.Replace(string(meta), images, of.Replace(newImage), 1)
	return write(path, []byte(out+of.Replace(newDependency)))
}

// versionOf returns the version of a chart.
func versionOf(chart string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return "", err
	}
	var meta struct {
		Version string `json:"version"`
	}
	err = yaml.Unmarshal(raw, &meta)
	return meta.Version, errors.Wrapf(err, "cannot read the Chart.yaml of %s", chart)
}

// link makes another chart a dependency of a chart with a symbolic link. Helm then needs no further step before
// it renders, and there is no copy that could be stale. Packages contain the linked chart.
func link(chart, dependency string) error {
	return symlink(filepath.Join(chart, "charts", dependency), filepath.Join("..", "..", dependency))
}

// linkCRDs makes the CRDs of a module files of a chart, in the same way.
func linkCRDs(chart, module string) error {
	return symlink(filepath.Join(chart, "files", "crds"), filepath.Join("..", "..", "..", module, "manifests", "crds"))
}

// symlink makes at a symbolic link to a relative path.
func symlink(at, to string) error {
	if is, err := os.Readlink(at); err == nil && is == to {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	return os.Symlink(to, at)
}

// crdList matches the annotation with the CRDs of a chart.
var crdList = regexp.MustCompile(`(?m)^  artifacthub\.io/crds: \|\n(?:    .*\n)*`)

// listCRDs writes the CRDs in the folders into the annotation artifacthub.io/crds of a chart, if it has one; see
// https://artifacthub.io/docs/topics/annotations/helm.
func listCRDs(chart string, folders ...string) error {
	out := []byte("  artifacthub.io/crds: |\n")
	for _, folder := range folders {
		all, err := readCRDs(folder)
		if err != nil {
			return err
		}
		for _, crd := range all {
			version := crd.Spec.Versions[0]
			description, _, _ := strings.Cut(strings.Join(strings.Fields(version.Schema.OpenAPIV3Schema.Description), " "), ". ")
			out = fmt.Appendf(out, "    - kind: %s\n      version: %s\n      name: %s\n      displayName: %s\n      description: %q\n",
				crd.Spec.Names.Kind, version.Name, crd.Metadata.Name, crd.Spec.Names.Kind, strings.TrimSuffix(description, "."))
		}
	}
	path := filepath.Join(chart, "Chart.yaml")
	meta, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return write(path, crdList.ReplaceAllLiteral(meta, out))
}

// A crd is the part of a CRD that charts need.
type crd struct {
	Metadata struct{ Name string }
	Spec     struct {
		Group, Scope string
		Names        struct{ Kind string }
		Versions     []struct {
			Name   string
			Schema struct {
				OpenAPIV3Schema struct{ Description string }
			}
		}
	}
}

// readCRDs reads the CRDs in a folder.
func readCRDs(folder string) ([]crd, error) {
	found, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []crd
	for _, f := range found {
		raw, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var one crd
		if err := yaml.Unmarshal(raw, &one); err != nil {
			return nil, errors.Wrapf(err, "cannot read %s", f)
		}
		all = append(all, one)
	}
	return all, nil
}

// groupOfCRDs returns the API group of a module's Kinds.
func groupOfCRDs(folder string) (string, error) {
	found, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", errors.Errorf("%s has no CRD", folder)
	}
	group, _, _ := strings.Cut(filepath.Base(found[0]), "_")
	return group, nil
}

// kindsOfCRDs returns the Kinds of a module as KIND.GROUP, without cluster Kinds.
func kindsOfCRDs(folder string) ([]string, error) {
	found, err := readCRDs(folder)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, one := range found {
		if one.Spec.Scope == "Namespaced" {
			all = append(all, one.Spec.Names.Kind+"."+one.Spec.Group)
		}
	}
	slices.Sort(all)
	return all, nil
}

// permissions are the permissions that a chart grants to a module; see `library.rights`.
type permissions struct {
	Rules   []rbacv1.PolicyRule `json:"rights"`
	Cluster []rbacv1.PolicyRule `json:"cluster"`
	Leases  []rbacv1.PolicyRule `json:"leases"`
	Records []rbacv1.PolicyRule `json:"records,omitempty"`
	Tokens  []rbacv1.PolicyRule `json:"tokens,omitempty"`
	// ConfigMaps is for targets that are ConfigMaps.
	ConfigMaps []rbacv1.PolicyRule `json:"configMaps,omitempty"`
	// Workloads is for restarts.
	Workloads []rbacv1.PolicyRule `json:"workloads,omitempty"`
	// Receivers is for EventReceivers, and ClusterReceivers for ClusterEventReceivers.
	Receivers        []rbacv1.PolicyRule `json:"receivers,omitempty"`
	ClusterReceivers []rbacv1.PolicyRule `json:"clusterReceivers,omitempty"`
}

func writePermissions(from, module, chart string) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var r permissions
	parts := map[string]*[]rbacv1.PolicyRule{"": &r.Rules, "-cluster": &r.Cluster, "-leases": &r.Leases, "-records": &r.Records, "-tokens": &r.Tokens, "-configmaps": &r.ConfigMaps, "-workloads": &r.Workloads,
		"-receivers": &r.Receivers, "-receivers-cluster": &r.ClusterReceivers}
	for _, doc := range strings.Split(string(raw), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(doc), &role); err != nil {
			return errors.Wrapf(err, "cannot read %s", from)
		}
		part, ok := parts[strings.TrimPrefix(role.Name, "direct-secrets-"+module)]
		if !ok {
			return errors.Errorf("%s has a ClusterRole %q, which the chart has no use for", from, role.Name)
		}
		*part = role.Rules
	}
	out, err := yaml.Marshal(r)
	if err != nil {
		return err
	}
	return write(filepath.Join(chart, "files", "rights.yaml"), append([]byte("# Made by `make generate` from "+module+"/manifests/rbac.yaml.\n"), out...))
}

// write writes a file if its content has changed.
func write(path string, content []byte) error {
	if is, err := os.ReadFile(path); err == nil && bytes.Equal(is, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
