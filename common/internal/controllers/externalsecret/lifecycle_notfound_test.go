package externalsecret_test

import (
	"errors"
	"strings"
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
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// deletes sets deletionPolicy.
func deletes(p v1alpha1.DeletionPolicy) spec {
	return func(es *v1alpha1.ExternalSecret) { es.Spec.Target.DeletionPolicy = p }
}

// creates sets creationPolicy.
func creates(p v1alpha1.CreationPolicy) spec {
	return func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CreationPolicy = p }
}

// TestFailureNeverDeletes deletes both remote secrets of an object while the provider fails, so that the operator
// cannot be sure. Once the provider answers properly, the keys are removed.
func TestFailureNeverDeletes(t *testing.T) {
	t.Parallel()
	failing := func(c provider.Class) error { return provider.NewError(c, "it fails") }
	whole := func(f fake.Fault) fake.Fault {
		f.Call = fake.CallGetBatch
		return f
	}
	cases := map[string]struct {
		reason  string
		fault   fake.Fault
		message string
	}{
		"Denied":     {"a denied read says nothing about the secret", whole(fake.Fault{Err: failing(provider.Denied)}), "Denied: "},
		"Joined":     {"NotFound does not win over another error", whole(fake.Fault{Err: errors.Join(failing(provider.NotFound), errBoom)}), "Unavailable: "},
		"OneDropped": {"one entry is not in the answer", fake.Fault{Key: "b", Drop: true}, "Unavailable: "},
	}
	for name, tc := range cases {
		for _, p := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionDelete, v1alpha1.DeletionMerge} {
			t.Run(name+"/"+string(p), func(t *testing.T) {
				e := newEnv(t)
				e.Backend.Put("a", []byte("s3cret-a"))
				e.Backend.Put("b", []byte("s3cret-b"))
				e.synced("pair", testenv.Fills("a", "a", "b", "b"), deletes(p))
				e.WantStore("store", v1alpha1.ReasonStoreValid)
				before := e.Secret("pair")

				repair := e.Backend.Inject(tc.fault)
				e.Backend.Delete("a")
				e.Backend.Delete("b")
				testenv.Update(e.Client, e.Get("pair"), testenv.Request("1"))
				c := e.WantReady("pair", v1alpha1.ReasonSecretSyncedError)
				if !strings.HasPrefix(c.Message, tc.message) || strings.Contains(c.Message, "s3cret") {
					t.Errorf("%s: message is %q, want it to begin with %q", tc.reason, c.Message, tc.message)
				}
				e.wantUnchanged(before)

				repair()
				e.refresh("pair")
				if p == v1alpha1.DeletionDelete {
					e.WantReady("pair", v1alpha1.ReasonSecretDeleted)
					e.wantData("pair", nil)
					return
				}
				e.WantReady("pair", v1alpha1.ReasonSecretSynced)
				e.wantData("pair", holds())
			})
		}
	}
}

// TestDeletedStoreNeverDeletes makes the store or the spec unusable while the remote secret does not exist.
func TestDeletedStoreNeverDeletes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		spoil  func(e *env)
		want   string
	}{
		"StoreDeleted": {"a deleted store says nothing about its secrets", func(e *env) { e.Delete(e.Store("store", "main")) }, v1alpha1.ReasonStoreNotFound},
		"OtherBackend": {"a store that cannot connect says nothing about its secrets", func(e *env) {
			s := e.Store("store", "main")
			testenv.Update(e.Client, s, func(s *fakev1.FakeStore) { s.Spec.Backend = "nowhere" })
			e.WantStore("store", v1alpha1.ReasonStoreInvalidSpec)
		}, v1alpha1.ReasonStoreNotReady},
		"OtherStore": {"a store that does not exist says nothing about its secrets", func(e *env) {
			testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Name = "nowhere" })
		}, v1alpha1.ReasonStoreNotFound},
		"InvalidSpec": {"an invalid spec changes nothing", func(e *env) { testenv.Update(e.Client, e.Get("db"), testenv.Fills()) }, v1alpha1.ReasonInvalidSpec},
		"Suspended": {"a suspended object is left unchanged", func(e *env) {
			testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true })
		}, v1alpha1.ReasonSuspended},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("x"))
			e.synced("db", deletes(v1alpha1.DeletionDelete))
			e.WantStore("store", v1alpha1.ReasonStoreValid)
			before := e.Secret("db")
			e.Backend.Delete("db")
			tc.spoil(e)
			testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
			e.WantReady("db", tc.want)
			e.wantUnchanged(before)
		})
	}
}

