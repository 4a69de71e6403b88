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
)

// held are a PushSecret and the version of its Secret, as the API server has them; nil for none.
type held struct {
	object  *v1alpha1.PushSecret
	version string
	err     error
	reads   int
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
	return h.err
}

func (*held) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing is listed")
}

// TestUnchanged asks whether what was read of an object is still what it pushes.
func TestUnchanged(t *testing.T) {
	boom := errors.New("boom")
	cases := map[string]struct {
		reason string
		// after is when it is asked, again whether somebody else has written meanwhile.
		after  time.Duration
		again  bool
		change func(h *held)
		reads  bool
		want   error
	}{
		"Fresh":      {"What was just read is current.", currentFor - time.Millisecond, false, func(h *held) { h.version = "2" }, false, nil},
		"Again":      {"Unless somebody else has written.", 0, true, func(h *held) { h.version = "2" }, true, push.ErrOld},
		"Old":        {"Or it was read a while ago.", currentFor, false, func(h *held) { h.version = "2" }, true, push.ErrOld},
		"Same":       {"What is as it was is current.", time.Hour, true, nil, true, nil},
		"Status":     {"A status is no change.", time.Hour, false, func(h *held) { h.object.ResourceVersion = "9" }, true, nil},
		"Spec":       {"Another spec may want something else.", time.Hour, false, func(h *held) { h.object.Generation++ }, true, push.ErrOld},
		"Deleted":    {"What is being deleted wants nothing.", time.Hour, false, func(h *held) { h.object.DeletionTimestamp = &metav1.Time{} }, true, push.ErrOld},
		"Gone":       {"Nor does what is gone.", time.Hour, false, func(h *held) { h.object = nil }, true, push.ErrOld},
		"Another":    {"Another object of the name is another.", time.Hour, false, func(h *held) { h.object.UID = "other" }, true, push.ErrOld},
		"SecretGone": {"A Secret that is gone has another version.", time.Hour, false, func(h *held) { h.version = "" }, true, push.ErrOld},
		"Fails":      {"What cannot be read is not known to be current.", time.Hour, false, func(h *held) { h.err = boom }, true, boom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "db", UID: "u", Generation: 1}}
				ps.Spec.Selector.Secret = &v1alpha1.PushSecretSelector{Name: "source"}
				api := &held{object: ps.DeepCopy(), version: "1"}
				selected, err := selectionOf(api, ps, &sourceMemory{}, time.Time{})
				if err != nil {
					t.Fatal(err)
				}
				from := &sources{client: api, object: ps, selection: selected}
				is, err := from.look(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				current := (&pass{ps: ps}).unchanged(from, is.refs, time.Now())
				time.Sleep(tc.after)
				if tc.change != nil {
					tc.change(api)
				}
				api.reads = 0
				if err := current(t.Context(), tc.again); !errors.Is(err, tc.want) {
					t.Errorf("%s\nerror %v, want %v", tc.reason, err, tc.want)
				}
				if diff := cmp.Diff(tc.reads, api.reads > 0); diff != "" {
					t.Errorf("%s\nreads the API server: -want, +got:\n%s", tc.reason, diff)
				}
				if tc.want != nil || !tc.reads {
					return
				}
				// What was found to be current is, for a while.
				api.reads = 0
				if err := current(t.Context(), false); err != nil || api.reads > 0 {
					t.Errorf("%s\nasked once more: error %v, %d reads", tc.reason, err, api.reads)
				}
			})
		})
	}
}
