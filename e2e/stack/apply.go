package stack

import (
	"bytes"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// Documents splits a manifest into its YAML documents.
func Documents(manifest []byte) [][]byte {
	docs := bytes.Split(manifest, []byte("\n---\n"))
	for i := range docs {
		docs[i] = append(bytes.Clone(docs[i]), '\n') // This ends the last line, which can be part of a block of text.
	}
	return docs
}

// Apply applies the YAML documents of a manifest, like `kubectl apply --server-side`. It points AWS stores at
// the emulator, and leaves everything else unchanged.
func (s *Stack) Apply(ctx context.Context, manifest []byte) error {
	for _, doc := range Documents(manifest) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &o.Object); err != nil {
			return fmt.Errorf("cannot read a manifest: %w", err)
		}
		if o.GroupVersionKind().Group == awsv1.Group {
			if err := unstructured.SetNestedField(o.Object, s.AWS.URL(), "spec", "endpoint"); err != nil {
				return err
			}
		}
		ac := client.ApplyConfigurationFromUnstructured(o)
		strict := client.WithFieldValidation(s.Admin, client.FieldValidation(metav1.FieldValidationStrict))
		if err := strict.Apply(ctx, ac, client.FieldOwner("kubectl")); err != nil {
			return fmt.Errorf("cannot apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}
