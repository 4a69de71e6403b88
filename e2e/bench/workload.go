package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// clients is the maximum number of concurrent requests of the load, the same as for the floor.
const clients = 20

// managed is the label of the Secrets that provider-aws writes.
const managed = awsv1.Group + "/managed"

// An Object is one ExternalSecret of a workload.
type Object struct {
	types.NamespacedName
	Key string
}

// workload returns n objects in m namespaces, sorted by namespace, each with its own secret.
func workload(prefix string, n, m int) []Object {
	objects := make([]Object, n)
	for i := range objects {
		ns := fmt.Sprintf("%s-%02d", prefix, i*m/n)
		objects[i] = Object{
			NamespacedName: types.NamespacedName{Namespace: ns, Name: fmt.Sprintf("es-%04d", i)},
			Key:            fmt.Sprintf("%s/secret-%04d", prefix, i),
		}
	}
	return objects
}

// externalSecret returns the ExternalSecret of an object.
func externalSecret(o Object, change ...func(*v1alpha1.ExternalSecret)) *v1alpha1.ExternalSecret {
	es := &v1alpha1.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Spec: v1alpha1.ExternalSecretSpec{
			StoreRef: &v1alpha1.StoreRef{Kind: "AWSSecretsManager", Name: "store"},
			Data: []v1alpha1.DataEntry{
				{SecretKey: "username", RemoteRef: v1alpha1.RemoteRef{Key: o.Key, Property: "username"}},
				{SecretKey: "password", RemoteRef: v1alpha1.RemoteRef{Key: o.Key, Property: "password"}},
			},
		},
	}
	for _, f := range change {
		f(es)
	}
	return es
}

func value(o Object) []byte {
	return fmt.Appendf(nil, `{"username":"user-of-%s","password":"0123456789abcdef0123456789abcdef"}`, o.Name)
}

// prepare creates the namespaces of objects, a store in each, and the remote secrets, and waits until the
// stores are ready.
func prepare(ctx context.Context, s *stack.Stack, objects []Object, change ...func(*awsv1.AWSSecretsManager)) error {
	seen := map[string]bool{}
	for _, o := range objects {
		s.AWS.Put(o.Key, value(o))
		if seen[o.Namespace] {
			continue
		}
		seen[o.Namespace] = true
		if err := s.CreateNamespace(ctx, o.Namespace); err != nil {
			return err
		}
		if err := s.AWSStore(ctx, o.Namespace, "store", change...); err != nil {
			return err
		}
	}
	return nil
}

// storesReady waits until every store of the namespaces is ready.
func storesReady(ctx context.Context, s *stack.Stack) error {
	return until(ctx, func() (bool, error) {
		var list awsv1.AWSSecretsManagerList
		if err := s.Admin.List(ctx, &list); err != nil {
			return false, err
		}
		for _, st := range list.Items {
			if !meta.IsStatusConditionTrue(st.Status.Conditions, v1alpha1.ConditionReady) {
				return false, nil
			}
		}
		return true, nil
	})
}

// each calls f for all objects with the given number of workers.
func each(objects []Object, workers int, f func(Object) error) error {
	jobs := make(chan Object)
	errs := make(chan error, workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for o := range jobs {
				if err := f(o); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	for _, o := range objects {
		jobs <- o
	}
	close(jobs)
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// arrivals records when a watch first saw each Secret, or its first change after forget.
type arrivals struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]time.Time
	more chan struct{}
	stop func()
}

// watchSecrets watches the Secrets that provider-aws writes. It returns when the watch is established.
func watchSecrets(ctx context.Context, s *stack.Stack) (*arrivals, error) {
	return watchSecretsWith(ctx, s, managed)
}

// watchSecretsWith watches the Secrets with a label that is "true".
func watchSecretsWith(ctx context.Context, s *stack.Stack, label string) (*arrivals, error) {
	c, err := metadata.NewForConfig(s.Config())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	a := &arrivals{seen: map[types.NamespacedName]time.Time{}, more: make(chan struct{}, 1), stop: cancel}
	informer := metadatainformer.NewFilteredMetadataInformer(c, corev1.SchemeGroupVersion.WithResource("secrets"), metav1.NamespaceAll,
		0, cache.Indexers{}, func(o *metav1.ListOptions) { o.LabelSelector = label + "=true" }).Informer()
	note := func(obj any) {
		if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
			a.note(types.NamespacedName{Namespace: m.Namespace, Name: m.Name})
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, obj any) { note(obj) }}); err != nil {
		cancel()
		return nil, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		cancel()
		return nil, errors.New("the watch did not start")
	}
	return a, nil
}

// forget forgets what was seen.
func (a *arrivals) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.seen)
}

func (a *arrivals) note(key types.NamespacedName) {
	a.mu.Lock()
	if _, ok := a.seen[key]; !ok {
		a.seen[key] = time.Now()
	}
	a.mu.Unlock()
	select {
	case a.more <- struct{}{}:
	default:
	}
}

// wait waits until all objects have their Secret, and returns the time at which the last one was seen.
func (a *arrivals) wait(ctx context.Context, objects []Object) (time.Time, error) {
	for {
		last, missing := a.last(objects)
		if missing == 0 {
			return last, nil
		}
		select {
		case <-a.more:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%d of %d Secrets did not come: %w", missing, len(objects), ctx.Err())
		}
	}
}

func (a *arrivals) last(objects []Object) (last time.Time, missing int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range objects {
		at, ok := a.seen[o.NamespacedName]
		if !ok {
			missing++
		}
		if at.After(last) {
			last = at
		}
	}
	return last, missing
}

// at returns when the Secret of an object was seen.
func (a *arrivals) at(o Object) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen[o.NamespacedName]
}

// until polls a condition of the cluster. It is for the preparation and the end of a measurement, not for the
// measurement itself.
func until(ctx context.Context, f func() (bool, error)) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := f()
		if err != nil && !kerrors.IsNotFound(err) {
			return err
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it did not come to rest: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// allSynced waits until every object is in sync.
func allSynced(ctx context.Context, s *stack.Stack, objects []Object) error {
	return until(ctx, func() (bool, error) {
		var list v1alpha1.ExternalSecretList
		if err := s.Admin.List(ctx, &list); err != nil {
			return false, err
		}
		ready := map[types.NamespacedName]bool{}
		for _, es := range list.Items {
			ready[types.NamespacedName{Namespace: es.Namespace, Name: es.Name}] = meta.IsStatusConditionTrue(es.Status.Conditions, v1alpha1.ConditionReady)
		}
		for _, o := range objects {
			if !ready[o.NamespacedName] {
				return false, nil
			}
		}
		return true, nil
	})
}
