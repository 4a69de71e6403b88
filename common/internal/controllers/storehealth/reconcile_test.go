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
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1alpha1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

var errBoom = errors.New("boom")

// answer returns the error of a validation with a class.
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
		// Others holds the types of the other conditions that are True.
		Others string
	}
	valid := want{"True", "Valid", "the store answers and accepts the login", ""}
	cases := map[string]struct {
		reason  string
		answers []error
		want    want
	}{
		"Valid":              {"A store that answers is valid.", []error{nil}, valid},
		"Denied":             {"A failed login sets Ready to False at once.", after(nil, denied), want{"False", "AuthFailed", "the answer", "Stalled"}},
		"Invalid":            {"An invalid spec sets Ready to False at once.", after(nil, invalid), want{"False", "InvalidSpec", "the answer", "Stalled"}},
		"NotFound":           {"A spec that names something that does not exist sets Ready to False at once.", after(nil, answer(provider.NotFound)), want{"False", "InvalidSpec", "the answer", "Stalled"}},
		"OneMissed":          {"One failure without an answer keeps Ready True.", after(nil, unavailable), valid},
		"TwoMissed":          {"Two failures without an answer keep Ready True.", after(nil, times(2, unavailable)...), valid},
		"ThreeMissed":        {"Three failures in a row without an answer set Ready to False.", after(nil, times(3, unavailable)...), want{"False", "Unreachable", "the answer", "Reconciling"}},
		"NotInARow":          {"An answer in between restarts the count.", after(nil, unavailable, unavailable, nil, unavailable, unavailable), valid},
		"Conflict":           {"A conflict counts as a failure without an answer.", after(nil, answer(provider.Conflict)), valid},
		"Repaired":           {"After a fixed login the store is Unreachable, and no longer Stalled.", after(denied, nil, unavailable, unavailable, unavailable), want{"False", "Unreachable", "the answer", "Reconciling"}},
		"Unknown":            {"An unknown error counts as a failure without an answer, and its text is not shown.", after(nil, times(3, errBoom)...), want{"False", "Unreachable", "the provider's response could not be used (*errors.errorString)", "Reconciling"}},
		"Throttled":          {"Throttling is an answer, so it never sets Ready to False.", after(nil, times(20, slow)...), valid},
		"Recovered":          {"One good answer sets Ready to True.", after(denied, nil), valid},
		"NeverValidated":     {"Ready is Unknown for a store that has never answered, which does not hold its objects.", []error{unavailable}, want{"Unknown", "Unreachable", "the answer", "Reconciling"}},
		"NeverValidatedLong": {"After three failures a new store is Unreachable.", times(3, unavailable), want{"False", "Unreachable", "the answer", "Reconciling"}},
		"NeverThrottled":     {"Throttling from the start leaves Ready Unknown, which does not hold objects.", times(20, slow), want{"Unknown", "Unreachable", "the answer", "Reconciling"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			st, known := &v1alpha1.StoreStatus{}, &validated{answers: "the store answers and accepts the login"}
			for _, a := range tc.answers {
				conclude(st, 3, known, a)
			}
			c := st.Conditions[0]
			got := want{string(c.Status), c.Reason, c.Message, ""}
			for _, other := range st.Conditions[1:] {
				got.Others += other.Type
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
	st, known := &v1alpha1.StoreStatus{}, &validated{answers: "the store answers and accepts the login"}
	conclude(st, 1, known, nil)
	conclude(st, 2, known, answer(provider.Unavailable))
	if c := st.Conditions[0]; c.Status != metav1.ConditionUnknown || st.ObservedGeneration != 2 {
		t.Errorf("conclude(): %s of generation %d, want Unknown of 2: the result for the old spec does not apply to the new one", c.Status, st.ObservedGeneration)
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
		"Given":       {"The interval of the spec is used.", v1alpha1.SourceSpec{ValidationInterval: "1h"}, want{Interval: time.Hour}},
		"TooShort":    {"The shortest interval is one second.", v1alpha1.SourceSpec{ValidationInterval: "0"}, want{Interval: time.Second}},
		"BadInterval": {"An interval that is no duration is Invalid.", v1alpha1.SourceSpec{ValidationInterval: "soon"}, want{5 * time.Minute, provider.Invalid}},
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
		Events  int
		Err     error
	}
	changed := &v1alpha1.StoreStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStoreAuthFailed}}}
	const body = `{"metadata":{"uid":"uid"},"status":{"conditions":[{"lastTransitionTime":null,"message":"","reason":"AuthFailed","status":"False","type":"Ready"}],"observedGeneration":null}}`
	cases := map[string]struct {
		reason string
		next   *v1alpha1.StoreStatus
		err    error
		want   want
	}{
		"Same":    {"An unchanged status is not written.", &v1alpha1.StoreStatus{ObservedGeneration: 1}, nil, want{}},
		"Changed": {"A changed status is written with the uid as precondition, and causes an Event.", changed, nil, want{Patches: []string{body}, Events: 1}},
		"Gone":    {"A deleted store needs no status.", changed, kerrors.NewNotFound(schema.GroupResource{}, "s"), want{Patches: []string{body}}},
		"Refused": {"Any other answer is an error.", changed, errBoom, want{Patches: []string{body}, Err: errBoom}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			recorder := events.NewFakeRecorder(2)
			r := &Reconciler{kind: fake.NewServer().Kinds()[0], events: recorder, client: &test.MockClient{
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
			got.Err = r.patch(t.Context(), s, "", tc.next)
			got.Events = len(recorder.Events)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\npatch(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
