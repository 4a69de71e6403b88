package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// hostile is a server with enough of Vault's protocol to do harm. Its behaviour depends on the first part of
// the path.
type hostile struct {
	server *httptest.Server
	asked  atomic.Int64
	// end is closed to release the requests that hang.
	end chan struct{}
}

// largest is an answer close to the maximum size.
var largest = []byte(`{"data":{"data":{"username":"u","password":"` + strings.Repeat("v", 1400<<10) + `"},"metadata":{"version":1,"created_time":"2026-01-01T00:00:00Z"}}}`)

func startHostile() *hostile {
	h := &hostile{end: make(chan struct{})}
	h.server = httptest.NewServer(h)
	return h
}

func (h *hostile) stop() {
	close(h.end)
	h.server.Close()
}

// ServeHTTP implements http.Handler.
func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked.Add(1)
	switch key := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; {
	case strings.HasPrefix(key, "large"):
		_, _ = w.Write(largest)
	case strings.HasPrefix(key, "hang"):
		select {
		case <-h.end:
		case <-r.Context().Done():
		}
	case strings.HasPrefix(key, "later"):
		w.Header().Set("Retry-After", "2588400")
		w.WriteHeader(http.StatusTooManyRequests)
	default: // The requests that validate a store.
		_, _ = w.Write([]byte(`{"data":{"path":"secret/","type":"kv","options":{"version":"2"}}}`))
	}
}

// A tenant disturbs the operator from its namespace.
type tenant func(ctx context.Context, s *stack.Stack, v *vault, ns string) error

// tenants returns the hostile tenants.
func (h *hostile) tenants() []tenant {
	return []tenant{
		h.reads("large", 20, 40), h.reads("large", 200, 1), // These use memory.
		h.stores(100), h.reads("hang", 200, 1), // These hang.
		marks(50),        // These cause look-ups.
		h.pushes("hang"), // These writes hang, for keys that other tenants have, too.
		often(200),       // These cause refreshes.
		h.reads("later", 200, 1), h.stores(100), h.reads("large", 50, 10),
	}
}

// reads makes many objects read many secrets of one kind every second.
func (h *hostile) reads(kind string, objects, keys int) tenant {
	return func(ctx context.Context, s *stack.Stack, _ *vault, ns string) error {
		if err := errors.Join(s.CreateNamespace(ctx, ns), ownStore(ctx, s, ns, "store", h.server.URL)); err != nil {
			return err
		}
		return each(workload(ns, objects, 1), clients, func(o Object) error {
			o.Namespace = ns
			return s.Admin.Create(ctx, ofVault(o, everySecond, func(es *v1alpha1.ExternalSecret) {
				es.Spec.Data = nil
				for i := range keys {
					es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{SecretKey: fmt.Sprint(i), RemoteRef: v1alpha1.RemoteRef{Key: fmt.Sprintf("%s-%s-%d", kind, o.Name, i)}})
				}
			}))
		})
	}
}

func everySecond(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = "1s" }

// stores creates many stores on a server that hangs. They are validated all the time.
func (h *hostile) stores(n int) tenant {
	return func(ctx context.Context, s *stack.Stack, _ *vault, ns string) error {
		if err := s.CreateNamespace(ctx, ns); err != nil {
			return err
		}
		for i := range n {
			if err := ownStore(ctx, s, ns, fmt.Sprint("hang-", i), h.server.URL+"/hang"); err != nil {
				return err
			}
		}
		return nil
	}
}

// marks adds as many foreign marks as possible to the annotations of its Secrets.
func marks(secrets int) tenant {
	return func(ctx context.Context, s *stack.Stack, v *vault, ns string) error {
		if err := errors.Join(s.CreateNamespace(ctx, ns), s.VaultStore(ctx, ns, "store", v.Address, "secret", v.RootToken)); err != nil {
			return err
		}
		foreign := map[string]string{}
		for i := range 2000 {
			foreign[fmt.Sprintf("direct-secrets.io/es.%032x", i)] = fmt.Sprintf(`{"name":"other-%d","uid":"00000000-0000-0000-0000-%012d"}`, i, i)
		}
		return each(workload(ns, secrets, 1), clients, func(o Object) error {
			o.Namespace = ns
			if err := v.put(o); err != nil {
				return err
			}
			return errors.Join(
				s.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: o.Name, Annotations: foreign}}),
				s.Admin.Create(ctx, ofVault(o, everySecond)),
			)
		})
	}
}

// pushes makes many objects push to secrets of one kind.
func (h *hostile) pushes(kind string) tenant {
	return func(ctx context.Context, s *stack.Stack, _ *vault, ns string) error {
		if err := errors.Join(s.CreateNamespace(ctx, ns), ownStore(ctx, s, ns, "store", h.server.URL),
			s.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "source"}, Data: map[string][]byte{"a": []byte("b")}})); err != nil {
			return err
		}
		for i := range 200 {
			if err := s.Admin.Create(ctx, pushing(ns, fmt.Sprint("push-", i), "store", fmt.Sprint(kind, "-", i))); err != nil {
				return err
			}
		}
		return nil
	}
}

// often makes many objects read an ordinary store every second.
func often(objects int) tenant {
	return func(ctx context.Context, s *stack.Stack, v *vault, ns string) error {
		if err := errors.Join(s.CreateNamespace(ctx, ns), s.VaultStore(ctx, ns, "store", v.Address, "secret", v.RootToken)); err != nil {
			return err
		}
		for i := range objects {
			o := Object{NamespacedName: types.NamespacedName{Namespace: ns, Name: fmt.Sprint("often-", i)}, Key: fmt.Sprint("often/", i)}
			if err := errors.Join(v.put(o), s.Admin.Create(ctx, ofVault(o, everySecond))); err != nil {
				return err
			}
		}
		return nil
	}
}
