package dispatch_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// timeout limits each wait of a test. It is far longer than any wait takes, unless the test fails.
const timeout = 60 * time.Second

var (
	api     client.Client
	cluster *controlplane.ControlPlane
)

func TestMain(m *testing.M) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) error {
		ctrl.SetLogger(logr.Discard())
		var err error
		cluster = c
		api, err = client.New(c.Config(), client.Options{Scheme: scheme.Scheme})
		return err
	})
}

// env is a namespace with a pool over an empty backend.
type env struct {
	*testing.T
	ctx     context.Context
	ns      string
	server  *fake.Server
	backend *fake.Backend
	kind    provider.Kind
	watches *watch.Watches
	pool    *dispatch.Pool
	changed chan types.NamespacedName
	// onChanged runs in the callback of the pool.
	onChanged func()
	// gate delays watches that start while it is locked.
	gate gate
}

type gate struct {
	sync.RWMutex
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "true" {
		g.RLock()
		defer g.RUnlock()
	}
	return g.RoundTripper.RoundTrip(r)
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	e := &env{
		T: t, ctx: ctx, ns: "t-" + strings.ToLower(rand.Text()[:12]), server: fake.NewServer(),
		changed: make(chan types.NamespacedName, 100), onChanged: func() {},
	}
	e.backend, e.kind = e.server.Backend("main"), e.server.Kinds()[0]
	cfg := cluster.Config()
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { e.gate.RoundTripper = rt; return &e.gate })
	m, err := metadata.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e.watches = watch.New(m)
	e.pool = dispatch.NewPool(api, e.watches, credentials.Rules{Ambient: credentials.AmbientCluster}, dispatch.Options{}, func(_ provider.Kind, key types.NamespacedName, _ string) {
		e.onChanged()
		e.changed <- key
	})
	e.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}})
	return e
}

func (e *env) create(o client.Object) {
	e.Helper()
	if err := api.Create(e.ctx, o); err != nil {
		e.Fatal(err)
	}
}

// password creates or changes the Secret with the password.
func (e *env) password(p string) {
	e.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "creds"}}
	if err := api.Get(e.ctx, client.ObjectKeyFromObject(s), s); client.IgnoreNotFound(err) != nil {
		e.Fatal(err)
	}
	s.Data = map[string][]byte{"password": []byte(p)}
	if s.UID == "" {
		e.create(s)
		return
	}
	if err := api.Update(e.ctx, s); err != nil {
		e.Fatal(err)
	}
}

func (e *env) store(generation int64) *fakev1.FakeStore {
	e.Cleanup(func() { e.pool.Drop(types.UID(e.ns)) })
	return &fakev1.FakeStore{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "store", UID: types.UID(e.ns), Generation: generation},
		Spec:       fakev1.FakeStoreSpec{Backend: "main"},
	}
}

func (e *env) storeWithPassword(generation int64) *fakev1.FakeStore {
	s := e.store(generation)
	s.Spec.Auth = &fakev1.FakeAuth{SecretRef: v1alpha1.SecretKeySelector{Name: "creds", Key: "password"}}
	return s
}

// asks requests a secret and returns a function that waits for its answer.
func (e *env) asks(l *dispatch.Loader, key string) func() (string, error) {
	type result struct {
		answer provider.Answer
		err    error
	}
	got := make(chan result, 1)
	go func() {
		read := provider.Read{Ref: provider.Ref{Key: key}}
		results, release, err := l.Read(e.ctx, []provider.Read{read}, true, time.Time{})
		defer release()
		got <- result{results[read], err}
	}()
	return func() (string, error) {
		r := <-got
		return string(r.answer.Value.Data), errors.Join(r.answer.Err, r.err)
	}
}

func (e *env) wantRead(l *dispatch.Loader, key, value string) {
	e.Helper()
	if got, err := e.asks(l, key)(); err != nil || got != value {
		e.Errorf("read of %s: got %q, error %v, want %q", key, got, err, value)
	}
}

func (e *env) wantChanged() {
	e.Helper()
	select {
	case key := <-e.changed:
		if diff := cmp.Diff(types.NamespacedName{Namespace: e.ns, Name: "store"}, key); diff != "" {
			e.Errorf("changed(...): -want, +got:\n%s", diff)
		}
	case <-e.ctx.Done():
		e.Fatal("changed was not called")
	}
}

