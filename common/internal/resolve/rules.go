package resolve

import (
	"context"
	"fmt"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/scope"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Rulebook caches the rules of cluster stores, so that they are not compiled again for each object. The zero Rulebook
// is empty and ready for use.
type Rulebook struct {
	mu sync.Mutex
	// Bound: one per cluster store.
	rules map[types.UID]prepared
}

type prepared struct {
	generation int64
	rules      *scope.Rules
	err        error
}

func (b *Rulebook) of(s provider.ClusterObject) (*scope.Rules, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.rules[s.GetUID()]
	if !ok || p.generation != s.GetGeneration() {
		p = prepared{generation: s.GetGeneration()}
		p.rules, p.err = scope.New(s.ClusterStoreSpec())
		if b.rules == nil {
			b.rules = map[types.UID]prepared{}
		}
		b.rules[s.GetUID()] = p
	}
	return p.rules, p.err
}

// Forget drops the rules of a store.
func (b *Rulebook) Forget(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.rules, uid)
}

// Grant returns what a store allows a namespace. It reads the namespace's labels from cache if the rules use them. A
// refusal is the reason why the store allows nothing.
func (b *Rulebook) Grant(ctx context.Context, cache client.Reader, s provider.ClusterObject, namespace string) (g scope.Grant, refusal string, err error) {
	rules, err := b.of(s)
	if err != nil {
		return scope.Grant{}, fmt.Sprintf("spec.conditions is invalid: %s", provider.Safe(err).Message), nil
	}
	var labels map[string]string
	if rules.ByLabels() {
		ns := NamespaceMetadata()
		if err := cache.Get(ctx, types.NamespacedName{Name: namespace}, ns); err != nil {
			return scope.Grant{}, "", errors.Wrap(err, "cannot read the labels of the namespace")
		}
		labels = ns.Labels
	}
	g, ok := rules.Grant(namespace, labels)
	if !ok {
		return scope.Grant{}, fmt.Sprintf("spec.conditions does not allow namespace %q; use another store, or have the namespace added", namespace), nil
	}
	return g, "", nil
}

// NamespaceMetadata returns an empty Namespace for reads of its metadata only.
func NamespaceMetadata() *metav1.PartialObjectMetadata { return metadataOf("Namespace") }

// SecretMetadata returns an empty Secret for reads of its metadata only.
func SecretMetadata() *metav1.PartialObjectMetadata { return metadataOf("Secret") }

func metadataOf(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}
