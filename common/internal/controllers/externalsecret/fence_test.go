package externalsecret_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// TestFence runs an operator whose cache of ExternalSecrets is behind, together with one that is up to date. The
// outdated operator sees that the Secret differs from what it wants, and writes nothing.
func TestFence(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		why string
		// moveOn changes the object while the outdated operator does not see it.
		moveOn func(e *env, es *v1alpha1.ExternalSecret)
	}{
		"Recreated": {
			why: "the object was deleted and created again with the same name",
			moveOn: func(e *env, es *v1alpha1.ExternalSecret) {
				e.Delete(es)
				e.Create(e.ExternalSecret("db", func(es *v1alpha1.ExternalSecret) { es.Spec.Data[0].SecretKey = "other" }))
			},
		},
		"Deleted": {
			why: "the Secret of a deleted object is not created again",
			moveOn: func(e *env, es *v1alpha1.ExternalSecret) {
				e.Delete(es)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			behind := newIdleEnv(t)
			l := testenv.NewLag("externalsecrets")
			behind.Config.Wrap(l.Wrap)
			behind.Start()
			behind.Backend.Put("db", []byte("stale"))
			es := behind.ExternalSecret("db", func(es *v1alpha1.ExternalSecret) {
				es.Spec.Target.CleanupPolicy = v1alpha1.CleanupNever // The garbage collector must not delete the Secret.
			})
			behind.Create(es)
			behind.WantSecret("db", "value", "stale")
			behind.WantReady("db", v1alpha1.ReasonSecretSynced)
			defer l.Hold(false)
			l.Hold(true)

			// An operator in the same namespace with a newer value of the provider.
			ahead := &env{behind.SecondOperator()}
			ahead.Server = fake.NewServer()
			ahead.Backend = ahead.Server.Backend("main")
			ahead.Backend.Put("db", []byte("fresh"))
			tc.moveOn(ahead, es)
			if name != "Deleted" {
				ahead.Start()
				defer ahead.Stop()
				ahead.WantSecret("db", "other", "fresh")
				ahead.WantReady("db", v1alpha1.ReasonSecretSynced)
				ahead.Stop()
			}

			// A user edits or deletes the Secret, so that the outdated operator has something to restore.
			behind.Backend.Reset()
			if name == "Deleted" {
				behind.Delete(behind.Secret("db"))
			} else {
				testenv.Update(behind.Client, behind.Secret("db"), func(s *corev1.Secret) { s.Data["other"] = []byte("edited") })
			}
			wrong := func() string {
				switch s := behind.Secret("db"); {
				case name == "Deleted" && s != nil:
					return fmt.Sprintf("it was created again with %v", s.Data)
				case name != "Deleted" && (string(s.Data["other"]) != "edited" || s.Data["value"] != nil):
					return fmt.Sprintf("the outdated operator wrote %v", s.Data)
				}
				return ""
			}
			// Two reads show that the operator wanted to write, was stopped by the fence, and retried.
			behind.Eventually(func() string {
				if w := wrong(); w != "" {
					t.Fatalf("%s: %s", tc.why, w)
				}
				if behind.Backend.Count(fake.CallGetBatch) < 2 {
					return "the outdated operator has not tried twice"
				}
				return ""
			})
			if w := wrong(); w != "" {
				t.Errorf("%s: %s", tc.why, w)
			}
		})
	}
}
