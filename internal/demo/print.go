package demo

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// printStep prints one line about the present step.
func (d *demo) printStep(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, "\n> "+format+"\n", args...)
}

// print prints an indented text.
func (d *demo) print(text string) {
	for line := range strings.Lines(text) {
		_, _ = fmt.Fprint(d.out, "    "+line)
	}
}

// printYAML prints an object like kubectl, without managedFields.
func (d *demo) printYAML(o client.Object) error {
	gvk, err := apiutil.GVKForObject(o, stack.Scheme())
	if err != nil {
		return err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	fields["apiVersion"], fields["kind"] = gvk.GroupVersion().String(), gvk.Kind
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	raw, err := yaml.Marshal(fields)
	if err != nil {
		return err
	}
	d.print(string(raw))
	return nil
}
