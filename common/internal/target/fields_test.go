package target_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// TestDrift checks that changes by other writers show in managedFields, so that drift is found without reading data.
func TestDrift(t *testing.T) {
	managed := target.ManagedLabel(module)
	cases := map[string]struct {
		reason  string
		do      func(e *env)
		intact  bool
		holders []string // The managers of key a.
		ours    []string // Our keys.
	}{
		"Nothing": {
			reason: "A Secret as we wrote it is intact.",
			do:     func(*env) {}, intact: true,
			holders: []string{"direct-secrets:db"}, ours: []string{"a", "b"},
		},
		"ValueUpdated": {
			reason:  "An update takes the key from us.",
			do:      func(e *env) { e.updates("db", "kubectl-edit", setData("a", "x")) },
			holders: []string{"kubectl-edit"}, ours: []string{"b"},
		},
		"ValueUpdatedAndBack": {
			reason: "It takes the key also if the value is ours again; only our own write reverts that.",
			do: func(e *env) {
				e.updates("db", "kubectl-edit", setData("a", "x"))
				e.updates("db", "kubectl-edit", setData("a", "1"))
			},
			holders: []string{"kubectl-edit"}, ours: []string{"b"},
		},
		"StringDataPatched": {
			reason: "A patch of stringData counts as an update.",
			do: func(e *env) {
				p := client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"a":"x"}}`))
				if err := api.Patch(e.ctx, e.secret("db"), p, client.FieldOwner("patcher")); err != nil {
					e.Fatal(err)
				}
			},
			holders: []string{"patcher"}, ours: []string{"b"},
		},
		"AppliedEqual": {
			reason: "An apply of the equal value results in two managers, without a conflict.",
			do: func(e *env) {
				if err := e.applies("db", "flux", false, data("a", "1")); err != nil {
					e.Error(err)
				}
			},
			intact: true, holders: []string{"direct-secrets:db", "flux"}, ours: []string{"a", "b"},
		},
		"AppliedByForce": {
			reason:  "A forced apply takes the key from us.",
			do:      func(e *env) { e.mustApply("db", "flux", data("a", "x")) },
			holders: []string{"flux"}, ours: []string{"b"},
		},
		"KeyRemoved": {
			reason: "A removed key has no manager.",
			do:     func(e *env) { e.updates("db", "kubectl-edit", func(s *corev1.Secret) { delete(s.Data, "a") }) },
			ours:   []string{"b"},
		},
		"LabelChanged": {
			reason:  "Our label must have its value.",
			do:      func(e *env) { e.updates("db", "kubectl-edit", func(s *corev1.Secret) { s.Labels[managed] = "false" }) },
			holders: []string{"direct-secrets:db"}, ours: []string{"a", "b"},
		},
		"MarkRemoved": {
			reason: "The mark is ours as well.",
			do: func(e *env) {
				e.updates("db", "kubectl-annotate", func(s *corev1.Secret) { delete(s.Annotations, target.MarkKey("db")) })
			},
			holders: []string{"direct-secrets:db"}, ours: []string{"a", "b"},
		},
		"ManagedFieldsReset": {
			reason: "Without managedFields the owner of the keys is unknown.",
			do:     func(e *env) { e.resetsManagedFields("db") },
		},
		"ForeignKeyApplied": {
			reason: "It is no drift however it was added.",
			do:     func(e *env) { e.mustApply("db", "flux", data("theirs", "x")) }, intact: true,
			holders: []string{"direct-secrets:db"}, ours: []string{"a", "b"},
		},
		"ForeignMetadata": {
			reason: "Labels, annotations, finalizers and owners of others are no drift.",
			do: func(e *env) {
				o := e.object("other")
				e.updates("db", "kubectl-label", func(s *corev1.Secret) {
					s.Labels["theirs"], s.Annotations["theirs"] = "x", "x"
					s.OwnerReferences = append(s.OwnerReferences, o.reference(false))
				})
			},
			intact:  true,
			holders: []string{"direct-secrets:db"}, ours: []string{"a", "b"},
		},
		"AnotherExternalSecret": {
			reason: "The key and the mark of another ExternalSecret are no drift.",
			do:     func(e *env) { e.writes(e.object("other").wants("db", "c", "1")) }, intact: true,
			holders: []string{"direct-secrets:db"}, ours: []string{"a", "b"},
		},
	}
	for name, tc := range cases {
		for suffix, operations := range map[string][]metav1.ManagedFieldsOperationType{
			"AfterCreate": {metav1.ManagedFieldsOperationUpdate},
			"AfterChange": {metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate},
			"AfterFold":   {metav1.ManagedFieldsOperationApply},
		} {
			t.Run(name+suffix, func(t *testing.T) {
				e := newEnv(t)
				o := e.object("db")
				d := o.wants("db", "a", "1", "b", "1")
				d.Labels["stores.direct-secrets.io/x"] = "true"
				d.Seal()
				switch suffix {
				case "AfterChange":
					e.writes(o.wants("db", "a", "0", "b", "1"))
				case "AfterFold":
					e.writes(o.wants("db", "a", "1", "b", "1", "removed", "1"))
				}
				e.writes(d)
				e.wantOperations(o, operations)
				tc.do(e)

				s := e.secret("db")
				if got := observe(s, "db"); got.Intact != tc.intact {
					t.Errorf("\n%s\nIntact: got %v, want %v; %v", tc.reason, got.Intact, tc.intact, s.ManagedFields)
				}
				if diff := cmp.Diff(tc.holders, holders(s, "a")); diff != "" {
					t.Errorf("\n%s\nHoldersOf(a): -want, +got:\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(tc.ours, target.FieldsOf(s.ManagedFields, o.manager()).Data); diff != "" {
					t.Errorf("\n%s\nFieldsOf(...).Data: -want, +got:\n%s", tc.reason, diff)
				}

				// In every case, one write restores our keys.
				e.writes(d)
				s = e.secret("db")
				if got := observe(s, "db"); !got.Intact {
					t.Errorf("not intact after another write: %v", s.ManagedFields)
				}
				if a, b := string(s.Data["a"]), string(s.Data["b"]); a != "1" || b != "1" {
					t.Errorf("after another write a is %q, b is %q", a, b)
				}
			})
		}
	}
}

// wantOperations checks the precondition of a row: which entries are ours.
func (e *env) wantOperations(o object, want []metav1.ManagedFieldsOperationType) {
	e.Helper()
	var got []metav1.ManagedFieldsOperationType
	for _, entry := range e.secret("db").ManagedFields {
		if entry.Manager == o.manager() {
			got = append(got, entry.Operation)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		e.Errorf("operations of our entries: -want, +got:\n%s", diff)
	}
}

func (e *env) resetsManagedFields(name string) {
	e.Helper()
	p := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))
	s := e.secret(name)
	if err := api.Patch(e.ctx, s, p); err != nil {
		e.Fatal(err)
	}
	if len(s.ManagedFields) != 0 {
		e.Fatalf("managedFields after a reset: %v", s.ManagedFields)
	}
}

// TestFieldsOf checks that equal names in data, labels and annotations are kept apart.
func TestFieldsOf(t *testing.T) {
	raw := metav1.NewFieldsV1
	cases := map[string]struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		want    target.Fields
	}{
		"None": {reason: "Without an entry there are no fields."},
		"Union": {
			reason: "Created, updated and applied fields count together.",
			entries: []metav1.ManagedFieldsEntry{
				{Manager: "m", Operation: "Apply", FieldsV1: raw(`{"f:data":{"f:b":{}},"f:metadata":{"f:labels":{"f:l":{}}}}`)},
				{Manager: "m", Operation: "Update", FieldsV1: raw(`{"f:data":{".":{},"f:a":{},"f:b":{}},"f:metadata":{"f:annotations":{".":{},"f:x":{}}},"f:type":{}}`)},
				{Manager: "n", Operation: "Update", FieldsV1: raw(`{"f:data":{"f:c":{}}}`)},
			},
			want: target.Fields{Data: []string{"a", "b"}, Labels: []string{"l"}, Annotations: []string{"x"}, Type: true},
		},
		"Owners": {
			reason: "An ownerReference is no key.",
			entries: []metav1.ManagedFieldsEntry{
				{Manager: "m", FieldsV1: raw(`{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"1\"}":{".":{},"f:name":{}}}}}`)},
			},
		},
		"Awkward": {
			reason:  "A dot and a slash are part of a name.",
			entries: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: raw(`{"f:data":{"f:a.b":{}},"f:metadata":{"f:labels":{"f:x.io/y":{}}}}`)}},
			want:    target.Fields{Data: []string{"a.b"}, Labels: []string{"x.io/y"}},
		},
		"Unreadable": {
			reason:  "An entry that cannot be decoded has no fields.",
			entries: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: raw(`x`)}, {Manager: "m"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, target.FieldsOf(tc.entries, "m")); diff != "" {
				t.Errorf("\n%s\nFieldsOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
