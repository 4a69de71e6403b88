package scenarios

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
	awsmanifests "github.com/direct-secrets/direct-secrets/provider-aws/manifests"
)

// namespace creates a namespace with a store for the emulator. Retries are few and short.
func namespace(t *testing.T, name string) string {
	t.Helper()
	must(t, shared.CreateNamespace(t.Context(), name))
	must(t, shared.AWSStore(t.Context(), name, "store", func(s *awsv1.AWSSecretsManager) {
		retries := int32(1)
		s.Spec.RetrySettings = &v1alpha1.RetrySettings{MaxRetries: &retries, RetryInterval: "10ms"}
	}))
	return name
}

// TestExample applies the example of the README and the demo.
func TestExample(t *testing.T) {
	t.Parallel()
	shared.AWS.Put("shop/db", []byte(`{"password":"first"}`))
	shared.AWS.Put("shop/db-connection", []byte(`{"host":"db.example","port":5432}`))
	example, err := awsmanifests.Examples.ReadFile("examples/secretsmanager.yaml")
	must(t, err)
	must(t, shared.Apply(t.Context(), example))
	start(t, "shop")
	s := wantValue(t, "shop", "db", "password", "first")
	want := map[string][]byte{"password": []byte("first"), "host": []byte("db.example"), "port": []byte("5432")}
	if diff := cmp.Diff(want, s.Data); diff != "" {
		t.Errorf("data: -want, +got:\n%s", diff)
	}
	wantReady(t, "shop", "db", v1alpha1.ReasonSecretSynced)

	shared.AWS.Put("shop/db", []byte(`{"password":"second"}`))
	wantValue(t, "shop", "db", "password", "second")

	must(t, shared.Admin.Delete(t.Context(), s))
	eventually(t, func() string {
		if again := getSecret(t, "shop", "db"); again == nil || again.UID == s.UID {
			return "the Secret has not returned"
		}
		return ""
	})
}

// TestFaults damages AWS's answers for one of two secrets, or for the whole call. No key changes under any
// deletionPolicy, and the condition names the secret and the cause. Once AWS reports that both secrets do not
// exist, deletionPolicy Delete deletes the Secret, and Retain does not.
func TestFaults(t *testing.T) {
	cases := map[string]struct {
		why     string
		fault   func(key string) emulator.Fault
		message []string
		// first, if set, is the answer to the first call.
		first *emulator.Fault
	}{
		"EmptyList": {
			why:     "an empty list after an error",
			first:   &emulator.Fault{Status: 500, Times: 1},
			fault:   func(string) emulator.Fault { return emulator.Fault{Page: emulator.PageCut} },
			message: []string{"Unavailable: "},
		},
		"Denied": {
			why: "one entry is denied",
			fault: func(key string) emulator.Fault {
				return emulator.Fault{Key: key, Entry: true, Code: "AccessDeniedException", Message: "not authorized"}
			},
			message: []string{"Denied: ", "KEY"},
		},
		"KMS": {
			why: "one entry cannot be decrypted",
			fault: func(key string) emulator.Fault {
				f := emulator.DecryptionFailed(key)
				f.Entry = true
				return f
			},
			message: []string{"Denied: ", "KEY", "KMS"},
		},
		"TruncatedPage": {
			why:     "a page that ends early without a token",
			fault:   func(string) emulator.Fault { return emulator.Fault{Page: emulator.PageCut, KeepEntries: 1} },
			message: []string{"Unavailable: "},
		},
		"LostPage": {
			why:     "a next page without the remaining entries",
			fault:   func(string) emulator.Fault { return emulator.Fault{Page: emulator.PageLost, KeepEntries: 1} },
			message: []string{"Unavailable: "},
		},
		"TruncatedBody": {
			why:     "a truncated answer",
			fault:   func(string) emulator.Fault { return emulator.Fault{Body: emulator.BodyTruncated} },
			message: []string{"Unavailable: "},
		},
		"TooManyRequests": {
			why:     "429 to everything",
			fault:   func(string) emulator.Fault { return emulator.Fault{Status: 429} },
			message: []string{"Throttled: "},
		},
		"InternalError": {
			why:     "500 to everything",
			fault:   func(string) emulator.Fault { return emulator.Fault{Status: 500} },
			message: []string{"Unavailable: "},
		},
		"Hang": {
			why:     "no answer at all",
			fault:   func(string) emulator.Fault { return emulator.Fault{Hang: true} },
			message: []string{"Unavailable: "},
		},
	}
	namespaces := map[string]string{}
	for name := range cases {
		namespaces[name] = namespace(t, "faults-"+strings.ToLower(name))
	}
	start(t, strings.Join(slices.Sorted(maps.Values(namespaces)), ","), "--provider-timeout=3s")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespaces[name]
			a, b := ns+"/a", ns+"/b"
			shared.AWS.Put(a, []byte("a-one"))
			shared.AWS.Put(b, []byte("b-one"))
			policies := map[string]v1alpha1.DeletionPolicy{"retain": v1alpha1.DeletionRetain, "delete": v1alpha1.DeletionDelete}
			before := map[string]*corev1.Secret{}
			for name, p := range policies {
				es := pair(ns, name, a, b)
				es.Spec.Target.DeletionPolicy = p
				must(t, shared.Admin.Create(t.Context(), es))
			}
			for name := range policies {
				wantValue(t, ns, name, "b", "b-one")
				wantReady(t, ns, name, v1alpha1.ReasonSecretSynced)
				before[name] = getSecret(t, ns, name)
			}

			// The fault is limited to these secrets, so that the tests do not disturb each other.
			if tc.first != nil {
				f := *tc.first
				f.Key = b
				defer shared.AWS.Inject(f)()
			}
			f := tc.fault(b)
			f.Key = b
			remove := shared.AWS.Inject(f)
			defer remove()
			// The other secret changes, so that a write despite the fault is detected.
			shared.AWS.Put(a, []byte("a-two"))
			for name := range policies {
				refresh(t, ns, name, "1")
				c := wantReady(t, ns, name, v1alpha1.ReasonSecretSyncedError)
				for _, part := range append(tc.message, `AWSSecretsManager "store"`) {
					if part = strings.ReplaceAll(part, "KEY", b); !strings.Contains(c.Message, part) {
						t.Errorf("%s: message %q does not contain %q", tc.why, c.Message, part)
					}
				}
				if diff := cmp.Diff(before[name], getSecret(t, ns, name)); diff != "" {
					t.Errorf("%s: deletionPolicy %s: the Secret changed: -before, +now:\n%s", tc.why, name, diff)
				}
			}
			remove()
			for name := range policies {
				wantValue(t, ns, name, "a", "a-two")
				wantReady(t, ns, name, v1alpha1.ReasonSecretSynced)
			}

			before["retain"] = getSecret(t, ns, "retain")
			shared.AWS.Delete(a)
			shared.AWS.Delete(b)
			for name := range policies {
				refresh(t, ns, name, "2")
			}
			wantReady(t, ns, "delete", v1alpha1.ReasonSecretDeleted)
			if s := getSecret(t, ns, "delete"); s != nil {
				t.Errorf("all remote secrets are deleted, but the Secret still has %d keys", len(s.Data))
			}
			wantReady(t, ns, "retain", v1alpha1.ReasonSecretSyncedError)
			if diff := cmp.Diff(before["retain"], getSecret(t, ns, "retain")); diff != "" {
				t.Errorf("deletionPolicy Retain: the Secret changed: -before, +now:\n%s", diff)
			}
		})
	}
}
