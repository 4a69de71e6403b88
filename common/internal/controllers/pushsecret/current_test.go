package pushsecret

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
)

// held is a PushSecret and the version of its Secret at a fake API server; nil for none.
type held struct {
	object  *v1alpha1.PushSecret
	version string
	err     error
	reads   int
	// after runs once, before the first answer is returned.
	after func()
}

func (h *held) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	h.reads++
	switch o := into.(type) {
	case *v1alpha1.PushSecret:
		if h.object == nil {
			return kerrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
		h.object.DeepCopyInto(o)
	case *metav1.PartialObjectMetadata:
		if h.version == "" {
			return kerrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
		o.ResourceVersion = h.version
	}
	if after := h.after; after != nil {
		h.after = nil
		after()
	}
	return h.err
}

func (*held) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing is listed")
}

// TestUnchanged checks that changes of an object or its source are found before a write.
func TestUnchanged(t *testing.T) {
	boom := errors.New("boom")
	cases := map[string]struct {
		reason string
		// after is the time since the read, and age the allowed age.
		after  time.Duration
		age    time.Duration
		change func(h *held)
		reads  bool
		want   error
	}{
		"Fresh":      {"A recent read is reused.", time.Second - time.Millisecond, time.Second, func(h *held) { h.version = "2" }, false, nil},
		"Again":      {"With age 0, it is read again.", 0, 0, func(h *held) { h.version = "2" }, true, push.ErrOld},
		"Old":        {"An old read is read again.", time.Second, time.Second, func(h *held) { h.version = "2" }, true, push.ErrOld},
		"Same":       {"An unchanged object is current.", time.Hour, 0, nil, true, nil},
		"Status":     {"A change of the status is no change.", time.Hour, time.Second, func(h *held) { h.object.ResourceVersion = "9" }, true, nil},
		"Spec":       {"A changed spec may want other values.", time.Hour, time.Second, func(h *held) { h.object.Generation++ }, true, push.ErrOld},
		"Deleted":    {"An object being deleted wants no values.", time.Hour, time.Second, func(h *held) { h.object.DeletionTimestamp = &metav1.Time{} }, true, push.ErrOld},
		"Gone":       {"A deleted object wants no values.", time.Hour, time.Second, func(h *held) { h.object = nil }, true, push.ErrOld},
		"Another":    {"Another object with the same name is a different object.", time.Hour, time.Second, func(h *held) { h.object.UID = "other" }, true, push.ErrOld},
		"SecretGone": {"A deleted Secret counts as a change.", time.Hour, time.Second, func(h *held) { h.version = "" }, true, push.ErrOld},
		"Late": {"A late answer may be outdated.", time.Hour, time.Second, func(h *held) {
			h.after = func() {
				time.Sleep(late)
				h.object.DeletionTimestamp = &metav1.Time{}
			}
		}, true, push.ErrOld},
		"Fails": {"An object that cannot be read is not known to be current.", time.Hour, time.Second, func(h *held) { h.err = boom }, true, boom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "db", UID: "u", Generation: 1}}
				ps.Spec.Selector.Secret = &v1alpha1.PushSecretSelector{Name: "source"}
				api := &held{object: ps.DeepCopy(), version: "1"}
				selected, err := selectionOf(api, room.NewReader(api, &quota.Quotas{}), ps, &sourceMemory{}, time.Time{})
				if err != nil {
					t.Fatal(err)
				}
				from := &sources{client: api, object: ps, selection: selected}
				is, err := from.readVersions(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				current := unchanged(ps, from, is.refs, time.Now())
				time.Sleep(tc.after)
				if tc.change != nil {
					tc.change(api)
				}
				api.reads = 0
				if err := current(t.Context(), tc.age); !errors.Is(err, tc.want) {
					t.Errorf("%s\nerror %v, want %v", tc.reason, err, tc.want)
				}
				if diff := cmp.Diff(tc.reads, api.reads > 0); diff != "" {
					t.Errorf("%s\nreads the API server: -want, +got:\n%s", tc.reason, diff)
				}
				if tc.want != nil || !tc.reads {
					return
				}
				// The result is reused for a while.
				api.reads = 0
				if err := current(t.Context(), time.Second); err != nil || api.reads > 0 {
					t.Errorf("%s\nasked again: error %v, %d reads", tc.reason, err, api.reads)
				}
			})
		})
	}
}
