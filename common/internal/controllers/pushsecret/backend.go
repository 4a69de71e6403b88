package pushsecret

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// backend is where a store keeps its secrets, as far as its spec shows.
type backend struct {
	// address is equal for all stores of a Kind, or of its cluster twin, that use the same backend.
	address string
	// login identifies the credentials of the store. The backend can depend on them.
	login string
}

// backend returns the backend of the store for objects in a namespace.
func (d *destination) backend(namespace string) backend {
	return backendOf(d.route, d.store, namespace)
}

func backendOf(k resolve.Route, s provider.Object, namespace string) backend {
	raw, err := json.Marshal(s)
	var o struct {
		Spec map[string]any `json:"spec"`
	}
	if err != nil || json.Unmarshal(raw, &o) != nil {
		return backend{address: string(s.GetUID())}
	}
	for _, f := range ourFields {
		delete(o.Spec, f)
	}
	auth, has := o.Spec["auth"]
	delete(o.Spec, "auth")
	b := backend{address: k.GVK.Group + "/" + strings.TrimPrefix(k.GVK.Kind, "Cluster") + " " + encoded(o.Spec)}
	if has {
		if credentialsNamespace := resolve.CredentialsNamespace(s, namespace); credentialsNamespace != "" {
			namespace = credentialsNamespace
		} else {
			namespace = s.GetNamespace()
		}
		b.login = namespace + " " + encoded(auth)
	}
	return b
}

func encoded(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(raw)
}

// ourFields are the fields of a store's spec that configure the operator, and do not select the backend.
var ourFields = jsonNames(v1alpha1.StoreSpec{}, v1alpha1.ClusterStoreSpec{}, v1alpha1.RetrySpec{})

func jsonNames(structs ...any) (names []string) {
	for _, s := range structs {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(s)) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// site is a remote secret, identified by what specs contain.
type site struct{ address, key string }

// siteLocks makes removals from a remote secret wait for pushes to it, and pushes wait for removals. The zero value is
// ready to use.
type siteLocks struct {
	mu   sync.Mutex
	busy map[site]*siteLock
}

type siteLock struct {
	pushes   int
	removing bool
	// left is closed when a push or a removal ends.
	left chan struct{}
}

// enter waits until the caller may push to a remote secret, or remove from it. The caller must call unlock afterwards.
func (t *siteLocks) enter(ctx context.Context, s site, removes bool) (unlock func(), err error) {
	for {
		t.mu.Lock()
		u := t.busy[s]
		if u == nil {
			u = &siteLock{left: make(chan struct{})}
			if t.busy == nil {
				t.busy = map[site]*siteLock{}
			}
			t.busy[s] = u
		}
		if !u.removing && (!removes || u.pushes == 0) {
			u.removing = removes
			u.pushes++
			t.mu.Unlock()
			return func() { t.unlock(s) }, nil
		}
		left := u.left
		t.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
			return nil, provider.NewError(provider.Unavailable, "another PushSecret keeps pushing to it or removing it")
		}
	}
}

func (t *siteLocks) unlock(s site) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.busy[s]
	u.pushes--
	u.removing = false
	close(u.left)
	u.left = make(chan struct{})
	if u.pushes == 0 {
		delete(t.busy, s)
	}
}
