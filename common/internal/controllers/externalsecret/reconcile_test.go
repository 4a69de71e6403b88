package externalsecret

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	fakev1alpha1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

var (
	key     = types.NamespacedName{Namespace: "shop", Name: "db"}
	secrets = schema.GroupResource{Resource: "secrets"}
)

// fakeCluster holds the objects in the cache and the API server, and their errors.
type fakeCluster struct {
	es     *v1alpha1.ExternalSecret
	store  *fakev1alpha1.FakeStore
	secret *metav1.PartialObjectMetadata

	esErr, storeErr, secretErr error
	createErr, patchErr        error

	// status holds the JSON texts of the status patches.
	status []string
	writes int
}

func (w *fakeCluster) get(_ context.Context, _ client.ObjectKey, obj client.Object) error {
	switch o := obj.(type) {
	case *v1alpha1.ExternalSecret:
		if w.es != nil {
			w.es.DeepCopyInto(o)
			return w.esErr
		}
	case *fakev1alpha1.FakeStore:
		if w.store != nil {
			w.store.DeepCopyInto(o)
			return w.storeErr
		}
		if w.storeErr != nil {
			return w.storeErr
		}
	case *metav1.PartialObjectMetadata:
		if w.secretErr != nil {
			return w.secretErr
		}
		if w.secret != nil {
			w.secret.DeepCopyInto(o)
			return nil
		}
	}
	if w.esErr != nil {
		return w.esErr
	}
	return kerrors.NewNotFound(secrets, "x")
}

func (w *fakeCluster) patchStatus(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	w.status = append(w.status, string(data))
	return w.patchErr
}

// reconciler returns a Reconciler in a fakeCluster. It connects to no store: the tested passes end before.
func (w *fakeCluster) reconciler(t *testing.T, o Options) *Reconciler {
	t.Helper()
	c := &test.MockClient{
		MockGet:         w.get,
		MockList:        test.NewMockListFn(nil),
		MockStatusPatch: w.patchStatus,
		MockCreate: func(context.Context, client.Object, ...client.CreateOption) error {
			w.writes++
			return w.createErr
		},
	}
	o.Board = &presence.Board{}
	o.Module, o.Random, o.Now = fakeGroup, func() float64 { return 0.5 }, time.Now
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	watches := watch.New(metadatafake.NewSimpleMetadataClient(scheme))
	t.Cleanup(func() { watches.Remove(watchOwner{key, false}) })
	return newReconciler(Reconciler{
		cache: c, live: c, referrers: fakeReferrers(t, c, o), opts: o, events: events.NewFakeRecorder(10), watches: watches,
		pool:    dispatch.NewPool(c, watches, credentials.Rules{Ambient: credentials.AmbientNone}, dispatch.Options{}, nil),
		enqueue: func(types.NamespacedName, int) {},
	})
}

// ready returns the Ready condition of the last patch, as status, reason and message.
func (w *fakeCluster) ready(t *testing.T) []string {
	t.Helper()
	if len(w.status) == 0 {
		return nil
	}
	var body struct {
		Status v1alpha1.ExternalSecretStatus `json:"status"`
	}
	if err := json.Unmarshal([]byte(w.status[len(w.status)-1]), &body); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(body.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil {
		return nil
	}
	return []string{string(c.Status), c.Reason, c.Message}
}

func externalSecret(change ...func(*v1alpha1.ExternalSecret)) *v1alpha1.ExternalSecret {
	es := &v1alpha1.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid", ResourceVersion: "5", Generation: 1},
		Spec: v1alpha1.ExternalSecretSpec{
			StoreRef: &v1alpha1.StoreRef{Kind: "FakeStore", Name: "prod"},
			Data:     []v1alpha1.DataEntry{{SecretKey: "k", RemoteRef: v1alpha1.RemoteRef{Key: "a"}}},
		},
	}
	for _, c := range change {
		c(es)
	}
	return es
}

