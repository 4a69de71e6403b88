package pushsecret

import (
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestReady(t *testing.T) {
	denied := failure(`FakeStore "s"`, errors.Join(provider.NewError(provider.Denied, "no"), provider.NewError(provider.Denied, "neither")))
	entry := func(generation int64, v status.Verdict) []v1alpha1.PushStoreStatus {
		d := destination{status: v1alpha1.PushStoreStatus{Kind: "FakeStore", Name: "s"}}
		d.conclude(v, generation)
		return []v1alpha1.PushStoreStatus{d.status}
	}
	type want struct {
		Ready, Reason, Message string
		// Other is the type of the condition that is True together with Ready.
		Other string
	}
	cases := map[string]struct {
		reason string
		name   string
		stores []v1alpha1.PushStoreStatus
		want   want
	}{
		"Synced":    {"All stores are in sync.", "s", entry(3, success(&result{})), want{"True", "SecretSynced", "all stores are in sync", ""}},
		"Exists":    {"A secret left unchanged counts as ready.", "s", entry(3, success(&result{exists: []string{`"k"`}})), want{"True", "SecretAlreadyExists", `not overwritten, because updatePolicy is IfNotExists: "k"`, ""}},
		"Failed":    {"A failed push is retried, and the message starts with the class of its error.", "s", entry(3, denied), want{"False", "SecretSyncedError", `Denied: FakeStore "s": no (and 1 more); ` + status.FixOf(provider.Denied), "Reconciling"}},
		"Compared":  {"A store that is compared with a new spec is Reconciling.", "s", entry(2, success(&result{})), want{"Unknown", "Reconciling", `FakeStore "s": comparing the remote secrets with the Secret`, "Reconciling"}},
		"NotSeen":   {"The verdict waits for a store without an entry.", "s", nil, want{"False", "SecretSyncedError", `Unavailable: FakeStore "s": waiting for the module that serves this store; check that it runs`, "Reconciling"}},
		"NoneFound": {"The verdict waits for a store that the selector matches.", "", nil, want{"False", "SecretSyncedError", "NotFound: no store that serves this namespace has the labels of spec.storeRefs; label one or correct the selector", "Reconciling"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ps := &v1alpha1.PushSecret{
				ObjectMeta: metav1.ObjectMeta{Generation: 3},
				Spec:       v1alpha1.PushSecretSpec{StoreRefs: []v1alpha1.PushStoreRef{{Kind: "FakeStore", Name: tc.name}}},
			}
			var conditions []metav1.Condition
			status.Conclude(&conditions, 3, ready(ps, notDry, tc.stores))
			got := want{string(conditions[0].Status), conditions[0].Reason, conditions[0].Message, ""}
			for _, c := range conditions[1:] {
				got.Other += c.Type
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nready(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
