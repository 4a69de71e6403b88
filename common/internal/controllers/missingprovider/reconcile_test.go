package missingprovider

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// book is a ledger whose reasons a test can read.
type book map[types.NamespacedName]string

func (b book) Set(key types.NamespacedName, s metrics.State) { b[key] = s.Reason }
func (b book) Forget(key types.NamespacedName)               { delete(b, key) }

// object returns an object of a module that is not running, with a resourceVersion.
func object(version string, change ...func(*v1alpha1.ExternalSecret)) *v1alpha1.ExternalSecret {
	es := &v1alpha1.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "u", Generation: 1, ResourceVersion: version},
		Spec:       v1alpha1.ExternalSecretSpec{StoreRef: &v1alpha1.StoreRef{Kind: "VaultKV", Name: "s"}},
	}
	for _, f := range change {
		f(es)
	}
	return es
}

func suspended(es *v1alpha1.ExternalSecret) { es.Spec.Suspend, es.Generation = true, 2 }

// inSync sets the status of an object in sync, whose next refresh is due after a time; 0 for none.
func inSync(due time.Duration) func(*v1alpha1.ExternalSecret) {
	return func(es *v1alpha1.ExternalSecret) {
		es.Status.ObservedGeneration = es.Generation
		es.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "SecretSynced", ObservedGeneration: es.Generation}}
		if due > 0 {
			es.Status.NextRefreshTime = &metav1.Time{Time: time.Now().Add(due)}
		}
	}
}

// TestReport reports on several versions of one object in order. The metrics must count it only while its user waits for
// the module.
func TestReport(t *testing.T) {
	const missing, written = v1alpha1.ReasonProviderNotRunning, "written"
	type want struct {
		// Counted is the reason under which the object is counted after each report; empty if it is not counted.
		Counted []string
		// Patches is the number of status patches.
		Patches int
		// Reported is true if the last version needs no further report.
		Reported bool
	}
	cases := map[string]struct {
		reason  string
		objects []*v1alpha1.ExternalSecret
		want    want
	}{
		"Missing": {
			"An object that no running module serves is reported and counted.",
			[]*v1alpha1.ExternalSecret{object("1")},
			want{[]string{missing}, 1, true},
		},
		"Suspended": {
			"A suspended object is neither reported nor counted.",
			[]*v1alpha1.ExternalSecret{object("1", suspended)},
			want{[]string{""}, 0, true},
		},
		"SuspendedLater": {
			"An object that is suspended later is no longer counted: otherwise an alert fires as long as it is suspended.",
			[]*v1alpha1.ExternalSecret{object("1"), object("2", suspended)},
			want{[]string{missing, ""}, 1, true},
		},
		"Resumed": {
			"An object that resumes is counted again.",
			[]*v1alpha1.ExternalSecret{object("1", suspended), object("2")},
			want{[]string{"", missing}, 1, true},
		},
		"NotDue": {
			"An object in sync is not reported before its refresh is due.",
			[]*v1alpha1.ExternalSecret{object("1", inSync(time.Hour))},
			want{[]string{""}, 0, true},
		},
		"InSyncLater": {
			"An object is no longer counted after a module has served it and stopped again.",
			[]*v1alpha1.ExternalSecret{object("1"), object("2", inSync(time.Hour))},
			want{[]string{missing, ""}, 1, true},
		},
		"NeverDue": {
			"An object in sync that is never refreshed again is not counted.",
			[]*v1alpha1.ExternalSecret{object("1"), object("2", inSync(0))},
			want{[]string{missing, ""}, 1, true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			b := book{}
			r := &reconciler{
				kind: externalSecrets(), events: events.NewFakeRecorder(10), waiting: waiting{ledger: b},
				client: &test.MockClient{MockStatusPatch: func(_ context.Context, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
					got.Patches++
					o.SetResourceVersion(written)
					return nil
				}},
			}
			for _, es := range tc.objects {
				r.waiting.since(es, *es.Spec.StoreRef)
				before := got.Patches
				if _, err := r.report(t.Context(), es, status.Stalled(missing, "no running module serves VaultKV")); err != nil {
					t.Fatal(err)
				}
				got.Counted = append(got.Counted, b[client.ObjectKeyFromObject(es)])
				if got.Patches > before {
					es.SetResourceVersion(written)
				}
				_, got.Reported = r.waiting.reported(es)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nreport(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// cached is a cache of one object.
type cached struct {
	cache.Cache
	from client.Reader
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.from.Get(ctx, key, o, opts...)
}

// TestNamesNoStore reports an object that no module claims, since it names no store. The API server accepted such objects before
// a rule refused them.
func TestNamesNoStore(t *testing.T) {
	unnamed := func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef = nil }
	now := metav1.Now()
	cases := map[string]struct {
		reason string
		object *v1alpha1.ExternalSecret
		// live is the object that is read live; nil: the same.
		live *v1alpha1.ExternalSecret
		want string
	}{
		"Reported":  {"No other operator reports it.", object("1", unnamed), nil, v1alpha1.ReasonInvalidSpec},
		"Suspended": {"Nothing is reported of a suspended object.", object("1", unnamed, suspended), nil, ""},
		"Deleted":   {"Nothing is reported of a deleted object.", object("1", unnamed, func(es *v1alpha1.ExternalSecret) { es.DeletionTimestamp = &now }), nil, ""},
		"Corrected": {"The cache can be outdated.", object("1", unnamed), object("2"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			get := func(from *v1alpha1.ExternalSecret) *test.MockClient {
				return &test.MockClient{MockGet: func(_ context.Context, _ client.ObjectKey, o client.Object) error {
					from.DeepCopyInto(o.(*v1alpha1.ExternalSecret))
					return nil
				}}
			}
			if tc.live == nil {
				tc.live = tc.object
			}
			got, live := "", get(tc.live)
			live.MockStatusPatch = func(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
				raw, err := p.Data(o)
				var patch v1alpha1.ExternalSecret
				if err = errors.Join(err, json.Unmarshal(raw, &patch)); err == nil {
					got = meta.FindStatusCondition(patch.Status.Conditions, v1alpha1.ConditionReady).Reason
				}
				return err
			}
			r := &reconciler{
				kind: externalSecrets(), events: events.NewFakeRecorder(10), waiting: waiting{ledger: book{}},
				cache: cached{from: get(tc.object)}, client: live, absence: ofModules(&presence.Board{}, &presence.Duties{}, externalSecrets().unnamed), writeLimiter: flowcontrol.NewFakeAlwaysRateLimiter(),
			}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("\n%s\nReconcile(): Ready has the reason %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
