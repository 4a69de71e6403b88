package scenarios

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// A version is a state of a Secret, or its deletion.
type version struct {
	UID     types.UID
	Deleted bool
	Mark    string
	Data    map[string]string
}

func newVersion(s *corev1.Secret, deleted bool) version {
	v := version{UID: s.UID, Deleted: deleted, Mark: s.Annotations[inspect.MarkKey(s.Name)], Data: map[string]string{}}
	for k, d := range s.Data {
		v.Data[k] = string(d)
	}
	return v
}

// A history holds all versions of the Secrets of a namespace.
type history struct {
	mu      sync.Mutex
	secrets map[string][]version
	changed chan struct{}
	err     error
}

// record records a history until the test ends.
func record(t *testing.T, namespace string) *history {
	t.Helper()
	clients, err := client.NewWithWatch(shared.Config(), client.Options{Scheme: stack.Scheme()})
	must(t, err)
	h := &history{secrets: map[string][]version{}, changed: make(chan struct{})}
	list := &corev1.SecretList{}
	must(t, clients.List(t.Context(), list, client.InNamespace(namespace)))
	w, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return clients.Watch(ctx, &corev1.SecretList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &o})
		},
	})
	must(t, err)
	go func() {
		for e := range w.ResultChan() {
			h.add(e)
		}
	}()
	return h
}

func (h *history) add(e watch.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := e.Object.(*corev1.Secret); ok {
		h.secrets[s.Name] = append(h.secrets[s.Name], newVersion(s, e.Type == watch.Deleted))
	} else {
		h.err = fmt.Errorf("the history has a gap: %+v", e.Object)
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *history) of(secret string) []version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.secrets[secret])
}
