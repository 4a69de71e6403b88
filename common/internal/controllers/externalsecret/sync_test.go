package externalsecret_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

func TestSync(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("s3cret"))
	es := e.ExternalSecret("db")
	e.Create(es)

	s := e.WantSecret("db", "value", "s3cret")
	e.WantReady("db", v1alpha1.ReasonSecretSynced)

	yes, no := true, false
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{
				fakev1.Group + "/managed":                                   "true",
				target.StoreLabel(fakev1.Group, "FakeStore", e.NS, "store"): "true",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "direct-secrets.io/v1alpha1", Kind: "ExternalSecret", Name: "db", UID: es.UID,
				Controller: &yes, BlockOwnerDeletion: &no,
			}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{"value": []byte("s3cret")},
	}
	got := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Labels: s.Labels, OwnerReferences: s.OwnerReferences},
		Type:       s.Type, Data: s.Data,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Secret: -want, +got:\n%s", diff)
	}
	mark := target.Marks(s.Annotations)["db"]
	if mark.UID != es.UID || mark.Generation != 1 || mark.Module != fakev1.Group || mark.Hash == "" {
		t.Errorf("mark is %+v", mark)
	}

	st := e.Get("db").Status
	if st.RefreshTime == nil || st.NextRefreshTime == nil || st.Binding == nil || st.Binding.Name != "db" {
		t.Errorf("status is %+v", st)
	}
	if diff := cmp.Diff([]v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "db", Version: st.Sources[0].Version}}, st.Sources); diff != "" {
		t.Errorf("sources: -want, +got:\n%s", diff)
	}
}

func TestDrift(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(*corev1.Secret)
	}{
		"LabelGone": {"a removed label is restored, although the watch no longer selects the Secret", func(s *corev1.Secret) { s.Labels = nil }},
		"MarkGone":  {"a removed mark is restored", func(s *corev1.Secret) { s.Annotations = nil }},
		"OwnerGone": {"a removed owner is restored", func(s *corev1.Secret) { s.OwnerReferences = nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("s3cret"))
			e.Create(e.ExternalSecret("db"))
			before := e.WantSecret("db", "value", "s3cret")
			e.WantReady("db", v1alpha1.ReasonSecretSynced)

			testenv.Update(e.Client, before.DeepCopy(), func(s *corev1.Secret) {
				tc.change(s)
				s.Data["foreign"] = []byte("keep")
			})
			e.Eventually(func() string {
				s := e.Secret("db")
				want := map[string][]byte{"value": []byte("s3cret"), "foreign": []byte("keep")}
				return cmp.Diff(want, s.Data) + cmp.Diff(before.Labels, s.Labels) +
					cmp.Diff(before.Annotations, s.Annotations) + cmp.Diff(before.OwnerReferences, s.OwnerReferences)
			})
		})
	}
}
