package pushsecret

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
)

// TestStatusOfOtherProcess shows a process what another one has written, between a push and the write of its status.
func TestStatusOfOtherProcess(t *testing.T) {
	id := storeNamed("main")
	with := func(resourceVersion string, keys ...string) *v1alpha1.PushSecret {
		s := v1alpha1.PushStoreStatus{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name}
		for _, key := range keys {
			s.Entries = append(s.Entries, v1alpha1.PushEntryStatus{RemoteKey: key, Created: true})
		}
		ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "me", UID: "uid", ResourceVersion: resourceVersion}}
		ps.Status.Stores = []v1alpha1.PushStoreStatus{s}
		return ps
	}
	for name, tc := range map[string]struct {
		reason string
		// shown is what the cache shows when the status is written, and live what the API server has.
		shown, live *v1alpha1.PushSecret
		want        []string
	}{
		"Same":    {"The entries of the push are written.", with("101", "known", "removed"), with("101", "known", "removed"), []string{"known", "pushed"}},
		"Spec":    {"So they are after another change of the object: what the push has removed does not come back.", with("102", "known", "removed"), with("102", "known", "removed"), []string{"known", "pushed"}},
		"Late":    {"A late walk brings nothing back from before the push.", with("100", "known", "removed", "before"), with("101", "known", "removed"), []string{"known", "pushed"}},
		"Created": {"The entries that another process has created in between must not be forgotten.", with("102", "known", "removed", "theirs"), with("102", "known", "removed", "theirs"), []string{"known", "pushed", "removed", "theirs"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(simulation.Scheme()).WithObjects(tc.live).Build(), interceptor.Funcs{
				SubResourcePatch: func(_ context.Context, _ client.Client, _ string, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
					raw, err := patch.Data(o)
					var body v1alpha1.PushSecret
					if err == nil {
						err = json.Unmarshal(raw, &body)
					}
					for _, e := range body.Status.Stores[0].Entries {
						got = append(got, e.RemoteKey)
					}
					return err
				},
			})
			routes, err := resolve.NewResolver(c, simulation.Scheme(), (&simulation.Store{}).Kinds(nil), "", false)
			if err != nil {
				t.Fatal(err)
			}
			obj, _ := newMemory().Get(types.NamespacedName{Namespace: "n", Name: "me"}, "uid")
			first := with("101", "known", "removed")
			obj.show(first)
			obj.record(first, id, "removed", nil)
			obj.record(first, id, "pushed", with("", "pushed").Status.Stores[0].Entries)
			obj.show(tc.shown)
			p := &pass{reconciler: &reconciler{claim: claimOf("", "", routes), client: c}, ps: tc.shown, obj: obj}
			for range 2 { // The second walk writes what the first could not.
				if err = p.conclude(t.Context(), nil); err == nil {
					break
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s\nerror %v; entries: -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}