func TestReconcileWithoutReading(t *testing.T) {
	forbidden := kerrors.NewForbidden(secrets, "db", errBoom)
	closed := &fakev1alpha1.FakeStore{StatusSubresource: v1alpha1.StatusSubresource{Status: v1alpha1.StoreStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: "False", Reason: "AuthFailed", Message: "wrong password"}}}}}
	type want struct {
		// Ready is status, reason and message; nil if no status is written.
		Ready []string
		// Again is true if the object is requeued after a time.
		Again bool
		Err   error
	}
	cases := map[string]struct {
		reason      string
		fakeCluster fakeCluster
		opts        Options
		want        want
	}{
		"Gone":      {"A deleted object is forgotten.", fakeCluster{}, Options{}, want{}},
		"Unread":    {"An object that cannot be read is an error.", fakeCluster{esErr: errBoom}, Options{}, want{Err: errBoom}},
		"Foreign":   {"An object of another module is ignored.", fakeCluster{es: externalSecret(func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "AWSSecretsManager" })}, Options{}, want{}},
		"Deleted":   {"An object that is being deleted is left to the garbage collector.", fakeCluster{es: externalSecret(func(es *v1alpha1.ExternalSecret) { es.DeletionTimestamp = &metav1.Time{Time: time.Now()} })}, Options{}, want{}},
		"Invalid":   {"An invalid spec waits for a change by the user.", fakeCluster{es: externalSecret(func(es *v1alpha1.ExternalSecret) { es.Spec.Data = nil })}, Options{}, want{Ready: []string{"False", "InvalidSpec", "spec: nothing to read; add an entry to data or dataFrom"}}},
		"Suspended": {"A suspended object has the reason Suspended.", fakeCluster{es: externalSecret(func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true })}, Options{}, want{Ready: []string{"Unknown", "Suspended", "spec.suspend is true: nothing is read or written"}}},
		"SuspendedTrue": {
			"A suspended object keeps the status of Ready.",
			fakeCluster{es: externalSecret(func(es *v1alpha1.ExternalSecret) {
				es.Spec.Suspend = true
				es.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "SecretSynced"}}
			})}, Options{},
			want{Ready: []string{"True", "Suspended", "spec.suspend is true: nothing is read or written"}},
		},
		"NoStore":       {"A store that does not exist is named.", fakeCluster{es: externalSecret()}, Options{}, want{Ready: []string{"False", "StoreNotFound", `FakeStore "shop/prod" does not exist; create it or correct the reference`}, Again: true}},
		"StoreUnread":   {"A store that cannot be read is an error.", fakeCluster{es: externalSecret(), storeErr: forbidden}, Options{}, want{Err: forbidden}},
		"StoreNotReady": {"A store that is not ready holds its objects, and their message has the reason.", fakeCluster{es: externalSecret(), store: closed}, Options{}, want{Ready: []string{"False", "StoreNotReady", `FakeStore "prod" is not ready: AuthFailed: wrong password`}, Again: true}},
		"OtherClass":    {"A store of another class is served by another operator.", fakeCluster{es: externalSecret(), store: &fakev1alpha1.FakeStore{Spec: fakev1alpha1.FakeStoreSpec{StoreSpec: v1alpha1.StoreSpec{SourceSpec: v1alpha1.SourceSpec{Controller: "blue"}}}}}, Options{}, want{}},
		"SecretUnread":  {"A Secret that cannot be read is an error, not an absent Secret.", fakeCluster{es: externalSecret(), secretErr: forbidden}, Options{}, want{Err: forbidden}},
		"ClusterKind": {
			"An operator of chosen namespaces is not allowed to read cluster Kinds.",
			fakeCluster{es: externalSecret(func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "ClusterFakeStore" })}, Options{Namespaced: true},
			want{Ready: []string{"False", "Forbidden", `ClusterFakeStore "prod" is a cluster Kind, and this operator serves selected namespaces only; use the namespaced Kind`}, Again: true},
		},
		"SecondModule": {
			"The object waits for another module's contribution, and nothing is written.",
			fakeCluster{es: externalSecret(func(es *v1alpha1.ExternalSecret) {
				es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{SecretKey: "l", RemoteRef: v1alpha1.RemoteRef{Key: "b"}, SourceRef: &v1alpha1.DataSourceRef{StoreRef: v1alpha1.StoreRef{Kind: "VaultKV", Name: "v"}}})
			}), store: &fakev1alpha1.FakeStore{}}, Options{},
			want{Again: true},
		},
		"Controlled": {
			"A Secret with another controller is a conflict.",
			fakeCluster{es: externalSecret(), secret: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Database", Name: "pg", UID: "x", Controller: new(true)}}}}}, Options{},
			want{Ready: []string{"False", "Conflict", `the Secret is controlled by Database "pg"; choose another spec.target.name or remove that owner`}, Again: true},
		},
		"Terminating": {
			"The object waits for a Secret that is being deleted, and reports that. It is requeued, since a Secret without its mark may cause no event.",
			fakeCluster{es: externalSecret(), secret: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Now()}}}}, Options{},
			want{Ready: []string{"False", "SecretMissing", `Secret "db": the Secret is being deleted; waiting for its finalizers to be removed`}, Again: true},
		},
		"StatusRefused": {"A status that cannot be written is an error.", fakeCluster{es: externalSecret(), patchErr: forbidden}, Options{}, want{Ready: []string{"False", "StoreNotFound", `FakeStore "shop/prod" does not exist; create it or correct the reference`}, Err: forbidden}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &tc.fakeCluster
			res, err := w.reconciler(t, tc.opts).Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			got := want{Ready: w.ready(t), Again: res.RequeueAfter > 0, Err: err}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nReconcile(): -want, +got:\n%s", tc.reason, diff)
			}
			if w.writes != 0 {
				t.Errorf("\n%s\nReconcile(): %d Secrets were created, want none", tc.reason, w.writes)
			}
		})
	}
}

