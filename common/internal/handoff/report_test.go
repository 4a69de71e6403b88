package handoff

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TestReport records parts one after another. Each write gives the object the next version, starting with 11.
func TestReport(t *testing.T) {
	errBoom := errors.New("boom")
	part := &metav1.ObjectMeta{Name: "db-part", UID: "part", ResourceVersion: "5"}
	entry := v1alpha1.PartStatus{Module: "fake", Group: "fake", Purpose: v1alpha1.PartGenerated, Name: "db-part", UID: "part", ResourceVersion: "5"}
	failed := entry
	failed.Message = "no"
	// step is one call of Report, with the state of the cache.
	type step struct {
		cached string
		shows  []v1alpha1.PartStatus
		report Report
		answer error
	}
	type want struct {
		// Written are the entries that were applied, in order.
		Written [][]v1alpha1.PartStatus
		Err     error
	}
	one := []v1alpha1.PartStatus{entry}
	cases := map[string]struct {
		reason string
		steps  []step
		want   want
	}{
		"Nothing":    {"Without a part there is no entry.", []step{{cached: "10"}}, want{}},
		"Same":       {"An entry that the status already has is not written.", []step{{cached: "10", shows: one, report: Report{Part: part}}}, want{}},
		"New":        {"A part is recorded once, even if the cache is outdated.", []step{{cached: "10", report: Report{Part: part}}, {cached: "10", report: Report{Part: part}}}, want{Written: [][]v1alpha1.PartStatus{one}}},
		"Shown":      {"An entry in the cache is used.", []step{{cached: "10", report: Report{Part: part}}, {cached: "11", shows: one, report: Report{Part: part}}}, want{Written: [][]v1alpha1.PartStatus{one}}},
		"Taken":      {"It is used also if another writer has removed the entry.", []step{{cached: "10", report: Report{Part: part}}, {cached: "12", report: Report{Part: part}}}, want{Written: [][]v1alpha1.PartStatus{one, one}}},
		"Gone":       {"The entry of a deleted part is removed once.", []step{{cached: "10", shows: one}, {cached: "10", shows: one}}, want{Written: [][]v1alpha1.PartStatus{{}}}},
		"Failed":     {"A failure keeps the recorded part.", []step{{cached: "10", shows: one, report: Report{Message: "no"}}}, want{Written: [][]v1alpha1.PartStatus{{failed}}}},
		"OtherByNow": {"An entry that could not be written is written again.", []step{{cached: "10", report: Report{Part: part}, answer: kerrors.NewConflict(v1alpha1.GroupVersion.WithResource("externalsecrets").GroupResource(), "db", errBoom)}, {cached: "10", report: Report{Part: part}}}, want{Written: [][]v1alpha1.PartStatus{one, one}}},
		"Refused":    {"An error is returned.", []step{{cached: "10", report: Report{Part: part}, answer: errBoom}}, want{Written: [][]v1alpha1.PartStatus{one}, Err: errBoom}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			var now step
			version := []string{"11", "12", "13"}
			c := &test.MockClient{MockStatusPatch: func(_ context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
				raw, err := patch.Data(o)
				if err != nil {
					t.Fatal(err)
				}
				body := &v1alpha1.ExternalSecret{}
				if err := json.Unmarshal(raw, body); err != nil {
					t.Fatal(err)
				}
				got.Written = append(got.Written, body.Status.Parts)
				o.SetResourceVersion(version[0])
				version = version[1:]
				return now.answer
			}, MockGet: func(_ context.Context, _ client.ObjectKey, o client.Object) error {
				o.SetUID("other")
				return nil
			}}
			self, lastReport := Contributor{Group: "fake", Purpose: v1alpha1.PartGenerated}, &LastReport{}
			for _, now = range tc.steps {
				es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", ResourceVersion: now.cached}}
				got.Err = self.Report(t.Context(), c, "ExternalSecret", es, now.shows, now.report, lastReport)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nReport(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
