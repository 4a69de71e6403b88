package externalsecret_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// TestBadInput changes an object that is in sync to a spec that cannot be served.
func TestBadInput(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		why     string
		spec    spec
		reason  string
		message []string
	}{
		"NoSuchStore": {
			why:     "the store is named, with the fix",
			spec:    func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Name = "nowhere" },
			reason:  v1alpha1.ReasonStoreNotFound,
			message: []string{"FakeStore", "nowhere", "create it or correct the reference"},
		},
		"StoreNotReady": {
			why:     "the store's own reason is reported",
			spec:    func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Name = "broken" },
			reason:  v1alpha1.ReasonStoreNotReady,
			message: []string{"FakeStore", "broken", "InvalidSpec"},
		},
		"HugeInAll": {
			why: "each value fits, but all together do not",
			spec: func(es *v1alpha1.ExternalSecret) {
				es.Spec.Data = append(es.Spec.Data,
					v1alpha1.DataEntry{SecretKey: "a", RemoteRef: v1alpha1.RemoteRef{Key: "half"}},
					v1alpha1.DataEntry{SecretKey: "b", RemoteRef: v1alpha1.RemoteRef{Key: "half"}})
			},
			reason:  v1alpha1.ReasonSecretSyncedError,
			message: []string{"Invalid: ", "in total"},
		},
		"NothingToRead": {
			why:     "the object has no entries",
			spec:    func(es *v1alpha1.ExternalSecret) { es.Spec.Data = nil },
			reason:  v1alpha1.ReasonInvalidSpec,
			message: []string{"nothing to read"},
		},
		"StoreAsGenerator": {
			why: "a store generates nothing",
			spec: func(es *v1alpha1.ExternalSecret) {
				es.Spec.DataFrom = []v1alpha1.DataFromEntry{{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: "FakeStore", Name: "store"}}}}
			},
			reason:  v1alpha1.ReasonInvalidSpec,
			message: []string{"generatorRef", "is a store", "storeRef"},
		},
		"TypeChanged": {
			why: "the type of a Secret cannot change",
			spec: func(es *v1alpha1.ExternalSecret) {
				es.Spec.Target.Template = &v1alpha1.Template{Type: "example.com/other"}
			},
			reason:  v1alpha1.ReasonSecretSyncedError,
			message: []string{"Invalid: ", "delete the Secret"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Create(e.Store("broken", "no-such-backend"))
			e.Backend.Put("db", []byte("s3cret"))
			e.Backend.Put("json", []byte(`{"password":"s3cret"}`))
			e.Backend.Put("half", make([]byte, 600<<10))
			e.Backend.Put("huge", make([]byte, 2<<20))
			es := e.ExternalSecret("db")
			e.Create(es)
			before := e.WantSecret("db", "value", "s3cret")
			e.WantReady("db", v1alpha1.ReasonSecretSynced)

			testenv.Update(e.Client, es, tc.spec)
			c := e.WantReady("db", tc.reason)
			for _, part := range tc.message {
				if !strings.Contains(c.Message, part) {
					t.Errorf("%s: message %q does not contain %q", tc.why, c.Message, part)
				}
			}
			if strings.Contains(c.Message, "s3cret") {
				t.Errorf("message %q shows the value", c.Message)
			}
			e.wantUnchanged(before)
		})
	}
}

// wantUnchanged fails if a Secret differs from an earlier read of it, even in its resourceVersion.
func (e *env) wantUnchanged(before *corev1.Secret) {
	e.Helper()
	if diff := cmp.Diff(before, e.Secret(before.Name)); diff != "" {
		e.Errorf("the Secret changed: -before, +now:\n%s", diff)
	}
}

// TestFaults injects each fault of a provider into the read of one of two keys.
func TestFaults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		why     string
		fault   fake.Fault
		message []string
	}{
		"OneDropped": {
			why:     "an entry that the answer lacks does not count as deleted",
			fault:   fake.Fault{Key: "b", Drop: true},
			message: []string{"Unavailable: ", `"b"`},
		},
		"Unknown": {
			why:     "an unclassified error is not shown, and does not count as NotFound",
			fault:   fake.Fault{Call: fake.CallGetBatch, Err: errBoom},
			message: []string{"Unavailable: "},
		},
		"Hang": {
			why:     "the provider does not answer",
			fault:   fake.Fault{Call: fake.CallGetBatch, Hang: true},
			message: []string{"Unavailable: ", "did not answer in time"},
		},
		"Panic": {
			why:     "the provider's code panics with a value in its message",
			fault:   fake.Fault{Call: fake.CallGetBatch, Panic: "s3cret"},
			message: []string{"Unavailable: "},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("a", []byte("s3cret-a"))
			e.Backend.Put("b", []byte("s3cret-b"))
			es := e.ExternalSecret("pair", func(es *v1alpha1.ExternalSecret) {
				es.Spec.Data = []v1alpha1.DataEntry{
					{SecretKey: "a", RemoteRef: v1alpha1.RemoteRef{Key: "a"}},
					{SecretKey: "b", RemoteRef: v1alpha1.RemoteRef{Key: "b"}},
				}
			})
			e.Create(es)
			e.WantSecret("pair", "b", "s3cret-b")
			e.WantReady("pair", v1alpha1.ReasonSecretSynced)
			before := e.Secret("pair")

			// The other key changes, so that a write despite the fault would show.
			e.Backend.Put("a", []byte("s3cret-a2"))
			remove := e.Backend.Inject(tc.fault)
			testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) {
				es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
			})
			c := e.WantReady("pair", v1alpha1.ReasonSecretSyncedError)
			for _, part := range append(tc.message, `FakeStore "store"`) {
				if !strings.Contains(c.Message, part) {
					t.Errorf("%s: message %q does not contain %q", tc.why, c.Message, part)
				}
			}
			if strings.Contains(c.Message, "s3cret") || strings.Contains(c.Message, "boom") {
				t.Errorf("message %q shows a value or the text of an unclassified error", c.Message)
			}
			e.wantUnchanged(before)

			remove()
			e.WantSecret("pair", "a", "s3cret-a2")
			e.WantReady("pair", v1alpha1.ReasonSecretSynced)
		})
	}
}