// wantCalls waits for a number of calls to the backend, and fails if there are more.
func (e *env) wantCalls(n int, c fake.Call) {
	e.Helper()
	if err := e.backend.Wait(e.ctx, n, c); err != nil {
		e.Fatalf("%s: %d calls, want %d", c, e.backend.Count(c), n)
	}
	if got := e.backend.Count(c); got != n {
		e.Errorf("%s: %d calls, want %d", c, got, n)
	}
}

func TestOneConnectUnderConcurrentDemand(t *testing.T) {
	e := newEnv(t)
	remove := e.backend.Inject(fake.Fault{Call: fake.CallConnect, Hang: true})
	var wg sync.WaitGroup
	for i := range 50 {
		key := fmt.Sprint(i)
		e.backend.Put(key, []byte(key))
		wg.Go(func() { e.wantRead(e.pool.Loader(e.kind, e.store(1), ""), key, key) })
	}
	e.wantCalls(1, fake.CallConnect)
	remove()
	wg.Wait()
	e.wantCalls(1, fake.CallConnect)
	if n := e.watches.Len(); n != 0 {
		t.Errorf("%d watches without credentials", n)
	}
}

func TestClientsAreKept(t *testing.T) {
	e := newEnv(t)
	e.backend.Put("a", []byte("1"))
	first := e.store(1)
	other := e.store(1)
	other.UID = "other"
	t.Cleanup(func() { e.pool.Drop("other") })
	cases := []struct {
		reason string
		store  *fakev1.FakeStore
		same   bool
	}{
		{"The same store has the same client.", e.store(1), true},
		{"A later version of the store has the same client if its spec is the same.", func() *fakev1.FakeStore { s := e.store(1); s.ResourceVersion = "2"; return s }(), true},
		{"Another store has another client.", other, false},
	}
	l := e.pool.Loader(e.kind, first, "")
	e.wantRead(l, "a", "1")
	for _, tc := range cases {
		got := e.pool.Loader(e.kind, tc.store, "")
		e.wantRead(got, "a", "1")
		if (got == l) != tc.same {
			t.Errorf("\n%s\nsame Loader: got %v, want %v", tc.reason, got == l, tc.same)
		}
	}
	e.wantCalls(2, fake.CallConnect)
	if n := e.backend.Closes(); n != 0 {
		t.Errorf("%d clients were closed", n)
	}
}

// TestStoreIsCopied checks that the client uses a copy of the store: later changes of the object do not affect it.
func TestStoreIsCopied(t *testing.T) {
	e := newEnv(t)
	e.backend.Put("a", []byte("1"))
	s := e.store(1)
	l := e.pool.Loader(e.kind, s, "")
	s.Spec.Backend = "none"
	e.wantRead(l, "a", "1")
}

func TestReplaced(t *testing.T) {
	cases := map[string]struct {
		reason string
		store  func(e *env, generation int64) *fakev1.FakeStore
		// move makes the current client outdated.
		move func(e *env)
		next int64
	}{
		"Spec": {
			reason: "A change of the spec replaces the client.",
			store:  (*env).store,
			move:   func(e *env) { e.pool.Loader(e.kind, e.store(2), "") },
			next:   2,
		},
		"Credential": {
			reason: "A change of a credential replaces the client and calls changed.",
			store:  (*env).storeWithPassword,
			move:   func(e *env) { e.password("second"); e.wantChanged() },
			next:   1,
		},
		"CredentialGone": {
			reason: "A deletion of a credential replaces the client and calls changed.",
			store:  (*env).storeWithPassword,
			move: func(e *env) {
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "creds"}}
				if err := api.Delete(e.ctx, s); err != nil {
					e.Fatal(err)
				}
				e.wantChanged()
				e.password("third")
			},
			next: 1,
		},
		"Dropped": {
			reason: "Drop retires the client of a deleted store.",
			store:  (*env).storeWithPassword,
			move:   func(e *env) { e.pool.Drop(types.UID(e.ns)) },
			next:   1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.password("first")
			e.backend.Put("a", []byte("1"))
			e.backend.Put("slow", []byte("2"))
			old := e.pool.Loader(e.kind, tc.store(e, 1), "")
			e.wantRead(old, "a", "1")
			remove := e.backend.Inject(fake.Fault{Key: "slow", Hang: true})
			reads := e.backend.Reads()
			slow := e.asks(old, "slow")
			if err := e.backend.Wait(e.ctx, reads+1, fake.CallGet, fake.CallGetBatch); err != nil {
				t.Fatal(err)
			}
			e.onChanged = func() {
				if e.pool.Loader(e.kind, tc.store(e, tc.next), "") == old {
					t.Errorf("\n%s\nchanged was called before the old client was dropped", tc.reason)
				}
			}

			tc.move(e)
			fresh := e.pool.Loader(e.kind, tc.store(e, tc.next), "")
			if fresh == old {
				t.Errorf("\n%s\nthe Loader is still the old one", tc.reason)
			}
			e.wantRead(fresh, "a", "1")
			e.wantCalls(2, fake.CallConnect)
			if n := e.backend.Closes(); n != 0 {
				t.Errorf("\n%s\nthe old client was closed during a read", tc.reason)
			}
			remove()
			if got, err := slow(); err != nil || got != "2" {
				t.Errorf("\n%s\nthe read under way: got %q, error %v", tc.reason, got, err)
			}
			e.wantCalls(1, fake.CallClose)
			e.wantRead(fresh, "a", "1")
			e.wantCalls(1, fake.CallClose)
		})
	}
}

