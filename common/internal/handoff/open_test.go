package handoff

import (
	"context"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

func TestOpen(t *testing.T) {
	errBoom := errors.New("boom")
	object := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "object"}}
	entry := v1alpha1.PartStatus{Name: "db-part", UID: "part"}
	part := func(reads bool) *corev1.Secret {
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-part", UID: "part"}, Type: Type,
			Data: map[string][]byte{"a": []byte("1")},
		}
		rec := Record{Kind: "ExternalSecret", Name: "db", UID: "object"}
		if reads {
			rec.Reads = &Reads{Hash: target.HashInputs("object", Content(s.Data))}
		}
		if err := rec.Put(s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	type want struct {
		// Opened is the name of the object in the record; empty if there is none.
		Opened          string
		Changed, Usable bool
		Err             error
	}
	cases := map[string]struct {
		reason string
		entry  v1alpha1.PartStatus
		reads  bool
		change func(*corev1.Secret)
		err    error
		want   want
	}{
		"Generated":       {reason: "Generated values are used.", entry: entry, want: want{Opened: "db", Usable: true}},
		"Reads":           {reason: "Values that were read are used.", entry: entry, reads: true, want: want{Opened: "db", Usable: true}},
		"Changed":         {reason: "Values that another writer has changed are not used.", entry: entry, reads: true, change: func(s *corev1.Secret) { s.Data["a"] = []byte("2") }, want: want{Opened: "db", Changed: true}},
		"GeneratedOthers": {reason: "Changes of generated values are not detected.", entry: entry, change: func(s *corev1.Secret) { s.Data["a"] = []byte("2") }, want: want{Opened: "db", Usable: true}},
		"Deleted":         {reason: "A part that is being deleted is not used.", entry: entry, change: func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, want: want{Opened: "db"}},
		"OtherUID":        {reason: "Another Secret with the same name is not the part.", entry: entry, change: func(s *corev1.Secret) { s.UID = "other" }},
		"NoRecord":        {reason: "A Secret without a record is not the part.", entry: entry, change: func(s *corev1.Secret) { s.Annotations = nil }},
		"NoPart":          {reason: "An entry without a part causes no read.", err: errBoom},
		"Gone":            {reason: "A part may have been deleted.", entry: entry, err: kerrors.NewNotFound(corev1.Resource("secrets"), "db-part")},
		"Unread":          {reason: "A part that cannot be read is an error.", entry: entry, err: errBoom, want: want{Err: errBoom}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &test.MockClient{MockGet: func(_ context.Context, key client.ObjectKey, into client.Object) error {
				s := part(tc.reads)
				if diff := cmp.Diff(client.ObjectKeyFromObject(s), key); diff != "" {
					t.Errorf("read requests: -want, +got:\n%s", diff)
				}
				if tc.change != nil {
					tc.change(s)
				}
				s.DeepCopyInto(into.(*corev1.Secret))
				return tc.err
			}}
			o, err := Open(t.Context(), c, object, tc.entry)
			got := want{Opened: o.Record.Name, Changed: o.Changed, Usable: o.Usable(), Err: err}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nOpen(): -want, +got:\n%s", tc.reason, diff)
			}
			if (o.Secret == nil) != (tc.want.Opened == "") {
				t.Errorf("\n%s\nOpen(): Secret %v", tc.reason, o.Secret)
			}
		})
	}
}
