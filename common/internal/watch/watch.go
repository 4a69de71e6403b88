// Package watch observes objects that do not have this project's labels, by name or by selector, and reads their
// metadata only. Watches are shared and counted: a Secret is watched once, however many stores use it. Each watch
// costs one reflector, so memory depends on the referenced objects and not on the size of the cluster. In a namespace with
// many of them, the others are read from time to time instead.
package watch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// An ObjectRef names the object to observe, or all objects in a namespace that a selector matches.
type ObjectRef struct {
	Resource schema.GroupVersionResource
	types.NamespacedName
	// Selector is a label selector. It is used if there is no name.
	Selector string
}

// SecretsRef names the Secrets of a namespace that a label selector matches. Owners know them by their VersionOf.
func SecretsRef(namespace, selector string) ObjectRef {
	r := SecretRef(namespace, "")
	r.Selector = selector
	return r
}

// VersionOf returns one string for the resourceVersions of several objects, by their names; empty for none.
func VersionOf(versions map[string]string) string {
	if len(versions) == 0 {
		return ""
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		h.Write([]byte(name + "=" + versions[name] + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// SecretRef names a Secret.
func SecretRef(namespace, name string) ObjectRef {
	return ObjectRef{
		Resource:       schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
		NamespacedName: types.NamespacedName{Namespace: namespace, Name: name},
	}
}

// ConfigMapRef names a ConfigMap.
func ConfigMapRef(namespace, name string) ObjectRef {
	return ObjectRef{
		Resource:       schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		NamespacedName: types.NamespacedName{Namespace: namespace, Name: name},
	}
}

// Watches is the set of watches of a process.
type Watches struct {
	// PerNamespace is the maximum number of watches in one namespace, by default 500: each takes about 75 KiB. Other objects are
	// read at the Interval, by default a minute.
	PerNamespace int
	Interval     time.Duration

	client metadata.Interface
	// reads limits the reads of all objects that are not watched.
	reads *rate.Limiter

	mu      sync.Mutex
	watches map[ObjectRef]*observer
}

// readsPerSecond is how many objects that are not watched are read in a second.
const readsPerSecond = 20

// New returns an empty set.
func New(c metadata.Interface) *Watches {
	return &Watches{
		PerNamespace: 500, Interval: time.Minute,
		client: c, reads: rate.NewLimiter(readsPerSecond, 1), watches: map[ObjectRef]*observer{},
	}
}

// Add observes ref for owner, and replaces the owner's earlier watch of ref. known is the resourceVersion that the
// owner has read, empty if the object did not exist. The watch calls changed, from another goroutine, each time it
// sees the object with another resourceVersion, or deleted. So it does not miss a change between the read and the
// first event. An object beyond PerNamespace is read later instead.
func (w *Watches) Add(ref ObjectRef, owner any, known string, changed func()) {
	w.AddAt(ref, owner, known, known, changed)
}

// AddAt is Add for an owner that knows the VersionOf several objects, from a list at resourceVersion at.
func (w *Watches) AddAt(ref ObjectRef, owner any, known, at string, changed func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.watches[ref]
	if o == nil {
		ctx, cancel := context.WithCancel(context.Background())
		o = &observer{cancel: cancel, many: ref.Name == "", watched: w.watchedLocked(ref.Namespace) < w.PerNamespace, subs: map[any]*subscription{}}
		w.watches[ref] = o
		if o.watched {
			go cache.NewReflectorWithOptions(w.listWatch(ref), &metav1.PartialObjectMetadata{}, o, cache.ReflectorOptions{
				Name: "direct-secrets/" + ref.Resource.Resource,
			}).RunWithContext(ctx)
		} else {
			go w.read(ctx, ref, o)
		}
	}
	o.subscribe(owner, &subscription{known: known, at: at, changed: changed})
}

// watchedLocked returns the number of watches in a namespace.
func (w *Watches) watchedLocked(namespace string) (n int) {
	for ref, o := range w.watches {
		if ref.Namespace == namespace && o.watched {
			n++
		}
	}
	return n
}

// read reads an object, or those that a selector matches, at the Interval until ctx ends.
func (w *Watches) read(ctx context.Context, ref ObjectRef, o *observer) {
	list := w.listWatch(ref)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.Interval):
		}
		if w.reads.Wait(ctx) != nil {
			return
		}
		found, err := list.ListWithContext(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		if l, ok := found.(*metav1.PartialObjectMetadataList); ok {
			all := make([]any, len(l.Items))
			for i := range l.Items {
				all[i] = &l.Items[i]
			}
			_ = o.Replace(all, l.ResourceVersion) // All items are objects.
		}
	}
}

// Remove ends all watches of owner.
func (w *Watches) Remove(owner any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ref, o := range w.watches {
		if o.unsubscribe(owner) == 0 {
			o.cancel()
			delete(w.watches, ref)
		}
	}
}

// Len returns the number of objects that are observed.
func (w *Watches) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watches)
}

// Each watch is for one named Secret or ConfigMap, or for a label selector; other objects are not listed.
// +kubebuilder:rbac:groups="",resources=secrets;configmaps,verbs=list;watch

func (w *Watches) listWatch(ref ObjectRef) *cache.ListWatch {
	narrow := func(o *metav1.ListOptions) {
		if o.LabelSelector = ref.Selector; ref.Name != "" {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, ref.Name).String()
		}
	}
	r := w.client.Resource(ref.Resource).Namespace(ref.Namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			narrow(&o)
			return r.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			narrow(&o)
			return r.Watch(ctx, o)
		},
	}
}
