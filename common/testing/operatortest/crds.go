package operatortest

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// maxCRD limits the size of a CustomResourceDefinition, in bytes.
const maxCRD = 60_000

// unseen is the default status of an object that no module has processed, so that tools do not take it as finished.
// Manifests have no status.
const unseen = `{"observedGeneration":-1}`

// CheckCRDs checks the project's rules for CustomResourceDefinitions.
func CheckCRDs(t testing.TB, kinds fs.FS) {
	t.Helper()
	for _, fault := range crdFaults(kinds) {
		t.Error(fault)
	}
}

// crdFaults returns what is wrong with the CRDs of a folder.
func crdFaults(kinds fs.FS) (faults []string) {
	all := controlplane.Manifests(kinds)
	if len(all) == 0 {
		return []string{"there is no CRD"}
	}
	for _, raw := range all {
		crd := apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
			faults = append(faults, fmt.Sprintf("what should be a CRD cannot be read: %v", err))
			continue
		}
		kind := crd.Spec.Names.Kind
		if len(raw) > maxCRD {
			faults = append(faults, fmt.Sprintf("%s: the CRD has %d bytes, and at most %d are allowed", kind, len(raw), maxCRD))
		}
		if len(crd.Spec.Versions) == 0 {
			faults = append(faults, kind+": the CRD has no version")
		}
		for _, v := range crd.Spec.Versions {
			if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil || len(v.Schema.OpenAPIV3Schema.Properties["spec"].Properties) == 0 {
				faults = append(faults, kind+": the CRD has no schema of spec")
				continue
			}
			if status := v.Schema.OpenAPIV3Schema.Properties["status"]; status.Default != nil && string(status.Default.Raw) == unseen {
				status.Default = nil
				v.Schema.OpenAPIV3Schema.Properties["status"] = status
			}
			for _, at := range defaults(*v.Schema.OpenAPIV3Schema, "") {
				faults = append(faults, fmt.Sprintf("%s: %s has a default: it would show as drift in what persons and tools applied", kind, at))
			}
			for _, at := range unlimited(v.Schema.OpenAPIV3Schema.Properties["spec"], "spec") {
				faults = append(faults, fmt.Sprintf("%s: %s has no maximum: one object could then be too large for its module", kind, at))
			}
			faults = append(faults, columnFaults(kind, v.AdditionalPrinterColumns)...)
			faults = append(faults, generatorFaults(kind, v.Schema.OpenAPIV3Schema.Properties["spec"])...)
		}
	}
	return faults
}

// columnFaults returns the missing columns of a Kind: all lists must have the same ones.
func columnFaults(kind string, columns []apiextensionsv1.CustomResourceColumnDefinition) (faults []string) {
	for _, want := range []struct {
		name     string
		priority int32
	}{{"Ready", 0}, {"Reason", 0}, {"Age", 0}, {"Message", 1}} {
		if !slices.ContainsFunc(columns, func(c apiextensionsv1.CustomResourceColumnDefinition) bool {
			return c.Name == want.name && c.Priority == want.priority
		}) {
			faults = append(faults, fmt.Sprintf("%s: there is no column %s of priority %d", kind, want.name, want.priority))
		}
	}
	return faults
}

// generatorFaults returns the fields of a generator that have no effect, because pushes to it are impossible.
func generatorFaults(kind string, spec apiextensionsv1.JSONSchemaProps) (faults []string) {
	if _, ok := spec.Properties["rotationInterval"]; !ok {
		return nil
	}
	if _, ok := spec.Properties["access"]; ok {
		faults = append(faults, kind+": spec.access of a generator has no effect")
	}
	items := spec.Properties["conditions"].Items
	if items == nil || items.Schema == nil {
		return faults
	}
	for _, field := range []string{"access", "allowedKeys"} {
		if _, ok := items.Schema.Properties[field]; ok {
			faults = append(faults, kind+": spec.conditions."+field+" of a generator has no effect")
		}
	}
	return faults
}

// unlimited returns the paths in a schema of strings, lists and maps that have no maximum. Values of maps have none, because
// the API server limits the size of the object. Label selectors are of Kubernetes.
func unlimited(s apiextensionsv1.JSONSchemaProps, at string) (found []string) {
	if _, ok := s.Properties["matchExpressions"]; ok || len(s.Enum) > 0 {
		return nil
	}
	isMap := s.AdditionalProperties != nil
	if s.Type == "string" && s.MaxLength == nil || s.Type == "array" && s.MaxItems == nil || isMap && s.MaxProperties == nil {
		found = append(found, at)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		found = append(found, unlimited(s.Properties[name], at+"."+name)...)
	}
	if s.Items != nil && s.Items.Schema != nil {
		found = append(found, unlimited(*s.Items.Schema, at+"[]")...)
	}
	return found
}

// defaults returns the paths in a schema that have a default.
func defaults(s apiextensionsv1.JSONSchemaProps, at string) (found []string) {
	if s.Default != nil {
		found = append(found, at)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		found = append(found, defaults(s.Properties[name], at+"."+name)...)
	}
	if s.Items != nil && s.Items.Schema != nil {
		found = append(found, defaults(*s.Items.Schema, at+"[]")...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		found = append(found, defaults(*s.AdditionalProperties.Schema, at+"{}")...)
	}
	return found
}
