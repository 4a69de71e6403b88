package externalsecret_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

// TestRename changes target.name. The old Secret is treated as if the object was deleted, except that foreign keys
// survive.
func TestRename(t *testing.T) {
	t.Parallel()
	whole := holds("value", "x")
	cases := map[string]struct {
		reason   string
		from, to v1alpha1.Target
		// foreign is true if a user has added a key to the old Secret.
		foreign bool
		// old is the data of the old Secret at the end; nil if it is deleted.
		old map[string]string
	}{
		"OnDelete":        {"the old Secret is deleted", v1alpha1.Target{CleanupPolicy: onDelete}, v1alpha1.Target{CleanupPolicy: onDelete}, false, nil},
		"OnDeleteForeign": {"own keys are removed, foreign keys stay", v1alpha1.Target{}, v1alpha1.Target{}, true, holds("foreign", "keep")},
		"Never":           {"the old Secret stays", v1alpha1.Target{CleanupPolicy: never}, v1alpha1.Target{CleanupPolicy: never}, false, whole},
		"ToNever":         {"the present policy counts", v1alpha1.Target{CleanupPolicy: onDelete}, v1alpha1.Target{CleanupPolicy: never}, false, whole},
		"Frozen":          {"an immutable Secret is deleted, too", v1alpha1.Target{Immutable: true}, v1alpha1.Target{Immutable: true}, false, nil},
		"CreateOrMerge":   {"it has no owner", v1alpha1.Target{CreationPolicy: v1alpha1.CreateCreateOrMerge}, v1alpha1.Target{CreationPolicy: v1alpha1.CreateCreateOrMerge}, true, holds("value", "x", "foreign", "keep")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("x"))
			tc.from.Name, tc.to.Name = "old", "new"
			es := e.synced("db", into(tc.from))
			before := e.Secret("old")
			if tc.foreign {
				before = testenv.Update(e.Client, before, func(s *corev1.Secret) { s.Data["foreign"] = []byte("keep") })
				e.WaitForEvents()
			}
			writes := e.writes()
			testenv.Update(e.Client, es, into(tc.to))
			e.WantReady("db", v1alpha1.ReasonSecretSynced)
			e.wantData("new", whole)
			e.wantData("old", tc.old)
			if b := e.Get("db").Status.Binding; b == nil || b.Name != "new" {
				t.Errorf("status.binding is %v", b)
			}
			if old := e.Secret("old"); old != nil && (old.UID != before.UID || len(old.OwnerReferences) > 0) {
				t.Errorf("%s: the old Secret has uid %s, was %s, and owners %v", tc.reason, old.UID, before.UID, old.OwnerReferences)
			}
			if w := writes(); slices.Contains(w, "old") && slices.Index(w, "old") < slices.Index(w, "new") {
				t.Errorf("the old Secret was written before the new one: %v", w)
			}
			if tc.foreign && !cmp.Equal(tc.old, whole) && tc.to.CleanupPolicy == "" && tc.to.CreationPolicy == "" {
				e.wantReleased("old")
			}
			// No operator writes the old Secret any longer.
			if old := e.Secret("old"); old != nil {
				e.WaitForEvents()
				e.wantUnchanged(old)
			}
		})
	}
}

// writes watches the Secrets of the namespace. It returns a function that returns the names of those that have
// changed since, in order.
func (e *env) writes() (names func() []string) {
	e.Helper()
	var list corev1.SecretList
	if err := e.API.List(e.Ctx, &list, client.InNamespace(e.NS)); err != nil {
		e.Fatal(err)
	}
	w, err := e.API.Watch(e.Ctx, &list, client.InNamespace(e.NS), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		e.Fatal(err)
	}
	return func() []string {
		e.Helper()
		last := e.plain("last-" + testenv.RandomName())
		var names []string
		for ev := range w.ResultChan() {
			s, ok := ev.Object.(*corev1.Secret)
			if !ok {
				e.Fatalf("the watch ended with %+v", ev.Object)
			}
			if s.Name == last.Name {
				w.Stop()
				return names
			}
			names = append(names, s.Name)
		}
		e.Fatal("the watch ended")
		return nil
	}
}

// wantReleased fails if a Secret still has a mark or a label.
func (e *env) wantReleased(name string) {
	e.Helper()
	s := e.Secret(name)
	if len(target.Marks(s.Annotations)) > 0 || len(s.Labels) > 0 {
		e.Errorf("Secret %s still has annotations %v and labels %v", name, s.Annotations, s.Labels)
	}
}

