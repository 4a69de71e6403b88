package fanout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*desired)
		want   string
	}{
		"Fine":            {"What can be made is not objected to.", func(*desired) {}, ""},
		"Name":            {"A name must be one.", func(w *desired) { w.name = "No_Name" }, `"No_Name" cannot be the name of objects of kind ExternalSecret`},
		"LabelValue":      {"So must the value of a label.", func(w *desired) { w.metadata.Labels["team"] = "a b" }, `spec.externalSecretMetadata.labels: Invalid value: "a b"`},
		"LabelKey":        {"And its key.", func(w *desired) { w.metadata.Labels["a b"] = "" }, `spec.externalSecretMetadata.labels: Invalid value: "a b"`},
		"AnnotationKey":   {"And that of an annotation.", func(w *desired) { w.metadata.Annotations["a b"] = "" }, `spec.externalSecretMetadata.annotations: Invalid value: "a b"`},
		"AnnotationsSize": {"All annotations have a limit.", func(w *desired) { w.metadata.Annotations["a"] = strings.Repeat("x", 300<<10) }, `spec.externalSecretMetadata.annotations: Too long`},
		"Own":             {"The note is nobody else's.", func(w *desired) { w.metadata.Annotations[v1alpha1.FanOutAnnotation] = "" }, v1alpha1.FanOutAnnotation + " is this project's own"},
		"Digest":          {"Nor can the key be set by which the cache tells a digest.", func(w *desired) { w.metadata.Annotations[digestKey] = "" }, `annotations: Invalid value: "` + digestKey},
		"Selector": {"A selector must be one.", func(w *desired) {
			w.where.NamespaceSelectors = []metav1.LabelSelector{{}, {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}}
		}, "spec.namespaceSelectors[1]: it is no label selector"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := wish()
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
		"Unset":    {"Who names nothing chooses nothing.", v1alpha1.NamespaceChoice{}, namespace("a", "shop"), false},
		"All":      {"An empty selector chooses all.", v1alpha1.NamespaceChoice{NamespaceSelectors: []metav1.LabelSelector{{}}}, namespace("a", ""), true},
		"Named":    {"A name chooses.", v1alpha1.NamespaceChoice{Namespaces: []string{"b", "a"}}, namespace("a", ""), true},
		"Selected": {"So does a selector.", v1alpha1.NamespaceChoice{Namespaces: []string{"b"}, NamespaceSelectors: []metav1.LabelSelector{team}}, namespace("a", "shop"), true},
		"Neither":  {"What neither names is not chosen.", v1alpha1.NamespaceChoice{Namespaces: []string{"b"}, NamespaceSelectors: []metav1.LabelSelector{team}}, namespace("a", "bank"), false},
		"Going": {
			"What is on its way out is passed over.", v1alpha1.NamespaceChoice{Namespaces: []string{"a"}},
			namespace("a", "", func(ns *metav1.PartialObjectMetadata) { ns.DeletionTimestamp = &now }), false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := externalSecrets()
			want := wish()
			want.name, want.where = "db", tc.where
			c, invalid := k.check(want)
			if invalid != "" {
				t.Fatal(invalid)
			}
			if got := c.admits(tc.ns); got != tc.want {
				t.Errorf("\n%s\nadmits(): %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestConclude(t *testing.T) {
	failures := []v1alpha1.NamespaceFailure{{Namespace: "b"}, {Namespace: "c"}}
	type want struct {
		Status  metav1.ConditionStatus
		Reason  string
		Message string
		// Beside is the type of the condition that is True beside Ready.
		Beside string
	}
	cases := map[string]struct {
		reason  string
		status  v1alpha1.FanOutStatus
		pending int
		invalid string
		want    want
	}{
		"All":     {"All is well.", v1alpha1.FanOutStatus{ProvisionedNamespaces: []string{"a"}}, 0, "", want{metav1.ConditionTrue, v1alpha1.ReasonProvisioned, "made in 1 namespaces", ""}},
		"None":    {"To choose nothing is no error.", v1alpha1.FanOutStatus{}, 0, "", want{metav1.ConditionTrue, v1alpha1.ReasonNoNamespacesMatched, "no namespace matches namespaceSelectors or namespaces", ""}},
		"Some":    {"What failed is named, and retried.", v1alpha1.FanOutStatus{ProvisionedNamespaces: []string{"a"}, FailedNamespaces: failures}, 0, "", want{metav1.ConditionFalse, v1alpha1.ReasonPartlyProvisioned, "made in 1 namespaces, not in 2: b, c; see status.failedNamespaces", v1alpha1.ConditionReconciling}},
		"Pending": {"It is not ready before all are made.", v1alpha1.FanOutStatus{ProvisionedNamespaces: []string{"a"}}, 3, "", want{metav1.ConditionFalse, v1alpha1.ReasonPartlyProvisioned, "made in 1 namespaces so far, 3 to go", v1alpha1.ConditionReconciling}},
		"Invalid": {"What is wrong with the spec goes first.", v1alpha1.FanOutStatus{FailedNamespaces: failures}, 0, "no", want{metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, "no", v1alpha1.ConditionStalled}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			conclude(&tc.status, 7, tc.pending, tc.invalid)
			c := tc.status.Conditions[0]
			got := want{c.Status, c.Reason, c.Message, ""}
			for _, beside := range tc.status.Conditions[1:] {
				got.Beside += beside.Type
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || c.ObservedGeneration != 7 {
				t.Errorf("\n%s\nconclude(): generation %d, -want, +got:\n%s", tc.reason, c.ObservedGeneration, diff)
			}
		})
	}
}
