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

// TestTell has a Recorder tell of parts one after another. Each write gives the object the next version, from 11 on.
func TestTell(t *testing.T) {
	errBoom := errors.New("boom")
	part := &metav1.ObjectMeta{Name: "db-part", UID: "part", ResourceVersion: "5"}
	entry := v1alpha1.PartStatus{Module: "fake", Group: "fake", Purpose: v1alpha1.PartGenerated, Name: "db-part", UID: "part", ResourceVersion: "5"}
	failed := entry
	failed.Message = "no"
	// step is what is told when the cache shows a version of the object.
	type step struct {
		cached string
		shows  []v1alpha1.PartStatus
		said   Said
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
		"Nothing":    {"What is not there needs no entry.", []step{{cached: "10"}}, want{}},
		"Same":       {"What the status says already is not written.", []step{{cached: "10", shows: one, said: Said{Part: part}}}, want{}},
		"New":        {"A part is recorded, once, though the cache is behind.", []step{{cached: "10", said: Said{Part: part}}, {cached: "10", said: Said{Part: part}}}, want{Written: [][]v1alpha1.PartStatus{one}}},
		"Shown":      {"A cache that shows the entry is believed.", []step{{cached: "10", said: Said{Part: part}}, {cached: "11", shows: one, said: Said{Part: part}}}, want{Written: [][]v1alpha1.PartStatus{one}}},
		"Taken":      {"Also when it shows that somebody has taken the entry away.", []step{{cached: "10", said: Said{Part: part}}, {cached: "12", said: Said{Part: part}}}, want{Written: [][]v1alpha1.PartStatus{one, one}}},
		"Gone":       {"The entry of a part that is gone is taken out, once.", []step{{cached: "10", shows: one}, {cached: "10", shows: one}}, want{Written: [][]v1alpha1.PartStatus{{}}}},
		"Failed":     {"A failure does not say that the part is gone.", []step{{cached: "10", shows: one, said: Said{Message: "no"}}}, want{Written: [][]v1alpha1.PartStatus{{failed}}}},
		"OtherByNow": {"What was not written is not remembered.", []step{{cached: "10", said: Said{Part: part}, answer: kerrors.NewConflict(v1alpha1.GroupVersion.WithResource("externalsecrets").GroupResource(), "db", errBoom)}, {cached: "10", said: Said{Part: part}}}, want{Written: [][]v1alpha1.PartStatus{one, one}}},
		"Refused":    {"An error is one.", []step{{cached: "10", said: Said{Part: part}, answer: errBoom}}, want{Written: [][]v1alpha1.PartStatus{one}, Err: errBoom}},
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
			r, told := Recorder{Client: c, Contributor: Contributor{Group: "fake", Purpose: v1alpha1.PartGenerated}}, &Told{}
			for _, now = range tc.steps {
				es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", ResourceVersion: now.cached}}
				got.Err = r.Tell(t.Context(), "ExternalSecret", es, now.shows, now.said, told)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nTell(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
