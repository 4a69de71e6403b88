package operator_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TestLateAnswer has somebody delete the Secret after the operator has put it right, but before the
// operator knows that its write succeeded. TestModel comes upon this only where a machine is busy.
func TestLateAnswer(t *testing.T) {
	e := newIdleEnv(t)
	var next atomic.Bool
	held, release := make(chan struct{}), make(chan struct{})
	e.config = rest.CopyConfig(config)
	e.config.Wrap(func(transport http.RoundTripper) http.RoundTripper {
		return lateAnswer(func(r *http.Request) (*http.Response, error) {
			resp, err := transport.RoundTrip(r)
			isApply := strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
			if isApply && strings.HasSuffix(r.URL.Path, "/secrets/db") && next.CompareAndSwap(true, false) {
				close(held)
				<-release
			}
			return resp, err
		})
	})
	letGo := sync.OnceFunc(func() { close(release) })
	defer letGo()
	e.start()
	for _, name := range []string{"db", "other"} {
		e.backend.Put(name, []byte("right"))
		e.create(e.externalSecret(name))
		e.wantReady(name, v1alpha1.ReasonSecretSynced)
	}

	next.Store(true)
	spoil := func(s *corev1.Secret) { s.Data["value"] = []byte("wrong") }
	update(e, e.secret("db"), spoil)
	<-held
	if err := api.Delete(e.ctx, e.wantSecret("db", "value", "right")); err != nil {
		t.Fatal(err)
	}
	// What is put right of a later change shows that the operator has seen the deletion.
	update(e, e.secret("other"), spoil)
	e.wantSecret("other", "value", "right")
	letGo()
	e.wantSecret("db", "value", "right")
}

type lateAnswer func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f lateAnswer) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