// TestConfigMap checks that a ConfigMap is watched like a Secret, also next to a Secret of the same name.
func TestConfigMap(t *testing.T) {
	e := newEnv(t)
	e.password("first")
	e.backend.Put("a", []byte("1"))
	kind := provider.KindOf(provider.Connector[*fakev1.FakeStore](func(ctx context.Context, s *fakev1.FakeStore, c provider.Credentials) (provider.Client, error) {
		if _, err := c.ConfigMapValue(ctx, v1alpha1.ConfigMapKeySelector{Name: "creds", Key: "ca"}); err != nil {
			return nil, err
		}
		return e.server.ConnectFakeStore(ctx, s, c)
	}))
	loader := func() *dispatch.Loader { return e.pool.Loader(kind, e.storeWithPassword(1), "") }
	if _, err := e.asks(loader(), "a")(); provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), "ConfigMap "+e.ns+"/creds does not exist") {
		t.Fatalf("without the ConfigMap: %v", err)
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "creds"}, Data: map[string]string{"ca": "first"}}
	e.create(m)
	e.wantChanged()
	for _, change := range []func(){
		func() {
			m.Data["ca"] = "second"
			if err := api.Update(e.ctx, m); err != nil {
				t.Fatal(err)
			}
		},
		func() { e.password("second") },
		func() {
			if err := api.Delete(e.ctx, m); err != nil {
				t.Fatal(err)
			}
		},
	} {
		old := loader()
		e.wantRead(old, "a", "1")
		if n := e.watches.Len(); n != 2 {
			t.Errorf("%d watches, want one of the ConfigMap and one of the Secret", n)
		}
		change()
		e.wantChanged()
		if loader() == old {
			t.Error("the Loader is still the old one")
		}
	}
}

// TestNewCredentialIsUsed checks that a new client uses the new password.
func TestNewCredentialIsUsed(t *testing.T) {
	e := newEnv(t)
	e.backend.Put("a", []byte("1"))
	e.backend.SetPassword("second")
	e.password("first")
	if _, err := e.asks(e.pool.Loader(e.kind, e.storeWithPassword(1), ""), "a")(); provider.ClassOf(err) != provider.Denied {
		t.Fatalf("with the wrong password: %v", err)
	}
	e.password("second")
	e.wantChanged()
	e.wantRead(e.pool.Loader(e.kind, e.storeWithPassword(1), ""), "a", "1")
}

// TestMissingCredential checks that a credential that is created later is used.
func TestMissingCredential(t *testing.T) {
	e := newEnv(t)
	e.backend.Put("a", []byte("1"))
	_, err := e.asks(e.pool.Loader(e.kind, e.storeWithPassword(1), ""), "a")()
	if provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), "does not exist") {
		t.Fatalf("without the Secret: %v", err)
	}
	e.password("any")
	e.wantChanged()
	e.wantRead(e.pool.Loader(e.kind, e.storeWithPassword(1), ""), "a", "1")
}

func TestDropEndsTheWatches(t *testing.T) {
	e := newEnv(t)
	e.password("any")
	e.backend.Put("a", []byte("1"))
	e.wantRead(e.pool.Loader(e.kind, e.storeWithPassword(1), ""), "a", "1")
	if n := e.watches.Len(); n != 1 {
		t.Errorf("%d watches, want 1", n)
	}
	e.pool.Drop(types.UID(e.ns))
	e.pool.Drop(types.UID(e.ns))
	if n := e.watches.Len(); n != 0 {
		t.Errorf("%d watches after Drop, want none", n)
	}
	e.wantCalls(1, fake.CallClose)
}

