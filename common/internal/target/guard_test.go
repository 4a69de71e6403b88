package target_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// These tests check properties of the API server that the Writer relies on.

func TestApplyWithAStaleVersionCreates(t *testing.T) {
	e := newEnv(t)
	deleted := e.posted("db", "kubectl", "a", "1")
	e.deletes(deleted)

	err := e.applies("db", "manager", true, map[string]any{
		"metadata": map[string]any{"resourceVersion": deleted.ResourceVersion}, "data": bytesOf("a", "2"),
	})
	if err != nil {
		t.Fatalf("apply with a stale resourceVersion on an absent Secret: %v", err)
	}
	if s := e.wantData("db", map[string]string{"a": "2"}); s.UID == deleted.UID {
		t.Error("the Secret is the one that was deleted")
	}
}

func TestApplyWithAUIDNeverCreates(t *testing.T) {
	e := newEnv(t)
	deleted := e.posted("db", "kubectl", "a", "1")
	e.deletes(deleted)

	err := e.applies("db", "manager", true, map[string]any{
		"metadata": map[string]any{"uid": deleted.UID, "resourceVersion": deleted.ResourceVersion}, "data": bytesOf("a", "2"),
	})
	if !kerrors.IsConflict(err) {
		t.Errorf("apply with the uid of an absent Secret: got %v, want a conflict", err)
	}
	e.wantUntouched("db", nil)
}

func TestCreate(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	d := owned(o.wants("db", "a", "1", "empty", ""), o.reference(true))

	got, err := e.w.Create(e.ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	e.wantUntouched("db", got)
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       e.ns,
			Name:            "db",
			Labels:          map[string]string{module + "/managed": "true"},
			OwnerReferences: []metav1.OwnerReference{o.reference(true)},
		},
		Type: corev1.SecretTypeOpaque,
		Data: bytesOf("a", "1", "empty", ""),
	}
	reduced := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: got.Namespace, Name: got.Name, Labels: got.Labels, OwnerReferences: got.OwnerReferences},
		Type:       got.Type, Data: got.Data,
	}
	if diff := cmp.Diff(want, reduced); diff != "" {
		t.Errorf("Create(...): -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(created(d).Mark, target.Marks(got.Annotations)["db"]); diff != "" {
		t.Errorf("mark: -want, +got:\n%s", diff)
	}
	if n := len(got.ManagedFields); n != 1 || got.ManagedFields[0].Operation != metav1.ManagedFieldsOperationUpdate {
		t.Errorf("managedFields after a POST: %v", got.ManagedFields)
	}
}

func TestCreateLeavesWhatExists(t *testing.T) {
	cases := map[string]struct {
		reason string
		exists func(e *env)
	}{
		"OfATool":                   {"A Secret of a tool is not overwritten.", func(e *env) { e.posted("db", "kubectl", "a", "theirs") }},
		"OfAnotherExternalSecret":   {"A Secret of another ExternalSecret is not overwritten.", func(e *env) { e.writes(e.object("other").wants("db", "a", "theirs")) }},
		"OfTheSameExternalSecret":   {"Our own Secret, not yet in the cache, is not overwritten.", func(e *env) { e.writes(object{e: e, name: "db", uid: "1"}.wants("db", "a", "old")) }},
		"ThatIsBeingDeleted":        {"A Secret that waits for a finalizer still exists.", func(e *env) { e.terminating("db") }},
		"WithExactlyWhatWeWouldSet": {"A Secret with equal contents is not overwritten.", func(e *env) { e.posted("db", "kubectl", "a", "1") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			tc.exists(e)
			was := e.secret("db")
			if _, err := e.w.Create(e.ctx, e.object("db").wants("db", "a", "1")); !kerrors.IsAlreadyExists(err) {
				t.Errorf("\n%s\nCreate(...): got error %v, want AlreadyExists", tc.reason, err)
			}
			e.wantUntouched("db", was)
		})
	}
}

// terminating creates a Secret that is being deleted, and removes its finalizer when the test ends.
func (e *env) terminating(name string) {
	e.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: name, Finalizers: []string{"example.com/hold"}}}
	e.create(s)
	e.deletes(s)
	e.Cleanup(func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := api.Patch(context.Background(), s, patch); client.IgnoreNotFound(err) != nil {
			e.Error(err)
		}
	})
}

