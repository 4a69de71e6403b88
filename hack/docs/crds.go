package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/yaml"
)

// A schema is a schema of OpenAPI by controller-gen. It has a field for each keyword, so that an unknown one is
// an error rather than a constraint that no page shows.
type schema struct {
	Type, Format, Description, Pattern string

	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	Required             []string           `json:"required"`
	Enum                 []any              `json:"enum"`
	Default              any                `json:"default"`

	Minimum, Maximum, MinLength, MaxLength, MinItems, MaxItems, MinProperties, MaxProperties *int64

	Rules []rule `json:"x-kubernetes-validations"`

	// These define how lists and maps are merged, which the pages do not show.
	ListType        string   `json:"x-kubernetes-list-type"`
	ListMapKeys     []string `json:"x-kubernetes-list-map-keys"`
	MapType         string   `json:"x-kubernetes-map-type"`
	PreserveUnknown bool     `json:"x-kubernetes-preserve-unknown-fields"`
}

// A rule is a CEL rule.
type rule struct {
	Rule, Message, MessageExpression, FieldPath, Reason string
	OptionalOldSelf                                     *bool
}

// A kind is the Kind of a CRD.
type kind struct {
	Name, Group, Version, Module string
	Cluster                      bool
	Plural                       string
	ShortNames                   []string
	Description                  string
	Spec, Status                 *schema
}

// APIVersion returns the apiVersion of the Kind's objects.
func (k *kind) APIVersion() string { return k.Group + "/" + k.Version }

// ServedBy returns the modules that serve the Kind, for readers of pages. The Kinds of common are in every module.
func (k *kind) ServedBy() string {
	if k.Module == "common" {
		return "every module"
	}
	return code(k.Module)
}

// loadKinds returns the Kinds of all modules; those of common come first.
func loadKinds(tree string) ([]*kind, error) {
	var all []*kind
	for _, module := range []string{"common", "provider-*", "generator-*"} {
		found, err := filepath.Glob(filepath.Join(tree, module, "manifests", "crds", "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			k, err := loadKind(path)
			if err != nil {
				return nil, errors.Wrapf(err, "cannot read %s", path)
			}
			k.Module = strings.Split(filepath.ToSlash(strings.TrimPrefix(path, filepath.Clean(tree)+string(filepath.Separator))), "/")[0]
			all = append(all, k)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there is no CRD")
	}
	return all, nil
}

func loadKind(path string) (*kind, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // A file of the tree.
	if err != nil {
		return nil, err
	}
	var crd struct {
		Spec struct {
			Group, Scope string
			Names        struct {
				Kind, Plural string
				ShortNames   []string
			}
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPI any `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return nil, err
	}
	if len(crd.Spec.Versions) != 1 {
		return nil, errors.Errorf("there are %d versions; pages show one", len(crd.Spec.Versions))
	}
	version := crd.Spec.Versions[0]
	openAPI, err := yaml.Marshal(version.Schema.OpenAPI)
	if err != nil {
		return nil, err
	}
	var root schema
	if err := yaml.UnmarshalStrict(openAPI, &root); err != nil {
		return nil, err
	}
	slices.Sort(crd.Spec.Names.ShortNames)
	return &kind{
		Name: crd.Spec.Names.Kind, Group: crd.Spec.Group, Version: version.Name, Cluster: crd.Spec.Scope == "Cluster",
		Plural: crd.Spec.Names.Plural, ShortNames: crd.Spec.Names.ShortNames, Description: prose(root.Description),
		Spec: root.Properties["spec"], Status: root.Properties["status"],
	}, nil
}
