package generation

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// TestReleaseLeavesNoState removes the finalizer of a part that has lost its record.
func TestReleaseLeavesNoState(t *testing.T) {
	contributor := handoff.Contributor{Group: "fake.direct-secrets.io", Purpose: v1alpha1.PartGenerated}
	part := func(change func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{Type: handoff.Type, ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "part", UID: "uid", DeletionTimestamp: &metav1.Time{Time: noon},
			Finalizers: []string{handoff.Finalizer(contributor.Group)},
		}}
		change(s)
		return s
	}
	cases := map[string]struct {
		reason   string
		existing []client.Object
		want     int
	}{
		"LetGo": {"A released part leaves no state in memory.", []client.Object{part(func(*corev1.Secret) {})}, 0},
		"Gone":  {"A deleted part leaves no state.", nil, 0},
		"Other": {"A Secret that is no longer a part leaves no state.", []client.Object{part(func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque })}, 0},
		"Held": {"A part that is kept because of a Secret is checked again.", []client.Object{
			part(func(s *corev1.Secret) {
				if err := (handoff.Record{
					Kind: externalSecretKind, Name: "db", UID: "object",
					Retired: []handoff.Retired{{Version: "v1", State: "s"}},
				}).Put(s); err != nil {
					t.Fatal(err)
				}
				s.Annotations = nil
			}),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Annotations: map[string]string{target.MarkKey("db"): `{"name":"db","uid":"object"}`}}},
		}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request{secretKind, client.ObjectKey{Namespace: "shop", Name: "part"}}
			m := newMemory(func() float64 { return 0.5 })
			m.Get(req, "uid")
			r := &Reconciler{
				generators: &generators{}, contributor: contributor,
				client: fake.NewClientBuilder().WithObjects(tc.existing...).Build(),
				memory: m, events: &events.FakeRecorder{}, now: func() time.Time { return noon },
			}
			if _, err := r.Reconcile(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			if got := len(m.Keys(nil)); got != tc.want {
				t.Errorf("\n%s\n%d objects have a state, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