// TestNotFound has remote secrets that definitely do not exist.
func TestNotFound(t *testing.T) {
	t.Parallel()
	const synced, deleted, failed = v1alpha1.ReasonSecretSynced, v1alpha1.ReasonSecretDeleted, v1alpha1.ReasonSecretSyncedError
	foreign := holds("foreign", "keep")
	both, theirs := []string{"a", "b"}, []string{"foreign", "keep"}
	cases := map[string]struct {
		reason string
		policy v1alpha1.DeletionPolicy
		change spec
		// there is the data that a user had put into the Secret before; nil if there was none.
		there []string
		// added is true if a user adds a key later.
		added    bool
		notFound []string
		want     string
		data     map[string]string
	}{
		"DeleteOne":       {"the key is removed, the Secret stays", v1alpha1.DeletionDelete, nil, nil, false, []string{"a"}, synced, holds("b", "b")},
		"DeleteAll":       {"the Secret is deleted with its last key", v1alpha1.DeletionDelete, nil, nil, false, both, deleted, nil},
		"DeleteForeign":   {"a foreign key keeps the Secret", v1alpha1.DeletionDelete, nil, nil, true, both, synced, foreign},
		"DeleteTakenOver": {"an owned Secret without keys is deleted, even if a user created it", v1alpha1.DeletionDelete, nil, []string{"a", "old"}, false, both, deleted, nil},
		"DeleteNotOurs":   {"a Secret that the object neither created nor owns stays", v1alpha1.DeletionDelete, into(v1alpha1.Target{CleanupPolicy: never}), []string{"a", "old"}, false, both, synced, holds()},
		"DeleteOrphan":    {"the object created the Secret and deletes it, without owning it", v1alpha1.DeletionDelete, creates(v1alpha1.CreateOrphan), nil, false, both, deleted, nil},
		"DeleteImmutable": {"the provider is not read again for an immutable Secret", v1alpha1.DeletionDelete, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Immutable = true }, nil, false, both, synced, holds("a", "a", "b", "b")},
		"MergeAll":        {"the Secret stays without keys", v1alpha1.DeletionMerge, nil, nil, false, both, synced, holds()},
		"MergeMerge":      {"the Secret of a user is as it was before", v1alpha1.DeletionMerge, creates(v1alpha1.CreateMerge), theirs, false, both, synced, foreign},
		"RetainOne":       {"nothing changes, and the condition reports why", "", nil, nil, false, []string{"a"}, failed, holds("a", "a", "b", "b")},
		"NoneRetain":      {"the error is reported under creationPolicy None, too", "", creates(v1alpha1.CreateNone), theirs, false, []string{"a"}, failed, foreign},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("a", []byte("a"))
			e.Backend.Put("b", []byte("b"))
			if tc.there != nil {
				e.plain("pair", tc.there...)
			}
			change := []spec{testenv.Fills("a", "a", "b", "b")}
			if tc.change != nil {
				change = append(change, tc.change)
			}
			e.synced("pair", append(change, deletes(tc.policy))...)
			if tc.added {
				testenv.Update(e.Client, e.Secret("pair"), func(s *corev1.Secret) { s.Data["foreign"] = []byte("keep") })
			}
			for _, key := range tc.notFound {
				e.Backend.Delete(key)
			}
			testenv.Update(e.Client, e.Get("pair"), testenv.Request("1"))
			if tc.want != failed {
				e.Eventually(func() string { return cmp.Diff("1", e.Get("pair").Status.ObservedRefreshRequest) })
			}
			c := e.WantReady("pair", tc.want)
			if ready := c.Status == metav1.ConditionTrue; ready != (tc.want != failed) {
				t.Errorf("%s: Ready is %s with reason %s", tc.reason, c.Status, c.Reason)
			}
			if tc.want == failed && (!strings.HasPrefix(c.Message, "NotFound: ") || !strings.Contains(c.Message, `"a"`)) {
				t.Errorf("%s: message is %q, want it to name the key", tc.reason, c.Message)
			}
			if tc.want == synced && !strings.Contains(name, "Immutable") && !strings.Contains(c.Message, `"`+tc.notFound[0]+`"`) {
				t.Errorf("%s: message is %q, want it to name the missing secret", tc.reason, c.Message)
			}
			if diff := cmp.Diff(tc.data, e.dataOf("pair")); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if b := e.Get("pair").Status.Binding; tc.data == nil && b != nil {
				t.Errorf("status.binding names %s, which does not exist", b.Name)
			}
		})
	}
}

// TestNotFoundWithGuest deletes the remote secret of a Secret's owner, while another object merges into that Secret. The
// Secret stays for the guest, and is deleted when no key of any object is left.
func TestNotFoundWithGuest(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("x"))
	e.Backend.Put("guest", []byte("y"))
	e.synced("db", deletes(v1alpha1.DeletionDelete))
	before := e.Secret("db")
	e.synced("guest", into(v1alpha1.Target{Name: "db", CreationPolicy: v1alpha1.CreateMerge, DeletionPolicy: v1alpha1.DeletionMerge}), testenv.Fills("guest", "guest"))
	e.Backend.Delete("db")
	e.refresh("db")
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.wantData("db", holds("guest", "y"))
	if got := e.Secret("db"); got.UID != before.UID {
		t.Error("it is another Secret")
	}
	e.Backend.Put("db", []byte("back"))
	e.refresh("db")
	e.wantData("db", holds("value", "back", "guest", "y"))

	e.Backend.Delete("db")
	e.Backend.Delete("guest")
	e.refresh("guest")
	e.refresh("db")
	e.WantReady("db", v1alpha1.ReasonSecretDeleted)
	e.WantReady("guest", v1alpha1.ReasonSecretMissing)
	e.wantData("db", nil)
}

