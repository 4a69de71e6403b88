package externalsecret

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/internal/fetch"
)

// TestNoStaleRead reconciles an object that holds values of a read that is no longer wanted.
func TestNoStaleRead(t *testing.T) {
	cases := map[string]struct {
		reason string
		secret metav1.ObjectMeta
	}{
		"Conflict":    {"The Secret has another controller by now.", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Database", Name: "pg", UID: "x", Controller: new(true)}}}},
		"Terminating": {"The Secret is being deleted.", metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Now()}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{es: externalSecret(), secret: &metav1.PartialObjectMetadata{ObjectMeta: tc.secret}}
			r := w.reconciler(t, Options{})
			obj, _ := r.gatherer.objects.Get(key, "uid")
			want := fetch.Want{Key: key, Attempts: &obj.attempts, Attempt: fetch.Attempt{Generation: 1}}
			if a := r.fetcher.Take(&want); a.Values != nil {
				t.Fatal("Take(): values before anything was read")
			}
			r.fetcher.Ask(want, true)
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			if a := r.fetcher.Take(&want); a.Pending || a.Values != nil {
				t.Errorf("\n%s\nReconcile(): it keeps values that a later refresh would take for new ones", tc.reason)
			}
		})
	}
}
