//go:build long

package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// wantWritten compares a manifest that a user or a GitOps tool has written with the object in the API server.
func wantWritten(t *testing.T, when string, sent, got *unstructured.Unstructured) {
	t.Helper()
	written := func(o *unstructured.Unstructured) map[string]any {
		return map[string]any{"spec": o.Object["spec"], "labels": o.GetLabels(), "annotations": o.GetAnnotations()}
	}
	if diff := cmp.Diff(written(sent), written(got)); diff != "" {
		t.Errorf("%s %s %s: -sent, +got:\n%s", sent.GetKind(), sent.GetName(), when, diff)
	}
}

// TestMinimalManifests checks that minimal manifests of every Kind are returned as they were sent: by the API
// server, after the operators have handled them, and after another tool has applied them. A tool that compares
// a manifest with the cluster then never sees a difference. The test has its own stack, because it is for all
// namespaces.
func TestMinimalManifests(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := stack.Start(ctx, stack.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	kinds := customKinds(t, s)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(kinds)), slices.Sorted(maps.Keys(manifests))); diff != "" {
		t.Fatalf("Kinds with a minimal manifest: -installed, +here:\n%s", diff)
	}
	must(t, s.CreateNamespace(ctx, minimal))
	must(t, s.AWSStore(ctx, minimal, "prod"))
	s.AWS.Put("db", []byte("x"))
	s.AWS.Put("json", []byte(`{"user":"shop"}`))
	must(t, s.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: minimal, Name: "source"}, StringData: map[string]string{"password": "x"}}))
	must(t, s.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: minimal, Name: "key"}, StringData: map[string]string{"key": strings.Repeat("k", 32)}}))
	var processes []*stack.Process
	t.Cleanup(func() {
		for _, p := range processes {
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Log(p.Log())
			}
		}
	})
	for _, module := range stack.Modules() {
		p, err := s.StartModule(ctx, module, "--leader-elect=false", "--event-receiver-bind-address=127.0.0.1:0")
		must(t, err)
		processes = append(processes, p)
	}

	apply := func(o *unstructured.Unstructured, by string) *unstructured.Unstructured {
		got := o.DeepCopy()
		must(t, client.WithFieldValidation(s.Admin, metav1.FieldValidationStrict).
			Apply(ctx, client.ApplyConfigurationFromUnstructured(got), client.FieldOwner(by)))
		return got
	}
	read := func(o *unstructured.Unstructured) *unstructured.Unstructured {
		got := &unstructured.Unstructured{}
		got.SetGroupVersionKind(o.GroupVersionKind())
		must(t, s.Admin.Get(ctx, client.ObjectKeyFromObject(o), got))
		return got
	}
	reasons := map[*unstructured.Unstructured]string{}
	var sent []*unstructured.Unstructured
	for _, kind := range slices.Sorted(maps.Keys(manifests)) {
		mapping, err := s.Admin.RESTMapper().RESTMapping(kinds[kind].GroupKind())
		must(t, err)
		for _, m := range manifests[kind] {
			o := m.object(t, kinds[kind], mapping.Scope.Name() == "namespace")
			sent = append(sent, o)
			reasons[o] = m.reason
			wantWritten(t, "when it was created", o, apply(o, "kubectl"))
		}
	}
	for _, o := range sent {
		eventually(t, func() string {
			reason, generation := readyOf(t, read(o))
			if reason == "" || generation != 1 || reasons[o] != "" && reason != reasons[o] {
				return fmt.Sprintf("%s %s is %q of generation %d, want %q of 1", o.GetKind(), o.GetName(), reason, generation, reasons[o])
			}
			return ""
		})
		wantWritten(t, "after the operator has handled it", o, read(o))
	}
	// From here on no status is written, so any change of an object comes from an apply.
	for _, p := range processes {
		must(t, p.Stop())
	}
	processes = nil
	for _, o := range sent {
		before := read(o)
		first := apply(o, "flux")
		wantWritten(t, "after another tool has applied it", o, first)
		if first.GetGeneration() != 1 {
			t.Errorf("%s %s has generation %d: applying the same manifest with another tool has changed it", o.GetKind(), o.GetName(), first.GetGeneration())
		}
		if diff := cmp.Diff(before.Object["status"], first.Object["status"]); diff != "" {
			t.Errorf("%s %s: status: -before, +after another tool has applied it:\n%s", o.GetKind(), o.GetName(), diff)
		}
		if second := apply(o, "flux"); second.GetResourceVersion() != first.GetResourceVersion() {
			t.Errorf("%s %s: the second apply of the same tool is not a no-op, %s after %s", o.GetKind(), o.GetName(), second.GetResourceVersion(), first.GetResourceVersion())
		}
	}
}

// readyOf returns the reason of Ready, and the generation that it describes, or "" if there is no such
// condition.
func readyOf(t *testing.T, o *unstructured.Unstructured) (reason string, generation int64) {
	t.Helper()
	conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	must(t, err)
	for _, c := range conditions {
		if c, isMap := c.(map[string]any); isMap && c["type"] == v1alpha1.ConditionReady {
			reason, _ = c["reason"].(string)
			generation, _ = c["observedGeneration"].(int64)
		}
	}
	return reason, generation
}