// TestAlwaysRemoved removes optional entries and keys of an extracted object: their keys are removed under
// Retain, too.
func TestAlwaysRemoved(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("json", []byte(`{"one":"1","two":"2"}`))
	e.Backend.Put("maybe", []byte("here"))
	e.Backend.Put("always", []byte("here"))
	e.synced("db", testenv.Fills("always", "always", "maybe", "maybe"), func(es *v1alpha1.ExternalSecret) {
		es.Spec.Data[1].Optional = true
		es.Spec.DataFrom = []v1alpha1.DataFromEntry{{Extract: &v1alpha1.RemoteRef{Key: "json"}}}
	})
	e.wantData("db", holds("one", "1", "two", "2", "maybe", "here", "always", "here"))
	e.Backend.Delete("maybe")
	e.Backend.Put("json", []byte(`{"two":"2"}`))
	e.refresh("db")
	e.wantData("db", holds("two", "2", "always", "here"))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.Backend.Put("json", []byte(`{}`))
	e.refresh("db")
	e.wantData("db", holds("always", "here"))
}

// TestAbsentOnPurpose has deletionPolicy Delete and a remote secret that was deleted. That is no error, and the provider is not read before the next refresh.
func TestAbsentOnPurpose(t *testing.T) {
	e := newOwnEnv(t)
	e.Backend.Put("db", []byte("x"))
	e.synced("db", deletes(v1alpha1.DeletionDelete))
	e.Backend.Delete("db")
	e.refresh("db")
	c := e.WantReady("db", v1alpha1.ReasonSecretDeleted)
	if c.Status != metav1.ConditionTrue || len(e.Get("db").Status.Conditions) != 1 {
		t.Errorf("conditions are %+v, want Ready alone, and True", e.Get("db").Status.Conditions)
	}
	e.wantData("db", nil)
	reads := e.Backend.ReadsOf("db")
	e.WaitForEvents()
	e.Stop()
	e.Start()
	e.WaitForEvents()
	// An unrelated Secret of that name is created and deleted, which is no reason to read either.
	e.Delete(e.plain("db", "foreign", "keep"))
	e.WaitForEvents()
	if got := e.Backend.ReadsOf("db") - reads; got != 0 {
		t.Errorf("%d reads while the Secret is absent on purpose, want none", got)
	}
	e.WantReady("db", v1alpha1.ReasonSecretDeleted)

	e.Backend.Put("db", []byte("back"))
	e.refresh("db")
	e.wantData("db", holds("value", "back"))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
}

// TestStoreRepaired points a store at a backend that lacks the secrets, for example by a mistyped region, and back.
func TestStoreRepaired(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		policy  v1alpha1.DeletionPolicy
		there   []string // In the wrong backend.
		without map[string]string
		restart bool
	}{
		"Keys":    {"The removed keys are added again.", v1alpha1.DeletionMerge, []string{"a"}, holds("a", "x"), false},
		"Restart": {"The removed keys are added again by an operator that was restarted since.", v1alpha1.DeletionMerge, []string{"a"}, holds("a", "x"), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newOwnEnv(t)
			wrong := e.BackendOf("wrong")
			for _, key := range tc.there {
				wrong.Put(key, []byte("x"))
			}
			for _, key := range []string{"a", "b"} {
				e.Backend.Put(key, []byte("x"))
			}
			point := func(backend string) {
				testenv.Update(e.Client, e.Store("store", ""), func(s *fakev1.FakeStore) { s.Spec.Backend = e.BackendName(backend) })
			}
			e.synced("pair", testenv.Fills("a", "a", "b", "b"), deletes(tc.policy), func(es *v1alpha1.ExternalSecret) {
				es.Spec.RefreshPolicy = v1alpha1.RefreshOnChange
			})
			point("wrong")
			e.Eventually(func() string { // The operator could serve the refresh before it sees the store.
				s := e.Store("store", "")
				if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(s), s); err != nil {
					return err.Error()
				}
				return cmp.Diff(s.Generation, s.Status.ObservedGeneration)
			})
			e.refresh("pair")
			e.wantData("pair", tc.without)
			if tc.restart {
				e.Stop()
				e.Start()
				e.synced("later", testenv.Fills("a", "a"))
			}
			e.wantData("pair", tc.without)
			point("main")
			e.wantData("pair", holds("a", "x", "b", "x"))
			e.WantReady("pair", v1alpha1.ReasonSecretSynced)
		})
	}
}

// TestUnmarkedIsDeleted removes the mark of a Secret that the object created. The object still knows that it created it.
func TestUnmarkedIsDeleted(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("x"))
	e.synced("db", creates(v1alpha1.CreateOrphan), deletes(v1alpha1.DeletionDelete))
	testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) { delete(s.Annotations, target.MarkKey("db")) })
	e.refresh("db")
	e.Backend.Delete("db")
	e.refresh("db")
	e.WantReady("db", v1alpha1.ReasonSecretDeleted)
	e.wantData("db", nil)
}