func TestGuard(t *testing.T) {
	type write func(w *target.Writer, e *env, live *corev1.Secret, d target.Desired) error
	apply := func(w *target.Writer, e *env, live *corev1.Secret, d target.Desired) error {
		_, _, err := w.Apply(e.ctx, live, d, target.Others{})
		return err
	}
	own := func(w *target.Writer, e *env, live *corev1.Secret, d target.Desired) error {
		_, err := w.Own(e.ctx, live, d, target.Others{})
		return err
	}
	release := func(w *target.Writer, e *env, live *corev1.Secret, d target.Desired) error {
		return w.Release(e.ctx, live, d)
	}
	writes := map[string]struct {
		reason string
		// applied is true if the Secret was applied to before.
		applied bool
		write   write
		pairs   []string
	}{
		"ApplyAfterCreate":   {"The first apply is guarded.", false, apply, []string{"a", "2"}},
		"ApplyWithFold":      {"The fold is guarded.", false, apply, []string{"b", "2"}},
		"ApplyAfterApply":    {"The apply is guarded.", true, apply, []string{"a", "2"}},
		"ApplyOfTheSame":     {"An apply that changes nothing is guarded, too.", true, apply, []string{"a", "1"}},
		"OwnAfterCreate":     {"A change of the owner alone is guarded.", false, own, nil},
		"OwnAfterApply":      {"A change of the owner alone is guarded.", true, own, nil},
		"ReleaseAfterCreate": {"A release is guarded.", false, release, nil},
		"ReleaseAfterApply":  {"A release is guarded.", true, release, nil},
	}
	moves := map[string]func(e *env){
		"Changed": func(e *env) { e.updates("db", "kubectl", setData("theirs", "x")) },
		"ChangedOnlyALabel": func(e *env) {
			e.updates("db", "kubectl", func(s *corev1.Secret) { s.Labels["theirs"] = "x" })
		},
		"Deleted":     func(e *env) { e.deletes(e.secret("db")) },
		"Recreated":   func(e *env) { e.deletes(e.secret("db")); e.posted("db", "kubectl", "a", "theirs") },
		"Terminating": func(e *env) { e.deletes(e.secret("db")); e.terminating("db") },
	}
	for wn, tc := range writes {
		for mn, move := range moves {
			t.Run(wn+"/"+mn, func(t *testing.T) {
				e := newEnv(t)
				o := e.object("db")
				e.writes(o.wants("db", "a", "1"))
				if tc.applied {
					e.writes(o.wants("db", "a", "1"))
				}
				live := e.secret("db")
				move(e)
				was := e.secret("db")

				err := tc.write(e.w, e, live, owned(o.wants("db", tc.pairs...), o.reference(true)))
				if !kerrors.IsConflict(err) && !kerrors.IsNotFound(err) {
					t.Errorf("\n%s\ngot error %v, want Conflict or NotFound", tc.reason, err)
				}
				e.wantUntouched("db", was)
			})
		}
	}
}

// TestGuardBetweenFoldAndApply checks that a write of two requests is guarded between them, too.
func TestGuardBetweenFoldAndApply(t *testing.T) {
	cases := map[string]struct {
		reason string
		move   func(e *env)
	}{
		"Changed":   {"A change after the fold is kept.", func(e *env) { e.updates("db", "kubectl", setData("a", "theirs")) }},
		"Deleted":   {"A Secret deleted after the fold is not created again.", func(e *env) { e.deletes(e.secret("db")) }},
		"Recreated": {"Another Secret with that name is unchanged.", func(e *env) { e.deletes(e.secret("db")); e.posted("db", "x", "a", "theirs") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			e.writes(o.wants("db", "a", "1", "removed", "1"))

			var was *corev1.Secret
			folds := 0
			w := e.onFold(func() {
				folds++
				tc.move(e)
				was = e.secret("db")
			})
			_, _, err := w.Apply(e.ctx, e.secret("db"), o.wants("db", "a", "2"), target.Others{})
			if folds != 1 || !kerrors.IsConflict(err) {
				t.Errorf("\n%s\nfolds: %d, error: %v, want one fold and a Conflict", tc.reason, folds, err)
			}
			e.wantUntouched("db", was)
		})
	}
}

// onFold returns a Writer that calls f after each fold.
func (e *env) onFold(f func()) *target.Writer {
	e.Helper()
	return target.NewWriter(e.intercepted(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			err := c.Patch(ctx, obj, p, opts...)
			if p.Type() == types.JSONPatchType && err == nil {
				f()
			}
			return err
		},
	}), nil)
}

func (e *env) intercepted(f interceptor.Funcs) client.Client {
	e.Helper()
	c, err := client.NewWithWatch(cluster.Config(), client.Options{Scheme: api.Scheme()})
	if err != nil {
		e.Fatal(err)
	}
	return interceptor.NewClient(c, f)
}
