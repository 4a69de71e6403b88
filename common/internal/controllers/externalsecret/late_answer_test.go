package externalsecret_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

// TestLateAnswer deletes the Secret after the operator has restored it, but before the operator knows that its write
// succeeded. TestModel covers this only on a busy machine.
func TestLateAnswer(t *testing.T) {
	e := newIdleEnv(t)
	var next atomic.Bool
	held, release := make(chan struct{}), make(chan struct{})
	e.Config.Wrap(func(transport http.RoundTripper) http.RoundTripper {
		return testenv.RoundTripper(func(r *http.Request) (*http.Response, error) {
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
	e.Start()
	for _, name := range []string{"db", "other"} {
		e.Backend.Put(name, []byte("right"))
		e.Create(e.ExternalSecret(name))
		e.WantReady(name, v1alpha1.ReasonSecretSynced)
	}

	next.Store(true)
	spoil := func(s *corev1.Secret) { s.Data["value"] = []byte("wrong") }
	testenv.Update(e.Client, e.Secret("db"), spoil)
	<-held
	if err := e.API.Delete(e.Ctx, e.WantSecret("db", "value", "right")); err != nil {
		t.Fatal(err)
	}
	// Once the operator has restored a Secret that changed later, it has seen the deletion.
	testenv.Update(e.Client, e.Secret("other"), spoil)
	e.WantSecret("other", "value", "right")
	letGo()
	e.WantSecret("db", "value", "right")
}
