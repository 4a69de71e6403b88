package pushsecret

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// unwritable is a client whose writes of a status fail while down returns true.
type unwritable struct {
	client.Client

	down func() bool
}

func (u unwritable) Status() client.SubResourceWriter {
	return unwritableStatus{u.Client.Status(), u.down}
}

type unwritableStatus struct {
	client.SubResourceWriter

	down func() bool
}

func (u unwritableStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if u.down() {
		return errors.New("the API server is down")
	}
	return u.SubResourceWriter.Patch(ctx, o, p, opts...)
}

// notes records the events of a test.
type notes []string

// Eventf implements events.EventRecorder.
func (n *notes) Eventf(_, _ runtime.Object, _, reason, _, _ string, args ...any) {
	text, _ := args[0].(string)
	*n = append(*n, reason+" "+text)
}

// TestStatusIsWrittenLater lets the API server fail after a push was made. The next walk finds the store in sync, and must nevertheless
// write the status, and the event about what stays behind is not lost.
func TestStatusIsWrittenLater(t *testing.T) {
	w := scenarioOf(t, finalized())
	due := &metav1.Time{Time: time.Now().Add(-time.Minute)}
	w.backend.Put("former", []byte("changed"))
	w.recorded(t, v1alpha1.PushEntryStatus{RemoteKey: "former", Version: "0", ID: w.backend.ID("former"), Created: true, RemoveAfter: due})
	var events notes
	w.events = &events
	w.client = unwritable{w.api, func() bool { return w.there(t) }}
	w.walk(t)
	if _, err := w.Push(t.Context(), w.unit); err == nil {
		t.Fatal("the status was written")
	}
	w.client = w.api
	w.push(t)
	w.refresh(t)
	entries := w.ps.Status.Stores[0].Entries
	if len(entries) != 1 || entries[0].RemoteKey != "db" || entries[0].Version == "" {
		t.Errorf("entries %+v, want that of the push", entries)
	}
	if all := strings.Join(events, "\n"); !strings.Contains(all, `LeftBehind FakeStore "main": "former"`) {
		t.Errorf("events %q, want one about what stays behind", all)
	}
}

// TestDeletedDuringPush deletes an object while the first write of a property to a secret of another program is under way. The object must
// not be released before that is removed.
func TestDeletedDuringPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := scenarioOf(t, finalized(func(ps *v1alpha1.PushSecret) { ps.Spec.Data[0].Match.RemoteRef.Property = "mine" }))
		w.backend.Put("db", []byte(`{"theirs":"1"}`))
		w.walk(t)
		answer := w.backend.Inject(fake.Fault{Call: fake.CallUpdate, Hang: true})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.push(t)
		}()
		synctest.Wait()
		if err := w.api.Delete(t.Context(), w.ps.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		w.ps = w.ps.DeepCopy()
		w.refresh(t)
		w.walk(t)
		answer()
		<-ended
		for range 3 {
			w.push(t)
			w.walk(t)
		}
		if is, _ := w.backend.Value("db"); string(is) != `{"theirs":"1"}` {
			t.Errorf("the remote secret holds %s", is)
		}
		if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(w.ps), &v1alpha1.PushSecret{}); err == nil {
			t.Error("the object is never released")
		}
	})
}

// TestWantedAgain lets a spec name a secret again whose removal is due, while the store is down, and then no longer. It is removed ten
// seconds after that, and not at once: objects of the same commit may use it.
func TestWantedAgain(t *testing.T) {
	w := scenarioOf(t, finalized())
	w.opts.RemoveDelay = RemoveDelay
	w.push(t)
	w.walk(t)
	w.push(t)
	w.refresh(t)
	is := w.ps.Status.Stores[0].Entries[0]
	is.RemoveAfter = &metav1.Time{Time: time.Now().Add(-time.Hour)}
	w.recorded(t, is)
	remove := w.backend.Inject(fake.Fault{Call: fake.CallObserve, Err: provider.NewError(provider.Unavailable, "down")})
	w.push(t)
	remove()
	w.refresh(t)
	w.ps.Spec.Data[0].Match.RemoteRef.RemoteKey = "other"
	if err := w.api.Update(t.Context(), w.ps); err != nil {
		t.Fatal(err)
	}
	w.refresh(t)
	w.walk(t)
	w.push(t)
	if !w.there(t) {
		t.Error("the secret was removed at once")
	}
}

// TestDownDuringMove stops the operator while one commit moves an object to another namespace. The removal is long due when the operator
// starts, and must nevertheless wait for the other object.
func TestDownDuringMove(t *testing.T) {
	w := scenarioOf(t, finalized())
	w.walk(t)
	w.push(t)
	w.refresh(t)
	moved := pushes("db", "db")
	moved.Namespace, moved.UID = "other", "other"
	w.deleted(t, w.ps.Status.Stores[0].Entries...)
	w.memory.Forget(w.unit.NamespacedName)
	w.note(w.ps)
	w.note(moved)
	for _, tc := range []struct {
		after time.Duration
		there bool
	}{{time.Hour, true}, {time.Hour + push.Far, false}} {
		w.opts.Now = func() time.Time { return time.Now().Add(tc.after) }
		w.walk(t)
		if w.push(t); w.there(t) != tc.there {
			t.Errorf("after %s the secret exists: %t", tc.after, w.there(t))
		}
	}
}
