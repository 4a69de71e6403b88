package externalsecret_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// TestPaused pauses an operator between an answer of the provider and the request that follows, as a leader that
// loses its Lease without noticing. Meanwhile another operator serves the object, with a later answer.
func TestPaused(t *testing.T) {
	t.Parallel()
	onSecret := func(method string) func(*http.Request) bool {
		return func(r *http.Request) bool {
			return r.Method == method && strings.HasSuffix(r.URL.Path, "/secrets/db")
		}
	}
	deleteValue := func(e *env) { e.Backend.Delete("db") }
	older := func(e *env) { e.Backend.Put("db", []byte("old")) }
	cases := map[string]struct {
		why string
		// before sets the provider's state that the paused operator reads.
		before func(*env)
		// pauses matches the request before which the operator pauses.
		pauses func(*http.Request) bool
		// fresh is true if there is no Secret yet.
		fresh bool
	}{
		"Read":  {"The operator has not read the Secret yet.", older, onSecret(http.MethodGet), false},
		"Write": {"The operator's write has a conflict, after which it reads again.", older, onSecret(http.MethodPatch), false},
		"Create": {"The operator's create finds that the Secret exists already.", older, func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets")
		}, true},
		"Delete": {"The remote secret did not exist, and exists again.", deleteValue, onSecret(http.MethodDelete), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newIdleEnv(t)
			operator := testenv.NewPause(t)
			e.Config.Wrap(operator.Wrap)
			pause := func() {
				tc.before(e)
				operator.Before(tc.pauses)
			}
			e.Start()
			es := e.ExternalSecret("db", func(es *v1alpha1.ExternalSecret) {
				es.Spec.RefreshPolicy = v1alpha1.RefreshOnChange // No later refresh corrects the Secret.
				es.Spec.Target.DeletionPolicy = v1alpha1.DeletionDelete
			})
			if tc.fresh {
				pause()
				e.Create(es)
			} else {
				e.Backend.Put("db", []byte("first"))
				e.Create(es)
				e.WantSecret("db", "value", "first")
				e.WantReady("db", v1alpha1.ReasonSecretSynced)
				pause()
				testenv.Update(e.Client, e.Get("db"), testenv.Request("again"))
			}
			operator.Wait()

			other := &env{e.SecondOperator()}
			e.Backend.Put("db", []byte("new"))
			other.Start()
			defer other.Stop()
			e.WantSecret("db", "value", "new")
			e.WantReady("db", v1alpha1.ReasonSecretSynced)
			other.Stop()
			want := e.Secret("db")
			operator.End()

			// The operator serves a later request after it has finished the paused pass.
			testenv.Update(e.Client, e.Get("db"), testenv.Request("later"))
			e.Eventually(func() string {
				if e.Get("db").Status.ObservedRefreshRequest != "later" {
					return "the later request is not served"
				}
				return ""
			})
			if diff := cmp.Diff(want, e.Secret("db")); diff != "" {
				t.Errorf("%s The operator has written an answer that is older than that in the Secret. -want, +got:\n%s", tc.why, diff)
			}
		})
	}
}

// TestPausedCreate pauses an operator right before it creates the Secret. Meanwhile another operator has created it,
// a user has deleted it, and the remote secret was deleted. The create succeeds, since it cannot detect that; the
// Secret must be deleted again without any other change.
func TestPausedCreate(t *testing.T) {
	e := newIdleEnv(t)
	operator := testenv.NewPause(t)
	e.Config.Wrap(operator.Wrap)
	e.Backend.Put("db", []byte("value"))
	operator.Before(func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets")
	})
	e.Start()
	e.Create(e.ExternalSecret("db", func(es *v1alpha1.ExternalSecret) {
		es.Spec.RefreshPolicy = v1alpha1.RefreshOnChange // No later refresh corrects the Secret.
		es.Spec.Target.DeletionPolicy = v1alpha1.DeletionDelete
	}))
	operator.Wait()

	other := &env{e.SecondOperator()}
	other.Start()
	defer other.Stop()
	e.WantSecret("db", "value", "value")
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.Backend.Delete("db")
	e.Delete(e.Secret("db"))
	e.WantReady("db", v1alpha1.ReasonSecretDeleted)
	other.Stop()

	asked := e.Backend.Count(fake.CallGetBatch)
	operator.End()
	e.Eventually(func() string {
		if e.Backend.Count(fake.CallGetBatch) == asked {
			return "the provider was not read again"
		}
		return ""
	})
	e.Eventually(func() string {
		if e.Secret("db") != nil {
			return "the Secret exists"
		}
		return ""
	})
	e.WantReady("db", v1alpha1.ReasonSecretDeleted)
}
