package operatortest

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// Rules returns the messages of all rules in the CRDs of folders, without duplicates. A rule without a message has
// its expression instead.
func Rules(kinds ...fs.FS) (messages []string, err error) {
	for _, raw := range controlplane.Manifests(kinds...) {
		crd := apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
			return nil, err
		}
		for _, v := range crd.Spec.Versions {
			if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
				messages = rules(*v.Schema.OpenAPIV3Schema, messages)
			}
		}
	}
	slices.Sort(messages)
	return slices.Compact(messages), nil
}

// rules appends the messages of the rules of a schema and of all schemas below it.
func rules(s apiextensionsv1.JSONSchemaProps, to []string) []string {
	for _, r := range s.XValidations {
		if r.Message == "" {
			r.Message = r.Rule
		}
		to = append(to, r.Message)
	}
	for _, child := range s.Properties {
		to = rules(child, to)
	}
	for _, child := range s.AllOf {
		to = rules(child, to)
	}
	if s.Items != nil && s.Items.Schema != nil {
		to = rules(*s.Items.Schema, to)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		to = rules(*s.AdditionalProperties.Schema, to)
	}
	return to
}

// Unshown returns those of the messages that no answer of the API server contains.
func Unshown(messages, answers []string) []string {
	return slices.DeleteFunc(slices.Clone(messages), func(m string) bool {
		return slices.ContainsFunc(answers, func(a string) bool { return strings.Contains(a, m) })
	})
}

// A ruled run of the tests of a package fails if no test has broken one of the rules of its Kinds, or if the operator
// that they share has failed.
type ruled struct {
	controlplane.Runner

	suite *Suite
	kinds fs.FS
	// elsewhere are Kinds whose rules are tested elsewhere.
	elsewhere []fs.FS
}

// Run implements controlplane.Runner. A run of selected tests does not check the rules.
func (r ruled) Run() int {
	code := r.Runner.Run()
	if err := r.suite.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		code = 1
	}
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return code
		}
	}
	all, err := Rules(r.kinds)
	shown, err2 := Rules(r.elsewhere...)
	if err != nil || err2 != nil {
		fmt.Fprintln(os.Stderr, "cannot read the CRDs:", err, err2)
		return 1
	}
	all = slices.DeleteFunc(all, func(m string) bool { return slices.Contains(shown, m) })
	for _, rule := range Unshown(all, r.suite.refused()) {
		fmt.Fprintf(os.Stderr, "no test breaks the rule %q\n", rule)
		code = 1
	}
	return code
}
