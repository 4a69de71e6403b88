package target_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// TestReduce checks that Observe returns the same for the reduced metadata in a cache as for the whole Secret.
func TestReduce(t *testing.T) {
	cases := map[string]struct {
		reason string
		do     func(e *env, o object)
		peers  peers
		// alone is true if no other writer added a key to the Secret.
		alone bool
		want  func(o object) policy.Target
	}{
		"Created": {
			reason: "The Secret is as we posted it.",
			do:     func(e *env, o object) { e.writes(o.wants("db", "a", "1")) },
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Watched: true, Mark: created(o.wants("db", "a", "1")).Mark, Intact: true, Holds: true}
			},
		},
		"Owned": {
			reason: "A controller reference is kept.",
			do:     func(e *env, o object) { e.writes(owned(o.wants("db", "a", "1"), o.reference(true))) },
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Watched: true, Mark: created(o.wants("db", "a", "1")).Mark, Intact: true, Holds: true, Owned: true}
			},
		},
		"ForeignOwner": {
			reason: "A reference of another owner is kept.",
			do: func(e *env, _ object) {
				other := e.object("other")
				e.posted("db", "kubectl", "a", "1")
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.OwnerReferences = []metav1.OwnerReference{other.reference(true)} })
			},
			want: func(o object) policy.Target {
				other := &corev1.ConfigMap{}
				if err := api.Get(o.e.ctx, o.e.key("other"), other); err != nil {
					o.e.Fatal(err)
				}
				r := object{name: "other", uid: other.UID}.reference(true)
				return policy.Target{Exists: true, Foreign: &r}
			},
		},
		"DriftedInPart": {
			reason: "The remaining keys are held.",
			do: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1", "b", "1"))
				e.updates("db", "kubectl", setData("a", "x"))
			},
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Watched: true, Mark: created(o.wants("db", "a", "1", "b", "1")).Mark, Holds: true}
			},
		},
		"LabelChanged": {
			reason: "A changed label of ours is missed.",
			do: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.Labels[target.ManagedLabel(module)] = "no" })
			},
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Mark: created(o.wants("db", "a", "1")).Mark, Holds: true}
			},
		},
		"MarkRemoved": {
			reason: "Without the mark the keys are still held.",
			do: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.Annotations = nil })
			},
			want: func(object) policy.Target { return policy.Target{Exists: true, Watched: true, Holds: true} },
		},
		"Sealed": {
			reason: "Immutable set by us is kept.",
			do:     func(e *env, o object) { e.writes(immutable(o.wants("db", "a", "1"))) },
			alone:  true,
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Watched: true, Mark: created(immutable(o.wants("db", "a", "1"))).Mark, Intact: true, Holds: true, Sealed: true}
			},
		},
		"SealedByTheOneBefore": {
			reason: "Immutable set by a former object with our name is kept.",
			do: func(e *env, o object) {
				e.writes(immutable(object{e: e, name: o.name, uid: "dead"}.wants("db", "a", "1")))
			},
			alone: true,
			want: func(o object) policy.Target {
				mark := created(immutable(object{e: o.e, name: o.name, uid: "dead"}.wants("db", "a", "1"))).Mark
				return policy.Target{Exists: true, Watched: true, Mark: mark, Intact: true, Holds: true, Sealed: true}
			},
		},
		"SealedByAPerson": {
			reason: "Immutable set by another writer does not count.",
			do: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", seal)
			},
			alone: true,
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Watched: true, Mark: created(o.wants("db", "a", "1")).Mark, Intact: true, Holds: true}
			},
		},
		"SealedByAnother": {
			reason: "Immutable set by another ExternalSecret does not count.",
			do: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.writes(immutable(e.object("x").wants("db", "b", "1")))
			},
			peers: peers{writes: func(string, types.UID, string) bool { return false }},
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Watched: true, Mark: created(o.wants("db", "a", "1")).Mark, Intact: true, Holds: true}
			},
		},
		"SealedByBoth": {
			reason: "Another writer already stored the same value.",
			do: func(e *env, o object) {
				e.posted("db", "kubectl", "a", "1")
				e.updates("db", "kubectl", seal)
				e.writes(immutable(o.wants("db", "a", "1")))
			},
			alone: true,
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Watched: true, Mark: immutable(o.wants("db", "a", "1")).Mark, Intact: true, Holds: true, Sealed: true}
			},
		},
		"Rivals": {
			reason: "The first of several existing rivals by name is named.",
			do: func(e *env, _ object) {
				for _, name := range []string{"z", "y", "x"} {
					e.writes(e.object(name).wants("db", name, "1"))
				}
			},
			peers: peers{writes: func(name string, _ types.UID, _ string) bool { return name != "x" }},
			want:  func(object) policy.Target { return policy.Target{Exists: true, Watched: true, OtherWriter: "y"} },
		},
		"Terminating": {
			reason: "A Secret being deleted is reported as such.",
			do: func(e *env, o object) {
				e.terminating("db")
				e.writes(o.wants("db"))
			},
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Watched: true, Terminating: true, Mark: o.wants("db").Mark, Intact: true}
			},
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
				if s.Immutable != nil {
					return
				}
				for i := range 200 {
					setData("clutter"+strings.Repeat("y", i), "x")(s)
				}
			})
			s := e.secret("db")
			whole := &metav1.PartialObjectMetadata{ObjectMeta: *s.ObjectMeta.DeepCopy()}
			m := &metav1.PartialObjectMetadata{ObjectMeta: *s.ObjectMeta.DeepCopy()}
			target.Reduce(m)

			self := target.Identity{Name: "db", UID: o.uid, Module: module, Exclusive: true}
			want := tc.want(o)
			for what, object := range map[string]metav1.Object{"whole metadata": whole, "reduced": m} {
				if diff := cmp.Diff(want, target.Observe(t.Context(), object, self, tc.peers)); diff != "" {
					t.Errorf("\n%s\nObserve(%s): -want, +got:\n%s", tc.reason, what, diff)
				}
			}
			want.Others, want.Fixed = !tc.alone, s.Immutable != nil // The data is known, too.
			if diff := cmp.Diff(want, target.Observe(t.Context(), s, self, tc.peers)); diff != "" {
				t.Errorf("\n%s\nObserve(whole): -want, +got:\n%s", tc.reason, diff)
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

// TestReduceSubresource checks that entries of subresources do not count, reduced or not.
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
