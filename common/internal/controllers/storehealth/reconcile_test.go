package storehealth

import (
	"context"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1alpha1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

var errBoom = errors.New("boom")

// answer is the outcome of one validation; nil is a good one.
func answer(c provider.Class) error { return provider.NewError(c, "the answer") }

func TestConclude(t *testing.T) {
	unavailable, slow := answer(provider.Unavailable), answer(provider.Throttled)
	denied, invalid := answer(provider.Denied), answer(provider.Invalid)
	times := func(n int, err error) (out []error) {
		for range n {
			out = append(out, err)
		}
		return out
	}
	after := func(first error, then ...error) []error { return append([]error{first}, then...) }

	type want struct {
		Status, Reason, Message string
		// Beside is the type of the condition that is True beside Ready.
		Beside string
	}
	valid := want{"True", "Valid", "the store answers", ""}
	cases := map[string]struct {
		reason  string
		answers []error
		want    want
	}{
		"Valid":              {"A store that answers is valid.", []error{nil}, valid},
		"Denied":             {"A login that fails closes the gate at once.", after(nil, denied), want{"False", "AuthFailed", "the answer", "Stalled"}},
		"Invalid":            {"A spec that is wrong closes the gate at once.", after(nil, invalid), want{"False", "InvalidSpec", "the answer", "Stalled"}},
		"NotFound":           {"So does a store that names what does not exist.", after(nil, answer(provider.NotFound)), want{"False", "InvalidSpec", "the answer", "Stalled"}},
		"OneMissed":          {"One lost packet does not close the gate.", after(nil, unavailable), valid},
		"TwoMissed":          {"Nor do two.", after(nil, times(2, unavailable)...), valid},
		"ThreeMissed":        {"Three in a row do.", after(nil, times(3, unavailable)...), want{"False", "Unreachable", "the answer", "Reconciling"}},
		"NotInARow":          {"An answer in between starts the count anew.", after(nil, unavailable, unavailable, nil, unavailable, unavailable), valid},
		"Conflict":           {"An answer that proves nothing is none.", after(nil, answer(provider.Conflict)), valid},
		"Repaired":           {"What only a person could fix was fixed, but now the store does not answer.", after(denied, nil, unavailable, unavailable, unavailable), want{"False", "Unreachable", "the answer", "Reconciling"}},
		"Unknown":            {"Nor is an error that nobody knows, whose text is withheld.", after(nil, times(3, errBoom)...), want{"False", "Unreachable", "the provider's answer could not be used (*errors.errorString)", "Reconciling"}},
		"Throttled":          {"A provider that throttles answers: it never closes the gate.", after(nil, times(20, slow)...), valid},
		"Recovered":          {"One good answer opens the gate.", after(denied, nil), valid},
		"NeverValidated":     {"Of a store that never answered nothing is known, which does not hold its objects.", []error{unavailable}, want{"Unknown", "Unreachable", "the answer", "Reconciling"}},
		"NeverValidatedLong": {"After three tries it is unreachable.", times(3, unavailable), want{"False", "Unreachable", "the answer", "Reconciling"}},
		"NeverThrottled":     {"A provider that throttles from the beginning holds nobody.", times(20, slow), want{"Unknown", "Unreachable", "the answer", "Reconciling"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			st, known := &v1alpha1.StoreStatus{}, &validated{}
			for _, a := range tc.answers {
				conclude(st, 3, known, a)
			}
			c := st.Conditions[0]
			got := want{string(c.Status), c.Reason, c.Message, ""}
			for _, beside := range st.Conditions[1:] {
				got.Beside += beside.Type
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nconclude(): -want, +got:\n%s", tc.reason, diff)
			}
			if st.ObservedGeneration != 3 || c.ObservedGeneration != 3 || c.Type != "Ready" {
				t.Errorf("\n%s\nconclude(): %s of generation %d in a status of %d, want Ready of 3", tc.reason, c.Type, c.ObservedGeneration, st.ObservedGeneration)
			}
		})
	}
}

// TestConcludeNewSpec changes the spec of a valid store.
func TestConcludeNewSpec(t *testing.T) {
	st, known := &v1alpha1.StoreStatus{}, &validated{}
	conclude(st, 1, known, nil)
	conclude(st, 2, known, answer(provider.Unavailable))
	if c := st.Conditions[0]; c.Status != metav1.ConditionUnknown || st.ObservedGeneration != 2 {
		t.Errorf("conclude(): %s of generation %d, want Unknown of 2: the old spec says nothing about the new one", c.Status, st.ObservedGeneration)
	}
}

func TestCheckSpec(t *testing.T) {
	type want struct {
		Interval time.Duration
		Class    provider.Class
	}
	cases := map[string]struct {
		reason string
		spec   v1alpha1.SourceSpec
		want   want
	}{
		"Default":     {"A store is validated every five minutes.", v1alpha1.SourceSpec{}, want{Interval: 5 * time.Minute}},
		"Given":       {"What the spec says counts.", v1alpha1.SourceSpec{RefreshInterval: "1h"}, want{Interval: time.Hour}},
		"TooShort":    {"But not more than once a second.", v1alpha1.SourceSpec{RefreshInterval: "0"}, want{Interval: time.Second}},
		"BadInterval": {"What is no duration is Invalid.", v1alpha1.SourceSpec{RefreshInterval: "soon"}, want{5 * time.Minute, provider.Invalid}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			interval, err := checkSpec(&tc.spec)
			got := want{Interval: interval}
			if err != nil {
				got.Class = provider.ClassOf(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\ncheckSpec(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPatch(t *testing.T) {
	type want struct {
		Patches []string
		Err     error
	}
	changed := &v1alpha1.StoreStatus{ObservedGeneration: 2, Capabilities: []string{"Read"}}
	const body = `{"metadata":{"uid":"uid"},"status":{"capabilities":["Read"],"observedGeneration":2}}`
	cases := map[string]struct {
		reason string
		next   *v1alpha1.StoreStatus
		err    error
		want   want
	}{
		"Same":    {"A status that did not change is not written.", &v1alpha1.StoreStatus{ObservedGeneration: 1}, nil, want{}},
		"Changed": {"One that did is, to this incarnation of the store only.", changed, nil, want{Patches: []string{body}}},
		"Gone":    {"A store that is gone needs no status.", changed, kerrors.NewNotFound(schema.GroupResource{}, "s"), want{Patches: []string{body}}},
		"Refused": {"Any other answer is an error.", changed, errBoom, want{Patches: []string{body}, Err: errBoom}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			r := &Reconciler{kind: fake.NewServer().Kinds()[0], client: &test.MockClient{
				MockStatusPatch: func(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
					data, err := patch.Data(obj)
					if err != nil {
						return err
					}
					got.Patches = append(got.Patches, string(data))
					return tc.err
				},
			}}
			s := &fakev1alpha1.FakeStore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s", UID: "uid"}, StatusSubresource: v1alpha1.StatusSubresource{Status: v1alpha1.StoreStatus{ObservedGeneration: 1}}}
			got.Err = r.patch(t.Context(), s, tc.next)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\npatch(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
