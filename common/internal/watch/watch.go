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
	"strings"
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

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
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

// SecretRef names a Secret, or the ConfigMap of a v1alpha1.ConfigMapTarget.
func SecretRef(namespace, name string) ObjectRef {
	if name, ok := strings.CutPrefix(name, v1alpha1.ConfigMapTarget); ok {
		return ConfigMapRef(namespace, name)
	}
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

// ServiceAccountRef names a ServiceAccount.
func ServiceAccountRef(namespace, name string) ObjectRef {
	return ObjectRef{
		Resource:       schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"},
		NamespacedName: types.NamespacedName{Namespace: namespace, Name: name},
	}
}

// Watches is the set of watches of a process.
type Watches struct {
	// PerNamespace is the maximum number of watches in one namespace. Other objects are read one after another, at most ReadsPerSecond
	// of each namespace.
	PerNamespace   int
	ReadsPerSecond rate.Limit

	client metadata.Interface

	mu sync.Mutex
	// Bound: one per observed reference of an object.
	watches map[ObjectRef]*observer
	// Bound: one per namespace with watches.
	namespaces map[string]*namespace
}

// namespace counts the watches of a namespace, and holds what is read there instead.
type namespace struct {
	watches int
	reads   map[ObjectRef]*observer
	// reading is true while a goroutine reads them.
	reading bool
}

const (
	// perNamespace is the default of Watches.PerNamespace. A watch takes about 75 KiB.
	//limit:watches Watches in one namespace of Secrets and ConfigMaps that carry no label of the operator: credentials, templates, sources of pushes, targets that `Merge` waits for | Further ones are read one after another, so their changes are found later.
	perNamespace = 500
	// readsPerSecond is the default of Watches.ReadsPerSecond.
	//limit:watches Reads of those without a watch in one namespace | unit=a second | The read waits.
	readsPerSecond = 20
)

// New returns an empty set.
func New(c metadata.Interface) *Watches {
	return &Watches{PerNamespace: perNamespace, ReadsPerSecond: readsPerSecond, client: c, watches: map[ObjectRef]*observer{}, namespaces: map[string]*namespace{}}
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
		o = &observer{many: ref.Name == "", subs: map[any]*subscription{}}
		w.watches[ref] = o
		w.beginLocked(ref, o)
	}
	o.subscribe(owner, &subscription{known: known, at: at, changed: changed})
}

// beginLocked watches an object, or has it read if its namespace has too many watches.
func (w *Watches) beginLocked(ref ObjectRef, o *observer) {
	n := w.namespaces[ref.Namespace]
	if n == nil {
		n = &namespace{reads: map[ObjectRef]*observer{}}
		w.namespaces[ref.Namespace] = n
	}
	if n.watches >= w.PerNamespace {
		if n.reads[ref] = o; !n.reading {
			n.reading = true
			go w.read(n)
		}
		return
	}
	n.watches++
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	go cache.NewReflectorWithOptions(w.listWatch(ref), &metav1.PartialObjectMetadata{}, o, cache.ReflectorOptions{
		Name: "direct-secrets/" + ref.Resource.Resource,
	}).RunWithContext(ctx)
}

// endLocked ends the watch of an object, or that it is read.
func (w *Watches) endLocked(ref ObjectRef, o *observer) {
	delete(w.watches, ref)
	n := w.namespaces[ref.Namespace]
	if delete(n.reads, ref); o.cancel != nil {
		o.cancel()
		n.watches--
	}
	if n.watches == 0 && len(n.reads) == 0 {
		delete(w.namespaces, ref.Namespace)
	}
}

// read reads the objects of a namespace that are not watched, one after another, until there are none.
func (w *Watches) read(n *namespace) {
	limit := rate.NewLimiter(w.ReadsPerSecond, 1)
	for {
		w.mu.Lock()
		now := maps.Clone(n.reads)
		w.mu.Unlock()
		for ref, o := range now {
			if limit.Wait(context.Background()) != nil || !w.stillRead(n, ref, o) {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			if list, err := w.list(ctx, ref, metav1.ListOptions{}); err == nil { // Otherwise it is read again.
				all := make([]any, len(list.Items))
				for i := range list.Items {
					all[i] = &list.Items[i]
				}
				_ = o.Replace(all, list.ResourceVersion) // All items are objects.
			}
			cancel()
		}
		w.mu.Lock()
		again := len(n.reads) > 0
		n.reading = again
		w.mu.Unlock()
		if !again {
			return
		}
	}
}

// stillRead reports whether an object is still read. It is watched from now on if its namespace can have another watch.
func (w *Watches) stillRead(n *namespace, ref ObjectRef, o *observer) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.reads[ref] != o {
		return false
	}
	if n.watches < w.PerNamespace {
		delete(n.reads, ref)
		w.beginLocked(ref, o)
		return false
	}
	return true
}

// Remove ends all watches of owner.
func (w *Watches) Remove(owner any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ref, o := range w.watches {
		if o.unsubscribe(owner) == 0 {
			w.endLocked(ref, o)
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
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return w.list(ctx, ref, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			events, err := w.client.Resource(ref.Resource).Namespace(ref.Namespace).Watch(ctx, ref.narrow(o))
			if err != nil {
				return nil, err
			}
			return apiwatch.Filter(events, func(e apiwatch.Event) (apiwatch.Event, bool) {
				if m, ok := e.Object.(*metav1.PartialObjectMetadata); ok && e.Type != apiwatch.Bookmark {
					strip(m)
				}
				return e, true
			}), nil
		},
	}
}

// page is how many objects one request lists: a tenant can give each 256 KiB of annotations.
const page = 32

// list lists the objects that ref names, with only what an observer needs.
func (w *Watches) list(ctx context.Context, ref ObjectRef, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if o = ref.narrow(o); o.FieldSelector == "" {
		o.Limit, o.ResourceVersion, o.ResourceVersionMatch = page, "", "" // Version 0 would be answered without pages.
	}
	all := &metav1.PartialObjectMetadataList{}
	for {
		list, err := w.client.Resource(ref.Resource).Namespace(ref.Namespace).List(ctx, o)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			strip(&list.Items[i])
		}
		all.TypeMeta, all.Items, all.ResourceVersion = list.TypeMeta, append(all.Items, list.Items...), list.ResourceVersion
		if o.Continue = list.Continue; o.Continue == "" {
			return all, nil
		}
		o.ResourceVersion, o.ResourceVersionMatch = "", "" // A continued list has those of its first page.
	}
}

// narrow limits a request to what ref names.
func (r ObjectRef) narrow(o metav1.ListOptions) metav1.ListOptions {
	if o.LabelSelector = r.Selector; r.Name != "" {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, r.Name).String()
	}
	return o
}

// strip removes what an observer does not need.
func strip(m *metav1.PartialObjectMetadata) {
	m.ObjectMeta = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
}