// TestRenameHeldUp changes target.name while the new Secret cannot be written. The old Secret stays until it can.
func TestRenameHeldUp(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		hold   func(e *env) (letGo func())
		want   string
	}{
		"Denied": {"the provider denies the read", func(e *env) func() {
			return e.Backend.Inject(fake.Fault{Call: fake.CallGetBatch, Err: provider.NewError(provider.Denied, "not allowed")})
		}, v1alpha1.ReasonSecretSyncedError},
		"Foreign": {"the new Secret has another owner", func(e *env) func() {
			yes := true
			e.ownedByConfigMap("new", &yes)
			return func() { e.Delete(e.Secret("new")) }
		}, v1alpha1.ReasonConflict},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("x"))
			es := e.synced("db", into(v1alpha1.Target{Name: "old"}))
			e.WantStore("store", v1alpha1.ReasonStoreValid)
			before := e.Secret("old")
			letGo := tc.hold(e)
			testenv.Update(e.Client, es, into(v1alpha1.Target{Name: "new"}))
			e.WantReady("db", tc.want)
			e.wantUnchanged(before)
			testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
			e.WantReady("db", tc.want)
			e.wantUnchanged(before)
			letGo()
			e.wantData("new", holds("value", "x"))
			e.wantData("old", nil)
			e.WantReady("db", v1alpha1.ReasonSecretSynced)
		})
	}
}

// TestRenameBack changes target.name and changes it back, with different steps in between.
func TestRenameBack(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		// between runs between the two changes, and after runs after them; nil for none.
		between, after func(e *env)
	}{
		"AtOnce":      {"the second change comes at once", nil, nil},
		"StoppedOnce": {"the first is carried out, the second comes while the operator is stopped", func(e *env) { e.wantData("new", holds("value", "x")); e.Stop() }, func(e *env) { e.Start() }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newOwnEnv(t)
			e.Backend.Put("db", []byte("x"))
			es := e.synced("db", into(v1alpha1.Target{Name: "old"}))
			testenv.Update(e.Client, es, into(v1alpha1.Target{Name: "new"}))
			if tc.between != nil {
				tc.between(e)
			}
			testenv.Update(e.Client, es, into(v1alpha1.Target{Name: "old"}))
			if tc.after != nil {
				tc.after(e)
			}
			e.WantReady("db", v1alpha1.ReasonSecretSynced)
			e.wantData("old", holds("value", "x"))
			e.wantData("new", nil)
			if s := e.Secret("old"); !operatortest.OwnedBy(s, es) {
				t.Errorf("%s: owners are %v", tc.reason, s.OwnerReferences)
			}
			if b := e.Get("db").Status.Binding; b == nil || b.Name != "old" {
				t.Errorf("%s: status.binding is %v", tc.reason, b)
			}
		})
	}
}

// TestRenameUnlabelled changes target.name after another client has removed the label of the Secret, which the operator then finds by
// the status only.
func TestRenameUnlabelled(t *testing.T) {
	e := newOwnEnv(t)
	e.Backend.Put("db", []byte("x"))
	es := e.synced("db", into(v1alpha1.Target{Name: "old", CleanupPolicy: onDelete}))
	e.Stop()
	testenv.Update(e.Client, e.Secret("old"), func(s *corev1.Secret) { s.Labels = nil })
	testenv.Update(e.Client, es, into(v1alpha1.Target{Name: "new", CleanupPolicy: onDelete}))
	e.Start()
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.wantData("new", holds("value", "x"))
	e.wantData("old", nil)
}

// TestRenameMergeBack has an object with Merge and CreatedOnce. Its target.name changes to a Secret that does not
// exist and back. The first Secret is still in sync, so the object does not wait.
func TestRenameMergeBack(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("x"))
	e.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: e.NS}, Data: map[string][]byte{"foreign": []byte("keep")}})
	merge := func(name string) func(*v1alpha1.ExternalSecret) {
		return into(v1alpha1.Target{Name: name, CreationPolicy: v1alpha1.CreateMerge})
	}
	es := e.synced("db", merge("theirs"), func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshPolicy = v1alpha1.RefreshCreatedOnce })
	testenv.Update(e.Client, es, merge("missing"))
	e.WantReady("db", v1alpha1.ReasonSecretMissing)
	calls := e.Backend.Calls()
	testenv.Update(e.Client, es, merge("theirs"))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.wantData("theirs", holds("value", "x", "foreign", "keep"))
	if n := e.Backend.Calls(); len(n) != len(calls) {
		t.Errorf("the provider was called %d times, want %d", len(n), len(calls))
	}
}
