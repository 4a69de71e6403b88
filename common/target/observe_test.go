package target_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/policy"
	"github.com/direct-secrets/direct-secrets/common/target"
)

// What Observe says of the metadata that a cache keeps is what it says of the whole Secret.
func TestReduce(t *testing.T) {
	cases := map[string]struct {
		reason string
		do     func(e *env, o object)
		alive  func(policy.Mark) bool
		want   func(o object) policy.Target
	}{
		"Created": {
			reason: "After our POST.",
			do:     func(e *env, o object) { e.writes(o.wants("db", "a", "1")) },
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Mark: o.wants("db", "a", "1").Mark, Intact: true}
			},
		},
		"Owned": {
			reason: "The controller is kept.",
			do:     func(e *env, o object) { e.writes(owned(o.wants("db", "a", "1"), o.reference(true))) },
			want: func(o object) policy.Target {
				r := o.reference(true)
				return policy.Target{Exists: true, Mark: o.wants("db", "a", "1").Mark, Intact: true, Controller: &r}
			},
		},
		"Drifted": {
			reason: "A key that somebody changed is missed.",
			do: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", setData("a", "x"))
			},
			want: func(o object) policy.Target { return policy.Target{Exists: true, Mark: o.wants("db", "a", "1").Mark} },
		},
		"LabelChanged": {
			reason: "So is our label.",
			do: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.Labels[target.ManagedLabel(module)] = "no" })
			},
			want: func(o object) policy.Target { return policy.Target{Exists: true, Mark: o.wants("db", "a", "1").Mark} },
		},
		"Rivals": {
			reason: "Of several others that live, the first by name is named.",
			do: func(e *env, _ object) {
				for _, name := range []string{"z", "y", "x"} {
					e.writes(e.object(name).wants("db", name, "1"))
				}
			},
			alive: func(m policy.Mark) bool { return m.Name != "x" },
			want:  func(object) policy.Target { return policy.Target{Exists: true, Rival: "y"} },
		},
		"Dead": {
			reason: "The mark of one that is gone never blocks.",
			do:     func(e *env, _ object) { e.writes(e.object("x").wants("db", "a", "1")) },
			alive:  func(policy.Mark) bool { return false },
			want:   func(object) policy.Target { return policy.Target{Exists: true} },
		},
		"Terminating": {
			reason: "A Secret that is being deleted says so.",
			do: func(e *env, o object) {
				e.terminating("db")
				e.writes(o.wants("db"))
			},
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Terminating: true, Mark: o.wants("db").Mark, Intact: true}
			},
		},
		"Foreign": {
			reason: "Of a Secret that we never touched there is nothing to say.",
			do:     func(e *env, _ object) { e.posted("db", "kubectl", "a", "1") },
			want:   func(object) policy.Target { return policy.Target{Exists: true} },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			tc.do(e, o)
			e.updates("db", "kubectl-clutter", func(s *corev1.Secret) {
				if s.Annotations == nil {
					s.Annotations = map[string]string{}
				}
				s.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = strings.Repeat("x", 10_000)
				if s.Labels == nil {
					s.Labels = map[string]string{}
				}
				s.Labels["theirs"] = "x"
				for i := range 200 {
					setData("clutter"+strings.Repeat("y", i), "x")(s)
				}
			})
			if tc.alive == nil {
				tc.alive = alive
			}
			s := e.secret("db")
			m := &metav1.PartialObjectMetadata{ObjectMeta: *s.ObjectMeta.DeepCopy()}
			target.Reduce(m)

			if diff := cmp.Diff(tc.want(o), target.Observe(s, "db", module, tc.alive)); diff != "" {
				t.Errorf("\n%s\nObserve(whole): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want(o), target.Observe(m, "db", module, tc.alive)); diff != "" {
				t.Errorf("\n%s\nObserve(reduced): -want, +got:\n%s", tc.reason, diff)
			}
			for k := range m.Annotations {
				if !strings.HasPrefix(k, "direct-secrets.io/es.") {
					t.Errorf("annotation %s was kept", k)
				}
			}
			if _, kept := m.Labels["theirs"]; kept {
				t.Error("a foreign label was kept")
			}
			for _, entry := range m.ManagedFields {
				if !target.OfExternalSecret(entry.Manager) {
					t.Errorf("fields of %s were kept", entry.Manager)
				}
			}
			if size := m.Size(); size > 4096 {
				t.Errorf("%d bytes are left", size)
			}
			if m.UID != s.UID || m.ResourceVersion != s.ResourceVersion {
				t.Error("uid or resourceVersion were lost")
			}
		})
	}
}

func TestObserveNothing(t *testing.T) {
	if diff := cmp.Diff(policy.Target{}, target.Observe(nil, "db", module, alive)); diff != "" {
		t.Errorf("Observe(nil): -want, +got:\n%s", diff)
	}
}

// An entry of a subresource is not one of the Secret itself, reduced or not.
func TestReduceSubresource(t *testing.T) {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "direct-secrets:db", Operation: "Update", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)},
	}}}
	whole := target.FieldsOf(m.ManagedFields, "direct-secrets:db")
	target.Reduce(m)
	if diff := cmp.Diff(whole, target.FieldsOf(m.ManagedFields, "direct-secrets:db")); diff != "" {
		t.Errorf("FieldsOf(...): -whole, +reduced:\n%s", diff)
	}
}
