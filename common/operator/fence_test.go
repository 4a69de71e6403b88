package operator_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// lag holds back what a client's watches of a resource bring, so that its cache falls behind.
type lag struct {
	resource string
	mu       sync.Mutex
	cond     *sync.Cond
	held     bool
}

func newLag(resource string) *lag {
	l := &lag{resource: resource}
	l.cond = sync.NewCond(&l.mu)
	return l
}

func (l *lag) hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
	l.cond.Broadcast()
}

// wrap is a rest.Config's WrapTransport.
func (l *lag) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil && r.URL.Query().Get("watch") == "true" && strings.HasSuffix(r.URL.Path, "/"+l.resource) {
			resp.Body = &lagging{ReadCloser: resp.Body, lag: l}
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type lagging struct {
	io.ReadCloser
	lag *lag
}

// Read keeps what it has read until the lag is over.
func (b *lagging) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.lag.mu.Lock()
	defer b.lag.mu.Unlock()
	for b.lag.held && err == nil {
		b.lag.cond.Wait()
	}
	return n, err
}

// TestFence has an operator whose cache of ExternalSecrets is behind, beside one that is up to date.
// The one behind sees that the Secret is not as it wants it, and writes nothing.
func TestFence(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		why string
		// moveOn changes the object while the first operator does not see it.
		moveOn func(e *env, es *v1alpha1.ExternalSecret)
	}{
		"Recreated": {
			why: "the object was deleted and made again under its name",
			moveOn: func(e *env, es *v1alpha1.ExternalSecret) {
				e.delete(es)
				e.create(e.externalSecret("db", func(es *v1alpha1.ExternalSecret) { es.Spec.Data[0].SecretKey = "other" }))
			},
		},
		"Changed": {
			why: "the object has a later generation",
			moveOn: func(e *env, es *v1alpha1.ExternalSecret) {
				update(e, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Data[0].SecretKey = "other" })
			},
		},
		"Deleted": {
			why: "a Secret of an object that is gone does not come back",
			moveOn: func(e *env, es *v1alpha1.ExternalSecret) {
				e.delete(es)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			behind := newIdleEnv(t)
			l := newLag("externalsecrets")
			behind.config = rest.CopyConfig(config)
			behind.config.Wrap(l.wrap)
			behind.start()
			behind.backend.Put("db", []byte("stale"))
			es := behind.externalSecret("db", func(es *v1alpha1.ExternalSecret) {
				es.Spec.Target.CleanupPolicy = v1alpha1.CleanupNever // The collector shall not interfere.
			})
			behind.create(es)
			behind.wantSecret("db", "value", "stale")
			behind.wantReady("db", v1alpha1.ReasonSecretSynced)
			defer l.hold(false)
			l.hold(true)

			// The same namespace, with an operator and a provider that know better.
			ahead := *behind
			ahead.server = fake.NewServer()
			ahead.backend = ahead.server.Backend("main")
			ahead.backend.Put("db", []byte("fresh"))
			ahead.config = config
			tc.moveOn(&ahead, es)
			if name != "Deleted" {
				ahead.start()
				defer ahead.stop()
				ahead.wantSecret("db", "other", "fresh")
				ahead.wantReady("db", v1alpha1.ReasonSecretSynced)
				ahead.stop()
			}

			// Somebody edits the Secret, or deletes it, so that the one behind has something to mend.
			behind.backend.Reset()
			if name == "Deleted" {
				behind.delete(behind.secret("db"))
			} else {
				update(behind, behind.secret("db"), func(s *corev1.Secret) { s.Data["other"] = []byte("edited") })
			}
			wrong := func() string {
				switch s := behind.secret("db"); {
				case name == "Deleted" && s != nil:
					return fmt.Sprintf("it came back with %v", s.Data)
				case name != "Deleted" && (string(s.Data["other"]) != "edited" || s.Data["value"] != nil):
					return fmt.Sprintf("the operator behind wrote %v", s.Data)
				}
				return ""
			}
			// Two reads show that it wanted to write, was held, and tried again.
			behind.eventually(func() string {
				if w := wrong(); w != "" {
					t.Fatalf("%s: %s", tc.why, w)
				}
				if behind.backend.Count(fake.CallGetBatch) < 2 {
					return "the operator behind has not tried twice"
				}
				return ""
			})
			if w := wrong(); w != "" {
				t.Errorf("%s: %s", tc.why, w)
			}
		})
	}
}

func (e *env) delete(o client.Object) {
	e.Helper()
	if err := api.Delete(e.ctx, o); err != nil {
		e.Fatalf("delete %s: %v", o.GetName(), err)
	}
}
