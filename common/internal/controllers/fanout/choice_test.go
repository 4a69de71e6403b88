package fanout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*desired)
		want   string
	}{
		"Fine":            {"A valid spec is accepted.", func(*desired) {}, ""},
		"Name":            {"A name must be valid.", func(w *desired) { w.name = "No_Name" }, `"No_Name" cannot be the name of objects of kind ExternalSecret`},
		"LabelValue":      {"The value of a label must be valid.", func(w *desired) { w.metadata.Labels["team"] = "a b" }, `spec.externalSecretMetadata.labels: Invalid value: "a b"`},
		"LabelKey":        {"The key of a label must be valid.", func(w *desired) { w.metadata.Labels["a b"] = "" }, `spec.externalSecretMetadata.labels: Invalid value: "a b"`},
		"AnnotationKey":   {"The key of an annotation must be valid.", func(w *desired) { w.metadata.Annotations["a b"] = "" }, `spec.externalSecretMetadata.annotations: Invalid value: "a b"`},
		"AnnotationsSize": {"The total size of annotations has a limit.", func(w *desired) { w.metadata.Annotations["a"] = strings.Repeat("x", 300<<10) }, `spec.externalSecretMetadata.annotations: Too long`},
		"Own":             {"The annotation of the operator cannot be set.", func(w *desired) { w.metadata.Annotations[v1alpha1.FanOutAnnotation] = "" }, v1alpha1.FanOutAnnotation + " is reserved for the operator"},
		"Digest":          {"The annotation with the digest in the cache cannot be set.", func(w *desired) { w.metadata.Annotations[digestKey] = "" }, `annotations: Invalid value: "` + digestKey},
		"Selector": {"A selector must be valid.", func(w *desired) {
			w.where.NamespaceSelectors = []metav1.LabelSelector{{}, {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}}
		}, "spec.namespaceSelectors[1]: invalid label selector"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := desiredWith()
			want.name = "db"
			tc.change(&want)
			k := externalSecrets()
			if _, got := k.check(want); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("\n%s\ncheck(): %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestAdmits(t *testing.T) {
	now := metav1.Now()
	namespace := func(name, team string, change ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		ns := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
		for _, f := range change {
			f(ns)
		}
		return ns
	}
	team := metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	cases := map[string]struct {
		reason string
		where  v1alpha1.NamespaceChoice
		ns     *metav1.PartialObjectMetadata
		want   bool
	}{
		"Unset":    {"Without names and selectors no namespace is selected.", v1alpha1.NamespaceChoice{}, namespace("a", "shop"), false},
		"All":      {"An empty selector selects all.", v1alpha1.NamespaceChoice{NamespaceSelectors: []metav1.LabelSelector{{}}}, namespace("a", ""), true},
		"Named":    {"A name selects a namespace.", v1alpha1.NamespaceChoice{Namespaces: []string{"b", "a"}}, namespace("a", ""), true},
		"Selected": {"A selector selects a namespace.", v1alpha1.NamespaceChoice{Namespaces: []string{"b"}, NamespaceSelectors: []metav1.LabelSelector{team}}, namespace("a", "shop"), true},
		"Neither":  {"A namespace that neither matches is not selected.", v1alpha1.NamespaceChoice{Namespaces: []string{"b"}, NamespaceSelectors: []metav1.LabelSelector{team}}, namespace("a", "bank"), false},
		"Going": {
			"A namespace that is being deleted is not selected.", v1alpha1.NamespaceChoice{Namespaces: []string{"a"}},
			namespace("a", "", func(ns *metav1.PartialObjectMetadata) { ns.DeletionTimestamp = &now }), false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := externalSecrets()
			want := desiredWith()
			want.name, want.where = "db", tc.where
			admits, invalid := k.check(want)
			if invalid != "" {
				t.Fatal(invalid)
			}
			if got := admits(tc.ns); got != tc.want {
				t.Errorf("\n%s\nadmits(): %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	failures := []v1alpha1.NamespaceFailure{{Namespace: "b"}, {Namespace: "c"}}
	type want struct {
		Status  metav1.ConditionStatus
		Reason  string
		Message string
		// Others holds the types of the other conditions that are True.
		Others string
	}
	cases := map[string]struct {
		reason  string
		status  v1alpha1.FanOutStatus
		pending int
		invalid string
		want    want
	}{
		"All":     {"All namespaces have their child.", v1alpha1.FanOutStatus{ProvisionedNamespaces: []string{"a"}}, 0, "", want{metav1.ConditionTrue, v1alpha1.ReasonProvisioned, "created in 1 namespaces", ""}},
		"None":    {"To select no namespace is no error.", v1alpha1.FanOutStatus{}, 0, "", want{metav1.ConditionTrue, v1alpha1.ReasonNoNamespacesMatched, "no namespace matches spec.namespaceSelectors or spec.namespaces", ""}},
		"Some":    {"Failed namespaces are named and retried.", v1alpha1.FanOutStatus{ProvisionedNamespaces: []string{"a"}, FailedNamespaces: failures}, 0, "", want{metav1.ConditionFalse, v1alpha1.ReasonPartlyProvisioned, "created in 1 namespaces, failed in 2: b, c; see status.failedNamespaces", v1alpha1.ConditionReconciling}},
		"Pending": {"The parent is not Ready before all namespaces have a result.", v1alpha1.FanOutStatus{ProvisionedNamespaces: []string{"a"}}, 3, "", want{metav1.ConditionFalse, v1alpha1.ReasonPartlyProvisioned, "created in 1 namespaces, 3 more to come", v1alpha1.ConditionReconciling}},
		"Invalid": {"An invalid spec comes before failed namespaces.", v1alpha1.FanOutStatus{FailedNamespaces: failures}, 0, "no", want{metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, "no", v1alpha1.ConditionStalled}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status.Conclude(&tc.status.Conditions, 7, verdict(&tc.status, tc.pending, tc.invalid))
			c := tc.status.Conditions[0]
			got := want{c.Status, c.Reason, c.Message, ""}
			for _, other := range tc.status.Conditions[1:] {
				got.Others += other.Type
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || c.ObservedGeneration != 7 {
				t.Errorf("\n%s\nverdict(): generation %d, -want, +got:\n%s", tc.reason, c.ObservedGeneration, diff)
			}
		})
	}
}
