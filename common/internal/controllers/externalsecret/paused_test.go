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

// TestPaused has an operator stop for a while between what its provider answered and the request that the answer leads
// to, as a leader does that loses its Lease unaware. Meanwhile another one serves the object, with a later answer.
func TestPaused(t *testing.T) {
	t.Parallel()
	onSecret := func(method string) func(*http.Request) bool {
		return func(r *http.Request) bool {
			return r.Method == method && strings.HasSuffix(r.URL.Path, "/secrets/db")
		}
	}
	gone := func(e *env) { e.Backend.Delete("db") }
	older := func(e *env) { e.Backend.Put("db", []byte("old")) }
	cases := map[string]struct {
		why string
		// before is what the provider says to the one that pauses.
		before func(*env)
		// pauses is the request before which it does.
		pauses func(*http.Request) bool
		// fresh is true if there is no Secret yet.
		fresh bool
	}{
		"Read":  {"It has yet to read the Secret.", older, onSecret(http.MethodGet), false},
		"Write": {"Its write meets a conflict, after which it reads again.", older, onSecret(http.MethodPatch), false},
		"Create": {"The Secret that it creates is there already.", older, func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets")
		}, true},
		"Delete": {"The value was gone, and is back.", gone, onSecret(http.MethodDelete), false},
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
				es.Spec.RefreshPolicy = v1alpha1.RefreshOnChange // No later refresh puts it right.
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

			other := &env{e.Beside()}
			e.Backend.Put("db", []byte("new"))
			other.Start()
			defer other.Stop()
			e.WantSecret("db", "value", "new")
			e.WantReady("db", v1alpha1.ReasonSecretSynced)
			other.Stop()
			want := e.Secret("db")
			operator.End()

			// It serves a later request when it is done with what it paused at.
			testenv.Update(e.Client, e.Get("db"), testenv.Request("later"))
			e.Eventually(func() string {
				if e.Get("db").Status.ObservedRefreshRequest != "later" {
					return "the later request is not served"
				}
				return ""
			})
			if diff := cmp.Diff(want, e.Secret("db")); diff != "" {
				t.Errorf("%s It has written an answer that is older than that in the Secret. -want, +got:\n%s", tc.why, diff)
			}
		})
	}
}

// TestPausedCreate has an operator pause right before it makes the Secret. Meanwhile another one has made it, a person has
// deleted it, and the value is gone. The request of the first cannot tell; what it has brought back goes again, without any other change.
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
		es.Spec.RefreshPolicy = v1alpha1.RefreshOnChange // No later refresh puts it right.
		es.Spec.Target.DeletionPolicy = v1alpha1.DeletionDelete
	}))
	operator.Wait()

	other := &env{e.Beside()}
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
			return "the provider is not asked again"
		}
		return ""
	})
	e.Eventually(func() string {
		if e.Secret("db") != nil {
			return "the Secret is there"
		}
		return ""
	})
	e.WantReady("db", v1alpha1.ReasonSecretDeleted)
}
