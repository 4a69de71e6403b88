package operatortest

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Apply creates the documents of a manifest, after change has changed them.
func (s *Suite) Apply(t testing.TB, manifest []byte, change func(*unstructured.Unstructured)) {
	t.Helper()
	for doc := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, o); err != nil {
			t.Fatal(err)
		}
		change(o)
		s.For(t).Create(o)
	}
}

// refused returns the answers of the API server to the objects that Accepts found refused.
func (s *Suite) refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refusals)
}

// Accepts checks that the API server accepts an object or, if want is not empty, refuses it with a message that
// contains want. The object is not stored.
func (s *Suite) Accepts(t testing.TB, reason string, o client.Object, want string) {
	t.Helper()
	switch err := s.API.Create(t.Context(), o, client.DryRunAll); {
	case want == "" && err != nil:
		t.Errorf("%s\n%T: error %v, want none", reason, o, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s\n%T: error %v, want %q", reason, o, err, want)
	case want != "":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refusals = append(s.refusals, err.Error())
	}
}

// Examples checks that the API server accepts each document of a manifest, in the namespace default. An unknown field
// is an error. The objects are not stored.
func (s *Suite) Examples(t testing.TB, manifest []byte) {
	t.Helper()
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	strict := client.WithFieldValidation(s.API, metav1.FieldValidationStrict)
	for {
		o := &unstructured.Unstructured{}
		if err := d.Decode(o); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if o.GetNamespace() != "" {
			o.SetNamespace("default")
		}
		if err := strict.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("%s %s: %s", o.GetKind(), o.GetName(), err)
		}
	}
}
