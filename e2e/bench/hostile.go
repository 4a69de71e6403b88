package bench

import (
	"bytes"
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

// hostile is a server with enough of Vault's protocol to do harm. Its behaviour depends on the first or the last part
// of the path.
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
	key := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	does := func(what string) bool {
		return strings.HasPrefix(key, what) || strings.HasPrefix(r.URL.Path, "/"+what+"/")
	}
	switch {
	case does("large"):
		_, _ = w.Write(largest)
	case does("hang"):
		select {
		case <-h.end:
		case <-r.Context().Done():
		}
	case does("later"):
		w.Header().Set("Retry-After", "2588400")
		w.WriteHeader(http.StatusTooManyRequests)
	default: // The requests that validate a store.
		_, _ = w.Write([]byte(`{"data":{"path":"secret/","type":"kv","options":{"version":"2"}}}`))
	}
}

// A tenant disturbs the operator from its namespace.
type tenant func(ctx context.Context, s *stack.Stack, v *vault, ns string) error

// path is a way in which a tenant uses memory.
type path struct {
	what   string
	tenant tenant
}

// paths returns all ways in which a tenant uses memory.
func (h *hostile) paths() []path {
	return []path{
		{"reads of large secrets", h.reads("large", 20, 40)},
		{"8 PushSecrets to 100 stores that answer largely", h.pushesLarge(8, 100)},
		{"40 objects with 3 MiB of templates each", h.templates(40, 3)},
		{"400 stores that answer largely when they are validated", h.stores("large", 400)},
		{"20 selections of 7 MiB", h.selections(20, 7)},
		{"2,000 names of templates", h.names(40, 50)},
	}
}

// tenants returns the hostile tenants.
func (h *hostile) tenants() []tenant {
	all := []tenant{
		h.reads("large", 20, 40), h.reads("large", 200, 1), // These use memory.
		h.stores("hang", 100), h.reads("hang", 200, 1), // These hang.
		marks(50),        // These cause look-ups.
		h.pushes("hang"), // These writes hang, for keys that other tenants have, too.
		often(200),       // These cause refreshes.
		h.reads("later", 200, 1), h.stores("hang", 100), h.reads("large", 50, 10),
	}
	for _, p := range h.paths()[1:] {
		all = append(all, p.tenant)
	}
	return all
}

func (h *hostile) reads(kind string, objects, keys int) tenant {
	return readsMany(h.server.URL, kind, objects, keys)
}

// readsMany makes many objects read many secrets of one kind every second.
func readsMany(server, kind string, objects, keys int) tenant {
	return func(ctx context.Context, s *stack.Stack, _ *vault, ns string) error {
		if err := errors.Join(s.CreateNamespace(ctx, ns), ownStore(ctx, s, ns, "store", server)); err != nil {
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

// stores creates many stores on a server of one kind. They are validated all the time.
func (h *hostile) stores(kind string, n int) tenant {
	return func(ctx context.Context, s *stack.Stack, _ *vault, ns string) error {
		if err := s.CreateNamespace(ctx, ns); err != nil {
			return err
		}
		for i := range n {
			if err := ownStore(ctx, s, ns, fmt.Sprint(kind, "-", i), h.server.URL+"/"+kind); err != nil {
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

// pushesLarge makes objects push to many stores that answer largely.
func (h *hostile) pushesLarge(objects, stores int) tenant {
	return func(ctx context.Context, s *stack.Stack, v *vault, ns string) error {
		if err := errors.Join(h.stores("large", stores)(ctx, s, v, ns), s.Admin.Create(ctx, secretOf(ns, "source", nil, 1))); err != nil {
			return err
		}
		for i := range objects {
			ps := pushing(ns, fmt.Sprint("push-", i), "", fmt.Sprint("large-", i))
			ps.Spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "VaultKV", LabelSelector: &metav1.LabelSelector{}}}
			if err := s.Admin.Create(ctx, ps); err != nil {
				return err
			}
		}
		return nil
	}
}

// secretOf returns a Secret with a value of a size.
func secretOf(ns, name string, labels map[string]string, size int) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: labels}, Data: map[string][]byte{"a": bytes.Repeat([]byte("b"), size)}}
}

// selections makes objects push many large Secrets, each of 1 MiB.
func (h *hostile) selections(objects, secrets int) tenant {
	return func(ctx context.Context, s *stack.Stack, _ *vault, ns string) error {
		if err := errors.Join(s.CreateNamespace(ctx, ns), ownStore(ctx, s, ns, "store", h.server.URL)); err != nil {
			return err
		}
		labels := map[string]string{"pushed": "true"}
		for i := range secrets {
			if err := s.Admin.Create(ctx, secretOf(ns, fmt.Sprint("source-", i), labels, 1000<<10)); err != nil {
				return err
			}
		}
		for i := range objects {
			ps := pushing(ns, fmt.Sprint("push-", i), "store", fmt.Sprintf("hang-%d-${name}", i))
			ps.Spec.Selector.Secret = &v1alpha1.PushSecretSelector{Selector: &metav1.LabelSelector{MatchLabels: labels}}
			if err := s.Admin.Create(ctx, ps); err != nil {
				return err
			}
		}
		return nil
	}
}

// templates makes objects read many large templates every second.
func (h *hostile) templates(objects, templates int) tenant {
	return h.templated(objects, func(ctx context.Context, s *stack.Stack, ns string) error {
		for i := range templates {
			if err := s.Admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprint("t-", i)}, Data: map[string]string{"t": strings.Repeat("#", 1000<<10)}}); err != nil {
				return err
			}
		}
		return nil
	}, func(int) (names []string) {
		for i := range templates {
			names = append(names, fmt.Sprint("t-", i))
		}
		return names
	})
}

// names makes objects name many templates that do not exist.
func (h *hostile) names(objects, each int) tenant {
	return h.templated(objects, func(context.Context, *stack.Stack, string) error { return nil }, func(object int) (names []string) {
		for i := range each {
			names = append(names, fmt.Sprintf("t-%d-%d", object, i))
		}
		return names
	})
}

// templated makes objects read every second, with the key t of ConfigMaps as templates.
func (h *hostile) templated(objects int, prepare func(ctx context.Context, s *stack.Stack, ns string) error, names func(object int) []string) tenant {
	return func(ctx context.Context, s *stack.Stack, _ *vault, ns string) error {
		if err := errors.Join(s.CreateNamespace(ctx, ns), ownStore(ctx, s, ns, "store", h.server.URL), prepare(ctx, s, ns)); err != nil {
			return err
		}
		for i, o := range workload(ns, objects, 1) {
			o.Namespace, o.Key = ns, "small"
			es := ofVault(o, everySecond)
			es.Spec.Data = es.Spec.Data[:1]
			es.Spec.Target.Template = &v1alpha1.Template{}
			for _, name := range names(i) {
				es.Spec.Target.Template.TemplateFrom = append(es.Spec.Target.Template.TemplateFrom, v1alpha1.TemplateFrom{
					ConfigMap: &v1alpha1.TemplateSource{Name: name, Items: []v1alpha1.TemplateSourceItem{{Key: "t"}}},
				})
			}
			if err := s.Admin.Create(ctx, es); err != nil {
				return err
			}
		}
		return nil
	}
}
