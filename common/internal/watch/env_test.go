package watch_test

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// timeout is the timeout of a test that waits for a call or an event.
const timeout = 60 * time.Second

var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) error {
		klog.SetLogger(logr.Discard())
		cluster = c
		return nil
	})
}

// env is a namespace with its own set of watches.
type env struct {
	*testing.T
	ctx     context.Context
	ns      string
	secrets typedv1.SecretInterface
	wire    *wire
	watches *watch.Watches
}

// newEnv returns an env of a test that runs in parallel.
func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	return newLoneEnv(t)
}

func newLoneEnv(t *testing.T) *env {
	t.Helper()
	clients, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	e := &env{T: t, ctx: t.Context(), ns: "t-" + strings.ToLower(rand.Text()[:12]), wire: newWire()}
	cfg := cluster.Config()
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { e.wire.RoundTripper = rt; return e.wire })
	m, err := metadata.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e.watches = watch.New(m)
	e.secrets = clients.CoreV1().Secrets(e.ns)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}}
	if _, err := clients.CoreV1().Namespaces().Create(e.ctx, ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return e
}

// eventually waits until f returns an empty string. Until then f returns what is missing.
func (e *env) eventually(f func() string) {
	e.Helper()
	controlplane.Eventually(e, f)
}

// create creates a Secret and returns its resourceVersion.
func (e *env) create(name string) string {
	e.Helper()
	s, err := e.secrets.Create(e.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return s.ResourceVersion
}

// change changes the value of a Secret and returns its resourceVersion.
func (e *env) change(name string) string {
	e.Helper()
	s, err := e.secrets.Get(e.ctx, name, metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	s.Data = map[string][]byte{"a": []byte(rand.Text())}
	if s, err = e.secrets.Update(e.ctx, s, metav1.UpdateOptions{}); err != nil {
		e.Fatal(err)
	}
	return s.ResourceVersion
}

func (e *env) delete(name string) {
	e.Helper()
	if err := e.secrets.Delete(e.ctx, name, metav1.DeleteOptions{}); err != nil {
		e.Fatal(err)
	}
}

// owner counts how often its watch has called it.
type owner struct {
	e      *env
	name   string
	called chan struct{}
}

// adds observes a Secret for a new owner that has read a resourceVersion.
func (e *env) adds(secret, name, known string) *owner {
	o := &owner{e: e, name: name, called: make(chan struct{}, 1000)}
	e.Cleanup(func() { e.watches.Remove(name) })
	o.adds(secret, known)
	return o
}

func (o *owner) adds(secret, known string) {
	o.e.watches.Add(watch.SecretRef(o.e.ns, secret), o.name, known, func() { o.called <- struct{}{} })
}

// wantCall waits until the owner was called once.
func (o *owner) wantCall() {
	o.e.Helper()
	select {
	case <-o.called:
	case <-time.After(timeout):
		o.e.Fatalf("%s was not called", o.name)
	}
}

// wantNoCall fails if the owner was called more often than the test has waited for.
func (o *owner) wantNoCall() {
	o.e.Helper()
	if n := len(o.called); n > 0 {
		o.e.Errorf("%s was called %d times too often", o.name, n)
	}
}

// synced returns when the watch has seen the current Secret: another owner, which has read another version, was
// called.
func (e *env) synced(secret string) {
	e.Helper()
	m := e.adds(secret, "marker", "0")
	m.wantCall()
}

// wire counts the open watches, and can delay their events.
type wire struct {
	http.RoundTripper

	mu     sync.Mutex
	free   *sync.Cond
	closed bool
	open   int
	begun  int
	bodies map[*body]bool
}

func newWire() *wire {
	w := &wire{bodies: map[*body]bool{}}
	w.free = sync.NewCond(&w.mu)
	return w
}

// hold delays all events until the returned function is called.
func (w *wire) hold() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.closed = false
		w.free.Broadcast()
	}
}

func (w *wire) counts() (open, begun int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open, w.begun
}

// cut ends all streams, like a proxy or a restart of the API server.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for b := range w.bodies {
		_ = b.ReadCloser.Close()
	}
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(req)
	if err != nil || req.URL.Query().Get("watch") != "true" {
		return resp, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open++
	w.begun++
	b := &body{ReadCloser: resp.Body, w: w}
	w.bodies[b] = true
	resp.Body = b
	return resp, nil
}

type body struct {
	io.ReadCloser
	w    *wire
	once sync.Once
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	for b.w.closed {
		b.w.free.Wait()
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.once.Do(func() {
		b.w.mu.Lock()
		defer b.w.mu.Unlock()
		b.w.open--
		delete(b.w.bodies, b)
	})
	return b.ReadCloser.Close()
}