// TestNewSpecEndsTheWatches checks that a spec without credentials ends the watches of the old ones.
func TestNewSpecEndsTheWatches(t *testing.T) {
	e := newEnv(t)
	e.password("any")
	e.backend.Put("a", []byte("1"))
	e.wantRead(e.pool.Loader(e.kind, e.storeWithPassword(1), ""), "a", "1")
	e.wantRead(e.pool.Loader(e.kind, e.store(2), ""), "a", "1")
	if n := e.watches.Len(); n != 0 {
		t.Errorf("%d watches, want none", n)
	}
}

// TestLateConnect checks that a connection which is still being created when its store is deleted, or its spec
// changes, leaves no watch behind.
func TestLateConnect(t *testing.T) {
	cases := map[string]struct {
		reason string
		move   func(e *env)
	}{
		"Dropped": {"The store was deleted during the connect.", func(e *env) { e.pool.Drop(types.UID(e.ns)) }},
		"Replaced": {"The store got another spec, without a credential, during the connect.", func(e *env) {
			e.wantRead(e.pool.Loader(e.kind, e.store(2), ""), "a", "1")
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.password("any")
			e.backend.Put("a", []byte("1"))
			begun, release := make(chan struct{}), make(chan struct{})
			slow := provider.KindOf(provider.Connector[*fakev1.FakeStore](func(ctx context.Context, s *fakev1.FakeStore, c provider.Credentials) (provider.Client, error) {
				close(begun)
				<-release
				return e.server.ConnectFakeStore(ctx, s, c)
			}))
			late := e.asks(e.pool.Loader(slow, e.storeWithPassword(1), ""), "a")
			<-begun
			tc.move(e)
			close(release)
			if got, err := late(); err != nil || got != "1" {
				t.Errorf("\n%s\nthe late read: got %q, error %v", tc.reason, got, err)
			}
			if n := e.watches.Len(); n != 0 {
				t.Errorf("\n%s\n%d watches, want none", tc.reason, n)
			}
			e.wantCalls(1, fake.CallClose)
		})
	}
}

// TestCredentialChangesWhileConnecting changes a Secret between the reads of two keys. The two values might not
// match, so the client must be replaced.
func TestCredentialChangesWhileConnecting(t *testing.T) {
	e := newEnv(t)
	e.password("first")
	e.backend.Put("a", []byte("1"))
	torn := provider.KindOf(provider.Connector[*fakev1.FakeStore](func(ctx context.Context, s *fakev1.FakeStore, c provider.Credentials) (provider.Client, error) {
		if _, err := c.SecretValue(ctx, s.Spec.Auth.SecretRef); err != nil {
			return nil, err
		}
		e.password("second")
		return e.server.ConnectFakeStore(ctx, s, c)
	}))
	old := e.pool.Loader(torn, e.storeWithPassword(1), "")
	e.gate.Lock()
	e.wantRead(old, "a", "1")
	e.gate.Unlock()
	e.wantChanged()
	if e.pool.Loader(e.kind, e.storeWithPassword(1), "") == old {
		t.Error("the Loader is still the old one")
	}
}

// TestGenerator checks that the client of a generator is shared like that of a store, and closed after its last use.
func TestGenerator(t *testing.T) {
	e := newEnv(t)
	kind := e.server.GeneratorKinds()[0]
	at := func(generation int64) *dispatch.Loader {
		return e.pool.Loader(kind, &fakev1.FakeGenerator{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "gen", UID: types.UID(e.ns), Generation: generation},
			Spec:       fakev1.FakeGeneratorSpec{Backend: "main"},
		}, "")
	}
	t.Cleanup(func() { e.pool.Drop(types.UID(e.ns)) })
	ctx, done := context.WithCancel(e.ctx)
	old := at(1)
	use := func() {
		t.Helper()
		g, err := old.Link(ctx)
		if err == nil {
			_, err = g.Generate(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	use()
	use()
	if at(1) != old {
		t.Error("the same generator has another Loader")
	}
	if at(2) == old {
		t.Error("a generator with another spec has the old Loader")
	}
	use()
	e.wantCalls(1, fake.CallConnect) // A client in use is not closed.
	e.wantCalls(3, fake.CallGenerate)
	done()
	e.wantCalls(1, fake.CallClose)
}