// TestWriteRefused renders a Secret that the API server refuses to create.
func TestWriteRefused(t *testing.T) {
	ending := kerrors.NewForbidden(secrets, "db", errBoom)
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	type want struct {
		Ready []string
		Again bool
		Err   bool
	}
	cases := map[string]struct {
		reason string
		err    error
		want   want
	}{
		"Created":    {"A written Secret is in sync.", nil, want{Ready: []string{"True", "SecretSynced", "the Secret is in sync"}, Again: true}},
		"Forbidden":  {"A missing permission is named.", kerrors.NewForbidden(secrets, "db", errBoom), want{Ready: []string{"False", "Forbidden", "the operator has no permission to write Secrets in this namespace, or an admission policy rejects this one; check its RBAC and the policies"}, Again: true}},
		"Quota":      {"An exceeded quota is named.", kerrors.NewForbidden(secrets, "db", errors.New("exceeded quota: q")), want{Ready: []string{"False", "Forbidden", "a ResourceQuota of the namespace allows no more Secrets; raise it"}, Again: true}},
		"Ending":     {"In a namespace that is being deleted the work stops silently.", ending, want{}},
		"NoAnswer":   {"A failure of the API server is an error, so the object is retried.", kerrors.NewInternalError(errBoom), want{Err: true}},
		"Overloaded": {"A failure of the API server is an error, so the object is retried.", kerrors.NewTooManyRequests("later", 1), want{Err: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &fakeCluster{es: externalSecret(), createErr: tc.err}
			r := w.reconciler(t, Options{})
			plan, err := render.NewPlan(w.es)
			if err != nil {
				t.Fatal(err)
			}
			s := &subject{
				opts: &r.opts, es: w.es, obj: &object{}, seen: &w.es.Status, next: w.es.Status.DeepCopy(), plan: plan,
				peers: &peers{cache: r.cache, live: r.live, es: w.es},
			}
			out := render.Output{Data: map[string][]byte{"k": []byte("v")}, Values: 1}
			res := reconcile.Result{}
			o, err := r.apply(t.Context(), s, &answer{read: out, shape: func() (render.Output, error) { return out, nil }})
			if err == nil {
				res, err = r.end(t.Context(), s, o)
			}
			got := want{Ready: w.ready(t), Again: res.RequeueAfter > 0, Err: err != nil}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\napply(): -want, +got:\n%s\nerror: %v", tc.reason, diff, err)
			}
			if w.writes != 1 {
				t.Errorf("\n%s\napply(): %d creates, want one", tc.reason, w.writes)
			}
		})
	}
}
